package diff_test

import (
	"fmt"

	"github.com/tattler-dev/tattler/diff"
)

func ExampleObjects() {
	before := map[string]any{"spec": map[string]any{
		"replicas": int64(3),
		"containers": []any{
			map[string]any{"name": "app", "image": "shop/web:1.4"},
		},
	}}
	after := map[string]any{"spec": map[string]any{
		"replicas": int64(3),
		"containers": []any{
			map[string]any{"name": "proxy", "image": "envoy:1.30"},
			map[string]any{"name": "app", "image": "shop/web:1.5"},
		},
	}}
	for _, l := range diff.Text(diff.Objects(before, after, nil), diff.TextOptions{}) {
		fmt.Println(l.Text)
	}
	// Output:
	// spec.containers[name=app].image: shop/web:1.4 → shop/web:1.5
	// spec.containers[name=proxy]: added
	//   + image: envoy:1.30
	//   + name: proxy
}

func ExampleText() {
	before := map[string]any{"data": map[string]any{
		"app.properties": "cache.size=64\nhttp.timeout=30s\nhttp.retries=3\n",
		"password":       "hidden #4e1f9d02c1b7a655",
	}}
	after := map[string]any{"data": map[string]any{
		"app.properties": "cache.size=64\nhttp.timeout=5s\nhttp.retries=3\n",
		"password":       "hidden #9c2011aa02c4e8f1",
	}}
	for _, l := range diff.Text(diff.Objects(before, after, nil), diff.TextOptions{}) {
		fmt.Println(l.Text)
	}
	// Output:
	// data["app.properties"]: line 2 of 3
	//     cache.size=64
	//   - http.timeout=30s
	//   + http.timeout=5s
	//     http.retries=3
	// data.password: changed (hidden, #4e1f → #9c20)
}

func ExampleParsePattern() {
	_, err := diff.ParsePattern("spec..x")
	fmt.Println(err)
	p, err := diff.ParsePattern("spec.template.**.image")
	if err != nil {
		panic(err)
	}
	path, err := diff.ParsePath("spec.template.spec.containers[name=app].image")
	fmt.Println(p.Covers(path), err)
	// Output:
	// invalid path "spec..x": column 6: empty name
	// true <nil>
}

func ExamplePattern_Replace() {
	object := map[string]any{"data": map[string]any{"user": "ann", "db-password": "xyzzy"}}
	p, err := diff.ParsePattern("data.*password*")
	if err != nil {
		panic(err)
	}
	p.Replace(object, func(path diff.Path, value any) any {
		fmt.Println(path)
		return diff.HiddenPrefix + "9c2011aa02c4e8f1"
	})
	fmt.Println(object)
	// Output:
	// data.db-password
	// map[data:map[db-password:hidden #9c2011aa02c4e8f1 user:ann]]
}
