package managers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tattler-dev/tattler/diff"
)

// managed returns an object with entries of managed fields, by manager.
func managed(spec map[string]any, fields []string) map[string]any {
	var entries []any
	for i, f := range fields {
		entries = append(entries, map[string]any{"manager": fmt.Sprint("m", i), "fieldsV1": json.RawMessage(f)})
	}
	return map[string]any{"spec": spec, "metadata": map[string]any{"managedFields": entries}}
}

// TestManyManagers: the steps to find the owner of each of many fields grow with the size of the object and its managed fields,
// not with the product of fields and managers.
func TestManyManagers(t *testing.T) {
	field := func(names ...string) (p diff.Path) {
		for _, name := range names {
			p = append(p, diff.Elem{Name: name})
		}
		return p
	}
	for _, tc := range []struct {
		why  string
		of   func(i int) string // the fields of an entry
		want func(i int) string
		list bool
	}{
		{"a field of each manager", func(i int) string { return fmt.Sprintf(`{"f:spec":{"f:of":{"f:k%d":{}}}}`, i) }, func(i int) string { return fmt.Sprint("m", i) }, false},
		{"each has all, as a whole", func(int) string { return `{"f:spec":{"f:of":{}}}` }, func(int) string { return Unknown }, false},
		{"each has another field", func(i int) string { return fmt.Sprintf(`{"f:spec":{"f:of":{"f:other%d":{}}}}`, i) }, func(int) string { return Unknown }, false},
		{"an element of each manager", func(i int) string {
			return fmt.Sprintf(`{"f:spec":{"f:of":{"k:{\"name\":\"k%d\"}":{".":{},"f:name":{},"f:v":{}}}}}`, i)
		},
			func(i int) string { return fmt.Sprint("m", i) }, true},
	} {
		steps := func(n int) int {
			var fields []string
			of, list := map[string]any{}, []any{}
			for i := range n {
				fields = append(fields, tc.of(i))
				of[fmt.Sprint("k", i)] = "x"
				list = append(list, map[string]any{"name": fmt.Sprint("k", i), "v": "x"})
			}
			spec := map[string]any{"of": of}
			if tc.list {
				spec["of"] = list
			}
			es := Parse(managed(spec, fields))
			for i := range n {
				p := field("spec", "of", fmt.Sprint("k", i))
				if tc.list {
					p = append(field("spec", "of"), diff.Elem{Kind: diff.Keyed, Keys: []diff.KeyValue{{Name: "name", Value: fmt.Sprint("k", i)}}}, diff.Elem{Name: "v"})
				}
				if got, _ := es.Owner(p, "x"); got != tc.want(i) {
					t.Fatalf("%s: %s has the owner %s, want %s", tc.why, p, got, tc.want(i))
				}
			}
			return es.lists.steps
		}
		if few, many := steps(200), steps(400); few == 0 || many > 2*few+100 {
			t.Errorf("%s: %d steps for 200 fields and managers, and %d for 400", tc.why, few, many)
		}
	}
}

// slow finds owners as a node does, by visiting the trees of all entries at each step.
type slow struct {
	es        Entries
	owned     []owned
	inherited bool
}

func (s slow) step(child func(*tree) *tree) slow {
	if s.inherited {
		return s
	}
	next := slow{es: s.es}
	for _, o := range s.owned {
		if t := child(o.tree).open(); t != nil {
			next.owned = append(next.owned, owned{entry: o.entry, tree: t})
		}
	}
	if len(next.owned) > 0 {
		return next
	}
	next.inherited = true
	for _, o := range s.owned {
		if o.leaf {
			next.owned = append(next.owned, o)
		}
	}
	return next
}

func (s slow) field(name string) slow { return s.step(func(t *tree) *tree { return t.fields[name] }) }

func (s slow) element(i int, v any) slow {
	return s.step(func(t *tree) *tree {
		for _, e := range t.elements {
			if e.is(i, v, nil) {
				return e.tree
			}
		}
		return nil
	})
}

