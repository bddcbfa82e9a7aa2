package diff

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// apply is the inverse of Objects, implemented independently: it follows the paths through a copy.
func apply(before map[string]any, changes []Change) (map[string]any, error) {
	a := applier{removed: map[string]int{}}
	out := clone(before)
	var err error
	for _, c := range changes {
		if out, err = a.set(out, nil, c.Path, c); err != nil {
			return nil, fmt.Errorf("%s: %w", plain(c), err)
		}
	}
	return out.(map[string]any), nil
}

// applier counts the elements removed from each list, because the indexes of Remove refer to the old one.
type applier struct{ removed map[string]int }

func (a applier) set(v any, at, rest Path, c Change) (any, error) {
	switch {
	case len(rest) == 0 && c.Op == Reorder:
		list, ok := v.([]any)
		if !ok {
			return nil, fmt.Errorf("%s is no list", at)
		}
		return reorder(list, c)
	case len(rest) == 0:
		return clone(c.To), nil
	}
	e, rest := rest[0], rest[1:]
	var err error
	if e.Kind == Field {
		m, ok := v.(map[string]any)
		if v == nil && userMaps[at[len(at)-1].Name] {
			m, ok = map[string]any{}, true
		}
		if !ok {
			return nil, fmt.Errorf("%s is no object", at)
		}
		if len(rest) == 0 && (c.Op == Add) != (m[e.Name] == nil) {
			return nil, fmt.Errorf("%s exists: %v", e.Name, m[e.Name] != nil)
		}
		if m[e.Name], err = a.set(m[e.Name], append(slices.Clone(at), e), rest, c); m[e.Name] == nil {
			delete(m, e.Name)
		}
		return m, err
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("%s is no list", at)
	}
	i := e.Index
	if e.Kind == Index && c.Op == Remove && len(rest) == 0 {
		i -= a.removed[at.String()]
		a.removed[at.String()]++
	}
	if e.Kind != Index {
		i = slices.IndexFunc(list, func(v any) bool { return isElement(v, e) })
	}
	switch {
	case len(rest) > 0:
		list[i], err = a.set(list[i], append(slices.Clone(at), e), rest, c)
	case c.Op == Add && e.Kind == Index:
		list = slices.Insert(list, i, clone(c.To))
	case c.Op == Add && i < 0:
		list = append(list, clone(c.To))
	case c.Op == Remove && i >= 0:
		list = slices.Delete(list, i, i+1)
	case c.Op == Replace && i >= 0:
		list[i] = clone(c.To)
	default:
		return nil, fmt.Errorf("element %v is at %d", e, i)
	}
	return list, err
}

// reorder puts the named elements of a list in their new order, in the places that they have among the others.
func reorder(list []any, c Change) ([]any, error) {
	find := func(name any) int {
		return slices.IndexFunc(list, func(v any) bool { return isElement(v, nameElem(name)) })
	}
	var places []int
	for _, name := range c.From.([]any) {
		places = append(places, find(name))
	}
	out := slices.Clone(list)
	for i, name := range c.To.([]any) {
		from := find(name)
		if from < 0 || places[i] < 0 || i > 0 && places[i] < places[i-1] {
			return nil, fmt.Errorf("the order was another: %s", plain(c))
		}
		out[places[i]] = list[from]
	}
	return out, nil
}

func isElement(v any, e Elem) bool {
	if e.Kind == Value {
		return Equal(v, e.Value)
	}
	m, ok := v.(map[string]any)
	if len(e.Keys) == 1 && e.Keys[0].Name == "protocol" {
		ok = m["port"] == nil // the other merge key is part of the name by its absence
	}
	for _, k := range e.Keys {
		have := m[k.Name]
		if have == nil && k.Name == "protocol" {
			have = "TCP"
		}
		ok = ok && Equal(have, k.Value)
	}
	return ok
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, c := range v {
			m[k] = clone(c)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, c := range v {
			l[i] = clone(c)
		}
		return l
	}
	return v
}

