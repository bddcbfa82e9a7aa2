package diff

import (
	"slices"
	"strings"
	"testing"
)

func pattern(t *testing.T, text string) Pattern {
	t.Helper()
	p, err := ParsePattern(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCovers(t *testing.T) {
	for _, tc := range []struct {
		why, pattern, path string
		want               bool
	}{
		{"itself", "spec.replicas", "spec.replicas", true},
		{"everything below", "spec", "spec.template.spec", true},
		{"the same, spelled out", "spec.**", "spec.template", true},
		{"** may match nothing", "spec.**", "spec", true},
		{"not what is above", "spec.template", "spec", false},
		{"not a neighbour", "spec", "status.phase", false},
		{"keys are whole", "spec", "specific", false},
		{"a leading dot, as kubectl writes it", ".spec", "spec.x", true},
		{"** in front", "**.image", "spec.containers[name=app].image", true},
		{"** in front, at the top", "**.image", "image", true},
		{"** in the middle", "spec.**.image", "spec.a.b[3].image", true},
		{"** in the middle, twice", "**.a.**.b", "x.a.a.y.b.z", true},
		{"** does not skip its neighbours", "spec.**.image", "status.a.image", false},
		{"everything", "**", "a", true},
		{"* is one key", "spec.*.image", "spec.a.b.image", false},
		{"* is no list element", "spec.*", "[3]", false},
		{"* within a key", "data.*password*", "data.db-password-old", true},
		{"* crosses dots and slashes in quotes", `metadata.labels["*.example.com/*"]`, `metadata.labels["a.b.example.com/x"]`, true},
		{"* may match nothing", "data.pass*word", "data.password", true},
		{"its parts may not overlap", "data.aba*ba", "data.aba", false},
		{"its parts keep their order", "data.*a*b*", "data.ba", false},
		{"any element", "x[*].image", "x[name=app].image", true},
		{"any element, by index", "x[*]", "x[3]", true},
		{"any element of a set", "x[*]", "x[=a]", true},
		{"[*] is no key", "x[*]", "x.y", false},
		{"by merge key", "x[name=app]", "x[name=app].image", true},
		{"by another", "x[name=app]", "x[name=side]", false},
		{"by some of the merge keys", "x[port=80]", "x[port=80,protocol=TCP]", true},
		{"by more than there are", "x[port=80,protocol=TCP]", "x[port=80]", false},
		{"a wildcard in a merge key", "x[name=istio-*]", "x[name=istio-proxy].image", true},
		{"a number may be written as text", `x[port="80"]`, "x[port=80]", true},
		{"of a set", "finalizers[=foreground*]", "finalizers[=foregroundDeletion]", true},
		{"by index", "x[3]", "x[3].y", true},
		{"an index does not know names", "x[3]", "x[name=d]", false},
		{"deep **", strings.Repeat("**.", 62) + "z", "a.b.c.d.e.f.g.h.i.j.k.z", true},
	} {
		path, err := ParsePath(tc.path)
		if err != nil {
			t.Fatal(err)
		}
		if got := pattern(t, tc.pattern).Covers(path); got != tc.want {
			t.Errorf("%s: %s covers %s: %v", tc.why, tc.pattern, tc.path, got)
		}
	}
	if (Pattern{}).Covers(Path{}) {
		t.Error("the zero Pattern covers something")
	}
}

func TestTouches(t *testing.T) {
	container := map[string]any{"name": "app", "image": "x", "ports": []any{map[string]any{"port": int64(80)}}, "none": nil}
	path, err := ParsePath("spec.containers[name=app]")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		why, pattern string
		want         bool
	}{
		{"what is above", "spec", true},
		{"what is within", "spec.containers[*].image", true},
		{"what is within, by name", "spec.containers[name=app].ports[port=80]", true},
		{"what is within, by index", "spec.containers[*].ports[0].port", true},
		{"not what is absent", "spec.containers[*].command", false},
		{"nor null", "spec.containers[*].none", false},
		{"not in another", "spec.containers[name=side].image", false},
		{"nor elsewhere", "status", false},
		{"at any depth", "**.port", true},
	} {
		for _, c := range []Change{{Path: path, Op: Add, To: container}, {Path: path, Op: Remove, From: container}} {
			if got := pattern(t, tc.pattern).Touches(c); got != tc.want {
				t.Errorf("%s: %s touches %s: %v", tc.why, tc.pattern, c.Op, got)
			}
		}
	}
	moved := Objects(decode(t, "{map: [{id: a, v: 1}, {id: b}, {id: c}]}"), decode(t, "{map: [{id: b}, {id: a, v: 1}, {id: c}]}"), schemas)[0]
	for text, want := range map[string]bool{
		"map": true, "map[*]": true, "map[id=a]": true, "map[id=b]": true, "map[id=c]": false, "map[*].id": true, "**": true, "map[*].v": false,
		"map[0]": false, "set": false,
	} {
		if got := pattern(t, text).Touches(moved); got != want {
			t.Errorf("%s touches a new order: %v", text, got)
		}
	}
	scalar := Change{Path: path, Op: Replace, From: int64(1), To: int64(2)}
	if !pattern(t, "spec.containers").Touches(scalar) || pattern(t, "spec.containers[*].image").Touches(scalar) {
		t.Error("a scalar has nothing within")
	}
}

func TestReplace(t *testing.T) {
	const object = `
data: {password: a, user: b, "api.token": c}
spec:
  containers:
  - {name: app, env: [{name: A, value: x}, {name: B, value: z}]}
  - {name: side, env: [{value: q}, {value: r}]}
  finalizers: [a, b]
`
	for _, tc := range []struct {
		why, pattern string
		want         []string
	}{
		{"one field", "data.user", []string{"data.user"}},
		{"some keys", "data.*token", []string{`data["api.token"]`}},
		{"a whole object, not what is below", "data", []string{"data"}},
		{"named elements", "spec.containers[name=app].env[name=B].value", []string{"spec.containers[name=app].env[name=B].value"}},
		{"elements without names", "spec.containers[name=side].env[*].value", []string{"spec.containers[name=side].env[0].value", "spec.containers[name=side].env[1].value"}},
		{"by position, of named elements", "spec.containers[1].env[1]", []string{"spec.containers[name=side].env[1]"}},
		{"of a set", "spec.finalizers[=b]", []string{"spec.finalizers[1]"}},
		{"at any depth", "**.value", []string{"spec.containers[name=app].env[name=A].value", "spec.containers[name=app].env[name=B].value", "spec.containers[name=side].env[0].value", "spec.containers[name=side].env[1].value"}},
		{"the whole object, field by field", "**", []string{"data", "spec"}},
		{"nothing", "data.x.y", nil},
	} {
		root := decode(t, object)
		var got []string
		paths := map[string]Path{}
		pattern(t, tc.pattern).Replace(root, func(p Path, v any) any {
			got = append(got, p.String())
			paths[p.String()] = p
			return "hidden"
		})
		slices.Sort(got)
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %s replaced %q, want %q", tc.why, tc.pattern, got, tc.want)
		}
		for text, p := range paths {
			if p.String() != text {
				t.Errorf("%s: the path %s was overwritten with %s", tc.why, text, p)
			}
		}
		changed := Objects(decode(t, object), root, nil)
		if (len(changed) == 0) != (len(tc.want) == 0) {
			t.Errorf("%s: %d changes in the object", tc.why, len(changed))
		}
		for _, c := range changed {
			if c.To != "hidden" && !strings.Contains(string(marshal(c.To)), "hidden") {
				t.Errorf("%s: %s", tc.why, plain(c))
			}
		}
	}
	Pattern{}.Replace(map[string]any{"a": 1}, func(Path, any) any { t.Error("the zero Pattern selects"); return nil })
}