// owners adds the owners of a value, and returns false if a part has none.
func (s slow) owners(value any, out map[string]bool) bool {
	found := false
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			if !s.inherited && !s.field(name).owners(child, out) {
				return false
			}
		}
		found = len(v) > 0 && !s.inherited
	case []any:
		for i, child := range v {
			if !s.inherited && !s.element(i, child).owners(child, out) {
				return false
			}
		}
		found = len(v) > 0 && !s.inherited
	}
	if found {
		return true
	}
	for _, o := range s.owned {
		if s.inherited || o.tree.owned {
			out[s.es.list[o.entry].Manager] = true
			found = true
		}
	}
	return found
}

func (s slow) owner(value any) string {
	out := map[string]bool{}
	if !s.owners(value, out) || len(out) != 1 {
		return Unknown
	}
	for m := range out {
		return m
	}
	return Unknown
}

// TestSameOwners compares the owners that nodes find with those that a visit of each entry's tree finds, of random objects and
// managed fields.
func TestSameOwners(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	names := []string{"a", "b", "c"}
	var value func(depth int) any
	value = func(depth int) any {
		switch n := random.IntN(6); {
		case depth == 0 || n == 0:
			return names[random.IntN(len(names))]
		case n == 1:
			var list []any
			for range random.IntN(4) {
				list = append(list, map[string]any{"name": names[random.IntN(len(names))], "v": value(depth - 1)})
			}
			return list
		case n == 2:
			return []any{names[random.IntN(len(names))], names[random.IntN(len(names))]}
		}
		m := map[string]any{}
		for _, name := range names[random.IntN(len(names)):] {
			m[name] = value(depth - 1)
		}
		return m
	}
	var fields func(v any) map[string]any
	fields = func(v any) map[string]any {
		out := map[string]any{}
		if random.IntN(4) == 0 {
			return out
		}
		if random.IntN(2) == 0 {
			out["."] = map[string]any{}
		}
		switch v := v.(type) {
		case map[string]any:
			for name, child := range v {
				if random.IntN(3) > 0 {
					out["f:"+name] = fields(child)
				}
			}
		case []any:
			for i, child := range v {
				m, ok := child.(map[string]any)
				switch random.IntN(4) {
				case 0:
					out[fmt.Sprint("i:", i)] = fields(child)
				case 1, 2:
					if ok {
						out[fmt.Sprintf(`k:{"name":%q}`, m["name"])] = fields(child)
					} else {
						out[fmt.Sprintf(`v:%q`, child)] = fields(child)
					}
				}
			}
		}
		return out
	}
	known, visited := 0, 0
	for range 400 {
		spec := map[string]any{"x": value(4)}
		var texts []string
		for range 1 + random.IntN(4) {
			b, err := json.Marshal(map[string]any{"f:spec": fields(spec)})
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, string(b))
		}
		es := Parse(managed(spec, texts))
		all := slow{es: es}
		for i, tree := range es.trees() {
			if tree != nil {
				all.owned = append(all.owned, owned{entry: i, tree: tree})
			}
		}
		var visit func(at Place, s slow, p diff.Path, v any)
		visit = func(at Place, s slow, p diff.Path, v any) {
			got, _ := at.Owner(v)
			direct, _ := es.Owner(p, v)
			if want := s.owner(v); got != want || direct != want {
				t.Fatalf("%s of %v, %s: %s and %s, want %s", p, spec, texts, got, direct, want)
			}
			if visited++; got != Unknown {
				known++
			}
			switch v := v.(type) {
			case map[string]any:
				for name, child := range v {
					e := diff.Elem{Name: name}
					visit(at.Step(e), s.field(name), append(p[:len(p):len(p)], e), child)
				}
			case []any:
				for i, child := range v {
					e := diff.Elem{Kind: diff.Index, Index: i}
					visit(at.Step(e), s.element(i, child), append(p[:len(p):len(p)], e), child)
				}
			}
		}
		visit(es.Root(), all, nil, any(map[string]any{"spec": spec}))
	}
	if known < visited/10 {
		t.Errorf("of %d places, only %d have a known owner", visited, known)
	}
}