// canonical removes what Objects ignores: nulls, empty maps of user-named keys, and the order of sets and of lists of objects
// (in which additions come last).
func canonical(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for k, c := range v {
			if c = canonical(k, c); c != nil {
				m[k] = c
			}
		}
		if len(m) == 0 && userMaps[name] {
			return nil
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, c := range v {
			l[i] = canonical("", c)
		}
		if name == "set" || !allScalars(l) {
			slices.SortFunc(l, func(a, b any) int { return slices.Compare(marshal(a), marshal(b)) })
		}
		return l
	}
	return v
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// generator makes objects that cover every way to compare lists.
type generator struct{ *rand.Rand }

var genNames = []string{"a", "labels", "data", "ports", "set", "args", "steps", "map", "x.y"}

func (g generator) object(depth int) map[string]any {
	m := map[string]any{}
	for range g.IntN(4) {
		name := genNames[g.IntN(len(genNames))]
		m[name] = g.field(name, depth-1)
	}
	return m
}

func (g generator) field(name string, depth int) any {
	switch name {
	case "ports":
		return g.list(func() any {
			m := map[string]any{"port": int64(g.IntN(3)), "v": g.scalar()}
			if g.IntN(2) == 0 {
				m["protocol"] = []any{"TCP", "UDP"}[g.IntN(2)]
			}
			return m
		})
	case "set", "args":
		return g.list(g.scalar)
	case "steps", "map":
		return g.list(func() any {
			m := g.object(depth)
			m[[]string{"name", "id", "other"}[g.IntN(3)]] = g.scalar()
			return m
		})
	}
	return g.value(depth)
}

func (g generator) list(elem func() any) []any {
	l := []any{}
	for range g.IntN(4) {
		l = append(l, elem())
	}
	return l
}

func (g generator) value(depth int) any {
	if depth <= 0 {
		return g.scalar()
	}
	switch g.IntN(4) {
	case 0:
		return g.object(depth - 1)
	case 1:
		return g.list(func() any { return g.value(depth - 1) })
	}
	return g.scalar()
}

func (g generator) scalar() any {
	return []any{int64(g.IntN(3)), float64(g.IntN(3)), "s", "", true, nil, "1"}[g.IntN(7)]
}

// mutate changes a few places, as writes do.
func (g generator) mutate(v any, depth int) any {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			switch g.IntN(6) {
			case 0:
				delete(v, k)
			case 1:
				v[k] = g.field(k, depth-1)
			default:
				v[k] = g.mutate(v[k], depth-1)
			}
		}
		if g.IntN(3) == 0 {
			maps.Copy(v, g.object(depth-1))
		}
	case []any:
		for i := range v {
			v[i] = g.mutate(v[i], depth-1)
		}
		switch {
		case g.IntN(4) == 0:
			g.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
		case len(v) > 0 && g.IntN(3) == 0:
			i := g.IntN(len(v))
			return slices.Delete(v, i, i+1)
		}
	}
	return v
}

func checkApply(t *testing.T, seed uint64) {
	t.Helper()
	g := generator{rand.New(rand.NewPCG(seed, 1))}
	before := g.object(3)
	after := g.mutate(clone(before), 3).(map[string]any)
	for i, s := range []Schema{nil, fractal{}, nil, fractal{}} {
		m := objectLimits
		if i >= 2 {
			m = limits{depth: 1 + g.IntN(4), changes: 1 + g.IntN(8), length: 1 + g.IntN(200)}
		}
		changes := objects(before, after, s, m)
		checkLimits(t, changes, m)
		got, err := apply(before, changes)
		if err != nil {
			t.Fatalf("seed %d: %v\nbefore %s\nafter  %s", seed, err, marshal(before), marshal(after))
		}
		if want, got := canonical("", after), canonical("", got); !Equal(want, got) {
			t.Fatalf("seed %d: the changes do not lead from before to after:\n%s\nbefore %s\nafter  %s\n%v", seed, cmp.Diff(want, got), marshal(before), marshal(after), changes)
		}
		for _, c := range Objects(before, clone(before).(map[string]any), s) {
			t.Fatalf("seed %d: a copy differs: %s", seed, plain(c))
		}
		Text(changes, TextOptions{}) // must not panic on any of them
	}
}

