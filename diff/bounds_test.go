package diff

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// nested returns value below so many fields called name.
func nested(depth int, name string, value any) any {
	for range depth {
		value = map[string]any{name: value}
	}
	return value
}

// wide returns n fields with the value v.
func wide(n int, name string, v any) map[string]any {
	m := map[string]any{}
	for i := range n {
		m[fmt.Sprint(name, i)] = v
	}
	return m
}

// hostile lists objects whose changes could cost far more than they do, as functions of a value that differs.
var hostile = map[string]func(v any) map[string]any{
	"deep and wide": func(v any) map[string]any {
		return map[string]any{"spec": nested(1000, "a", wide(4000, "f", v))}
	},
	"very deep and wide": func(v any) map[string]any {
		return map[string]any{"spec": nested(3000, "a", wide(8000, "f", v))}
	},
	"as deep as can be": func(v any) map[string]any { return map[string]any{"spec": nested(9990, "a", v)} },
	"a leaf on each level": func(v any) map[string]any {
		at := any(map[string]any{})
		for range 3000 {
			at = map[string]any{"a": at, "v": v}
		}
		return map[string]any{"spec": at}
	},
	"wide on each of some levels": func(v any) map[string]any {
		at := any(map[string]any{})
		for range 60 {
			m := wide(990, "z", v)
			m["a"] = at
			at = m
		}
		return map[string]any{"spec": at}
	},
	"lists in lists": func(v any) map[string]any {
		at := any([]any{v, v})
		for range 3000 {
			at = []any{at}
		}
		return map[string]any{"spec": at}
	},
	"a long name": func(v any) map[string]any {
		return map[string]any{"spec": map[string]any{strings.Repeat("x", 100_000): wide(3000, "f", v)}}
	},
	"long names on a few levels": func(v any) map[string]any {
		return map[string]any{"spec": nested(20, strings.Repeat("x", 10_000), wide(500, "f", v))}
	},
	"long merge keys": func(v any) map[string]any {
		var list []any
		for i := range 500 {
			list = append(list, map[string]any{"name": strings.Repeat("x", 2000) + fmt.Sprint(i), "a": v, "b": v, "c": v})
		}
		return map[string]any{"spec": map[string]any{"list": list}}
	},
	"many annotations": func(v any) map[string]any {
		return map[string]any{
			"metadata": map[string]any{"annotations": wide(4000, "example.com/a", v)},
			"spec":     map[string]any{"image": v},
		}
	},
	"many fields": func(v any) map[string]any { return wide(5000, "field", v) },
	"everything goes": func(v any) map[string]any {
		if v == "b" {
			return map[string]any{}
		}
		return map[string]any{"data": wide(5000, "k", v), "spec": nested(5000, "a", v)}
	},
}

// TestBounds: what Objects returns and costs is a small multiple of the objects.
func TestBounds(t *testing.T) {
	for why, object := range hostile {
		t.Run(why, func(t *testing.T) {
			before, after := object("a"), object("b")
			raw, err := json.Marshal(before)
			if err != nil {
				t.Fatal(err)
			}
			var start, end runtime.MemStats
			runtime.ReadMemStats(&start)
			changes := Objects(before, after, nil)
			runtime.ReadMemStats(&end)
			text := 0
			for _, c := range changes {
				text += len(c.Path.String())
			}
			if len(changes) == 0 || len(changes) > 1000 || text > 2*256<<10 {
				t.Errorf("%d changes with %d bytes of paths", len(changes), text)
			}
			if took := end.TotalAlloc - start.TotalAlloc; took > uint64(32<<20+100*len(raw)) {
				t.Errorf("an object of %d bytes took %d", len(raw), took)
			}
			if got, err := apply(before, changes); err != nil || !Equal(canonical("", after), canonical("", got)) {
				t.Errorf("the changes do not lead from before to after: %v", err)
			}
		})
	}
}

// TestWhole: the smallest values with too many changes become one change, and no others.
func TestWhole(t *testing.T) {
	for _, tc := range []struct {
		why, object string
		want        []string
	}{
		{"many annotations", "many annotations", []string{"metadata.annotations whole", "spec.image"}},
		{"an object of many fields", "many fields", []string{" whole"}},
		{"a long name", "a long name", []string{"spec." + strings.Repeat("x", 100_000) + " whole"}},
	} {
		var got []string
		for _, c := range Objects(hostile[tc.object]("a"), hostile[tc.object]("b"), nil) {
			text := c.Path.String()
			if c.Whole {
				text += " whole"
			}
			got = append(got, text)
		}
		if fmt.Sprint(got) != fmt.Sprint(tc.want) {
			t.Errorf("%s: %.200q, want %.200q", tc.why, got, tc.want)
		}
	}
	few := Objects(map[string]any{"spec": nested(63, "a", "x")}, map[string]any{"spec": nested(63, "a", "y")}, nil)
	if len(few) != 1 || few[0].Whole || len(few[0].Path) != 64 {
		t.Errorf("64 steps: %v", few)
	}
	deep := Objects(map[string]any{"spec": nested(64, "a", "x")}, map[string]any{"spec": nested(64, "a", "y")}, nil)
	if len(deep) != 1 || !deep[0].Whole || len(deep[0].Path) != 64 {
		t.Errorf("65 steps: %v", deep)
	}
}
