package deliver

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
)

func TestPatch(t *testing.T) {
	for _, tc := range []struct {
		why           string
		before, after string
		want          string
	}{
		{"equal objects have no difference", `{"a":{"b":[1,"x",true,null]}}`, `{"a":{"b":[1,"x",true,null]}}`, ``},
		{"a value below", `{"a":{"b":1}}`, `{"a":{"b":2}}`, `replace /a/b 2`},
		{"fields come and go", `{"a":1}`, `{"b":1}`, `remove /a; add /b 1`},
		{"null is not an absent field", `{"a":null}`, `{"b":null}`, `remove /a; add /b null`},
		{"names are escaped", `{"a/b":{"c~d":1}}`, `{"a/b":{"c~d":2}}`, `replace /a~1b/c~0d 2`},
		{"an empty name is a name", `{"":1}`, `{"":2}`, `replace / 2`},
		{"another type is another value", `{"a":{}}`, `{"a":[]}`, `replace /a []`},
		{"a list grows in its middle", `{"a":[1,2]}`, `{"a":[1,9,2]}`, `add /a/1 9`},
		{"a list grows at its end", `{"a":[1]}`, `{"a":[1,2,3]}`, `add /a/1 2; add /a/2 3`},
		{"a list shrinks from the back", `{"a":[1,2,3,4]}`, `{"a":[1,4]}`, `remove /a/2; remove /a/1`},
		{"elements are identified by position", `{"a":[{"n":"x","v":1},{"n":"y"}]}`, `{"a":[{"n":"x","v":2},{"n":"y"}]}`, `replace /a/0/v 2`},
		{"large integers stay exact", `{"a":9007199254740993}`, `{"a":9007199254740992}`, `replace /a 9007199254740992`},
	} {
		var got []string
		for _, o := range patch(parse(t, tc.before), parse(t, tc.after)) {
			s := o.Op + " " + o.Path
			if o.Op != "remove" {
				v, err := json.Marshal(o.Value)
				if err != nil {
					t.Fatal(err)
				}
				s += " " + string(v)
			}
			got = append(got, s)
		}
		if d := cmp.Diff(tc.want, strings.Join(got, "; ")); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.why, d)
		}
	}
}

// TestPatchApplies turns before into after with an independent implementation of patches.
func TestPatchApplies(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 3000 {
		before := randomValue(r, 4).(map[string]any)
		after := mutate(r, before).(map[string]any)
		m := patchLimits
		if i%2 == 1 {
			m = limits{depth: 1 + r.IntN(4), ops: 1 + r.IntN(6), length: 1 + r.IntN(60)}
		}
		ops := patchWithin(before, after, m)
		if length := textOf(ops); len(ops) > m.ops || length > m.length && len(ops) > 1 {
			t.Fatalf("round %d: %d operations with %d bytes of paths, with %+v", i, len(ops), length, m)
		}
		got := copied(before)
		for _, o := range ops {
			var err error
			if got, err = apply(got, strings.Split(o.Path, "/")[1:], o); err != nil {
				t.Fatalf("round %d: %+v: %v\nbefore %v\nafter %v", i, o, err, before, after)
			}
		}
		if d := cmp.Diff(any(after), got); d != "" {
			t.Fatalf("round %d: %+v gives another object (-want +got):\n%s", i, ops, d)
		}
	}
}

func textOf(ops []event.Operation) (length int) {
	for _, o := range ops {
		length += len(o.Path)
	}
	return length
}

func parse(t *testing.T, s string) map[string]any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return numbers(v).(map[string]any)
}

func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case json.Number:
		n, err := v.Int64()
		if err != nil {
			panic(err)
		}
		return n
	}
	return v
}

func randomValue(r *rand.Rand, depth int) any {
	names := []string{"a", "b", "a/b", "~", ""}
	switch k := r.IntN(8); {
	case depth == 4 || depth > 0 && k < 3:
		m := map[string]any{}
		for range r.IntN(4) {
			m[names[r.IntN(len(names))]] = randomValue(r, depth-1)
		}
		return m
	case depth > 0 && k < 5:
		l := []any{}
		for range r.IntN(5) {
			l = append(l, randomValue(r, depth-1))
		}
		return l
	case k == 5:
		return nil
	case k == 6:
		return r.IntN(2) == 0
	}
	return []any{int64(r.IntN(3)), float64(r.IntN(3)) + 0.5, strconv.Itoa(r.IntN(3))}[r.IntN(3)]
}

func mutate(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if r.IntN(5) > 0 {
				out[k] = mutate(r, e)
			}
		}
		if r.IntN(3) == 0 {
			out["b"] = randomValue(r, 2)
		}
		return out
	case []any:
		out := []any{}
		for _, e := range v {
			if r.IntN(4) > 0 {
				out = append(out, mutate(r, e))
			}
			if r.IntN(6) == 0 {
				out = append(out, randomValue(r, 1))
			}
		}
		return out
	}
	if r.IntN(4) == 0 {
		return randomValue(r, 1)
	}
	return v
}

func copied(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = copied(e)
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, e := range v {
			out = append(out, copied(e))
		}
		return out
	}
	return v
}

func apply(v any, path []string, o event.Operation) (any, error) {
	if len(path) == 0 {
		return copied(o.Value), nil
	}
	name := strings.ReplaceAll(strings.ReplaceAll(path[0], "~1", "/"), "~0", "~")
	last := len(path) == 1
	switch v := v.(type) {
	case map[string]any:
		child, ok := v[name]
		if ok == (last && o.Op == "add") {
			return nil, fmt.Errorf("field %q exists: %v", name, ok)
		}
		if last && o.Op == "remove" {
			delete(v, name)
			return v, nil
		}
		var err error
		v[name], err = apply(child, path[1:], o)
		return v, err
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i > len(v) || i == len(v) && !(last && o.Op == "add") {
			return nil, fmt.Errorf("no element %q of %d", name, len(v))
		}
		switch {
		case last && o.Op == "add":
			return slices.Insert(v, i, copied(o.Value)), nil
		case last && o.Op == "remove":
			return slices.Delete(v, i, i+1), nil
		}
		v[i], err = apply(v[i], path[1:], o)
		return v, err
	}
	return nil, fmt.Errorf("%v has no %q", v, name)
}