// checkLimits checks that the changes respect the limits, as far as the object's fields allow.
func checkLimits(t *testing.T, changes []Change, m limits) {
	t.Helper()
	length := 0
	for _, c := range changes {
		for _, e := range c.Path {
			length += e.length()
		}
		if len(c.Path) > m.depth+1 {
			t.Fatalf("%s is too deep", c.Path)
		}
	}
	if len(changes) > max(1, m.changes) || length > m.length && len(changes) > 1 {
		t.Fatalf("%d changes with %d bytes of paths, with limits %+v", len(changes), length, m)
	}
}

// fractal applies the test schema at every depth.
type fractal struct{ *testSchema }

func (f fractal) Field(name string) Schema { return fractal{schemas.fields[name]} }
func (f fractal) Elem() Schema {
	if f.testSchema == nil {
		return fractal{}
	}
	return fractal{f.elem}
}
func (f fractal) List() (ListType, []string) {
	if f.testSchema == nil {
		return ListUnknown, nil
	}
	return f.testSchema.List()
}
func (f fractal) Default(name string) any {
	if f.testSchema == nil {
		return nil
	}
	return f.testSchema.Default(name)
}

func TestApply(t *testing.T) {
	for seed := range uint64(1500) {
		checkApply(t, seed)
	}
}

// The elements that stay are in the new order. TestApply does not see that, because additions come last.
func TestApplyOrder(t *testing.T) {
	for seed := range uint64(500) {
		g := generator{rand.New(rand.NewPCG(seed, 2))}
		list := func(from, size int) []any {
			l := []any{}
			for _, id := range g.Perm(size) {
				if id >= from {
					l = append(l, map[string]any{"id": int64(id), "v": g.scalar()})
				}
			}
			return l
		}
		before, after := list(0, 7), list(g.IntN(3), 10)
		got, err := apply(map[string]any{"map": before}, Objects(map[string]any{"map": before}, map[string]any{"map": after}, schemas))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		ids := func(l any) (ids []int64) {
			for _, v := range l.([]any) {
				if id := v.(map[string]any)["id"].(int64); id < 7 {
					ids = append(ids, id)
				}
			}
			return ids
		}
		if want, got := ids(after), ids(got["map"]); !slices.Equal(want, got) {
			t.Fatalf("seed %d: the order is %v, want %v", seed, got, want)
		}
	}
}

// Moved names as few elements as explain the order.
func TestMoved(t *testing.T) {
	for _, tc := range []struct{ before, after, want string }{
		{"{map: [{id: a}, {id: b}]}", "{map: [{id: b}, {id: a}]}", "[id=a]"},
		{"{map: [{id: a}, {id: b}, {id: c}, {id: d}]}", "{map: [{id: d}, {id: a}, {id: b}, {id: c}]}", "[id=d]"},
		{"{map: [{id: a}, {id: b}, {id: c}, {id: d}]}", "{map: [{id: b}, {id: c}, {id: d}, {id: a}]}", "[id=a]"},
		{"{ports: [{port: 1}, {port: 1, protocol: UDP}]}", "{ports: [{port: 1, protocol: UDP}, {port: 1}]}", "[port=1,protocol=TCP]"},
		{"{map: [{id: a}]}", "{map: [{id: a, v: 1}]}", ""},
	} {
		got := ""
		for _, c := range Objects(decode(t, tc.before), decode(t, tc.after), schemas) {
			for _, e := range c.Moved() {
				got += Path{e}.String()
			}
		}
		if got != tc.want {
			t.Errorf("from %s to %s: moved %s, want %s", tc.before, tc.after, got, tc.want)
		}
	}
}

func FuzzApply(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkApply(t, seed) })
}
