package diff

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSelect(t *testing.T) {
	var object map[string]any
	if err := json.Unmarshal([]byte(`{"kind":"Pod","metadata":{"name":"a","labels":{"app":"web","tier":null}},
		"spec":{"image":"top","containers":[{"name":"app","image":"app:1","ports":[{"containerPort":80}]},{"name":"log","image":"log:2"}],
		"args":["a","b"]},"status":{"image":"no"}}`), &object); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		why      string
		patterns []string
		want     []string
	}{
		{"at any depth", []string{"spec.**.image"}, []string{"spec.containers[name=app].image=app:1", "spec.containers[name=log].image=log:2", "spec.image=top"}},
		{"any element", []string{"spec.containers[*].image"}, []string{"spec.containers[name=app].image=app:1", "spec.containers[name=log].image=log:2"}},
		{"one of a name", []string{"spec.containers[name=l*].image"}, []string{"spec.containers[name=log].image=log:2"}},
		{"by position", []string{"spec.args[1]", "spec.containers[0].image"}, []string{"spec.args[1]=b", "spec.containers[name=app].image=app:1"}},
		{"the outer of two, and each once", []string{"spec.args", "spec.args[0]", "spec.*"}, []string{
			"spec.args=[a b]", "spec.containers=[map[image:app:1 name:app ports:[map[containerPort:80]]] map[image:log:2 name:log]]", "spec.image=top"}},
		{"null is absent", []string{"metadata.labels.*"}, []string{"metadata.labels.app=web"}},
		{"nothing", []string{"spec.replicas"}, nil},
		{"the object as a whole", []string{"**"}, []string{"kind=Pod", "metadata=map[labels:map[app:web tier:<nil>] name:a]",
			"spec=map[args:[a b] containers:[map[image:app:1 name:app ports:[map[containerPort:80]]] map[image:log:2 name:log]] image:top]", "status=map[image:no]"}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			var patterns []Pattern
			for _, text := range tc.patterns {
				p, err := ParsePattern(text)
				if err != nil {
					t.Fatal(err)
				}
				patterns = append(patterns, p)
			}
			var got []string
			found, more := Select(object, patterns)
			for _, c := range found {
				got = append(got, fmt.Sprintf("%s=%v", c.Path, c.To))
				if touched := (Change{Op: Add, To: any(object)}); !patterns[0].Touches(touched) && len(patterns) == 1 {
					t.Errorf("Touches does not know %s", c.Path)
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" || more != 0 {
				t.Errorf("%d more; -want +got:\n%s", more, d)
			}
		})
	}
}

// TestSelectIsBounded: however many values an object has.
func TestSelectIsBounded(t *testing.T) {
	data := map[string]any{}
	for i := range 3 * maxSelected {
		data[fmt.Sprint(i)] = "x"
	}
	p, err := ParsePattern("data.*")
	if err != nil {
		t.Fatal(err)
	}
	if found, more := Select(map[string]any{"data": data}, []Pattern{p}); len(found) != maxSelected || more != 2*maxSelected {
		t.Errorf("%d values and %d more", len(found), more)
	}
}
