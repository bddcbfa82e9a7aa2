package managers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
)

// TestIndex compares the children that a node finds for list elements with those that a comparison with each child finds.
func TestIndex(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	scalars := []any{"a", "b", "1", int64(1), 1.0, 1.5, true, nil}
	pick := func() any { return scalars[random.IntN(len(scalars))] }
	found := 0
	for range 200 {
		of := &tree{read: true}
		for i := range fewElements + 1 + random.IntN(20) {
			var text string
			switch random.IntN(4) {
			case 0:
				text = fmt.Sprint("i:", random.IntN(20))
			case 1:
				v, err := json.Marshal(pick())
				if err != nil {
					t.Fatal(err)
				}
				text = "v:" + string(v)
			default:
				keys := map[string]any{"name": pick()}
				if random.IntN(2) == 0 {
					keys["protocol"] = pick()
				}
				k, err := json.Marshal(keys)
				if err != nil {
					t.Fatal(err)
				}
				text = "k:" + string(k)
			}
			if e, ok := newElement(text[:1], text[2:]); ok {
				e.tree = &tree{depth: i}
				of.elements = append(of.elements, e)
			}
		}
		all := &node{list: make([]event.Manager, 1), trees: []owned{{tree: of}}}
		all.open(nil)
		for range 50 {
			i, v, keys := random.IntN(21)-1, pick(), []diff.KeyValue(nil)
			if random.IntN(2) == 0 {
				v = map[string]any{"name": pick(), "other": []any{1}}
			}
			if random.IntN(2) == 0 {
				keys = []diff.KeyValue{{Name: "name", Value: pick()}, {Name: "protocol", Value: pick()}}
			}
			var want *tree
			for _, e := range of.elements {
				if e.is(i, v, keys) {
					want = e.tree
					break
				}
			}
			var got *tree
			if n := all.element(i, v, keys); n != nil {
				got = n.trees[0].tree
			}
			if got != want {
				t.Fatalf("element %d, %v, %v: %+v, want %+v", i, v, keys, got, want)
			}
			if want != nil {
				found++
			}
		}
	}
	if found < 500 {
		t.Errorf("only %d elements have a child", found)
	}
}

// TestPlace: a place knows the owner of every value below a part that the server records as a whole.
func TestPlace(t *testing.T) {
	whole := 0
	for _, name := range []string{"deployment", "edited", "pod", "widget"} {
		obj := load(t, name)
		es, visited := Parse(obj), 0
		var visit func(at Place, p diff.Path, v any)
		visit = func(at Place, p diff.Path, v any) {
			visited++
			plain := es.Root()
			for _, e := range p {
				plain.at = plain.at.step(e)
			}
			if got, want := fmt.Sprint(at.Owner(v)), fmt.Sprint(plain.Owner(v)); got != want {
				t.Errorf("%s, %s: %s, want %s", name, p, got, want)
			}
			if at.at.inherited {
				whole++
			}
			below := func(e diff.Elem, v any) { visit(at.Step(e), append(p[:len(p):len(p)], e), v) }
			switch v := v.(type) {
			case map[string]any:
				for k, c := range v {
					below(diff.Elem{Name: k}, c)
				}
			case []any:
				for i, c := range v {
					below(diff.Elem{Kind: diff.Index, Index: i}, c)
				}
			}
		}
		visit(es.Root(), nil, obj)
		if visited < 20 {
			t.Errorf("%s: only %d values", name, visited)
		}
	}
	if whole < 20 {
		t.Errorf("only %d values are below a whole", whole)
	}
}

// TestLists compares the elements that lists find with a search of the whole list.
func TestLists(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	scalars := []any{"a", "b", "c", "1", int64(1), 1.0, 1.5, true}
	pick := func() any { return scalars[random.IntN(len(scalars))] }
	found := 0
	for range 200 {
		var list []any
		for range fewElements + 1 + random.IntN(10) {
			if random.IntN(3) == 0 {
				list = append(list, pick())
				continue
			}
			m := map[string]any{"name": pick(), "other": []any{}}
			if random.IntN(2) == 0 {
				m["port"] = pick()
			}
			list = append(list, m)
		}
		var l lists
		for range 50 {
			e := diff.Elem{Kind: diff.Keyed, Keys: []diff.KeyValue{{Name: "name", Value: pick()}, {Name: "port", Value: pick()}}[:1+random.IntN(2)]}
			if random.IntN(3) == 0 {
				e = diff.Elem{Kind: diff.Value, Value: pick()}
			}
			want := slices.IndexFunc(list, func(v any) bool {
				m, ok := v.(map[string]any)
				if e.Kind == diff.Value {
					return diff.Equal(e.Value, v)
				}
				return ok && !slices.ContainsFunc(e.Keys, func(k diff.KeyValue) bool { return m[k.Name] == nil || !diff.Equal(m[k.Name], k.Value) })
			})
			if got := l.find(list, e); got != want {
				t.Fatalf("%s in %v: %d, want %d", diff.Path{e}, list, got, want)
			}
			if want >= 0 {
				found++
			}
		}
		if len(l.of) != 1 {
			t.Fatalf("%d lists are known", len(l.of))
		}
	}
	if found < 1000 {
		t.Errorf("only %d elements are in the lists", found)
	}
}
