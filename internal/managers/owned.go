package managers

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/diff"
)

// Owned returns the fields that entry i of List owns, with their current values in To, in path order. Merge keys of list
// elements are left out, and so are owned fields that the object no longer has. It returns at most limit fields, and
// how many more there are. An entry without readable fields owns nothing.
func (es Entries) Owned(i, limit int) (fields []diff.Change, more int) {
	if es.trees == nil {
		return nil, 0
	}
	trees := es.trees()
	if i < 0 || i >= len(trees) {
		return nil, 0
	}
	w := walk{limit: limit, split: es.split, lists: es.lists}
	w.visit(trees[i], nil, es.object, nil)
	return w.fields, w.more
}

// walk collects the owned fields of one tree.
type walk struct {
	limit, more int
	split       func(diff.Path) bool
	lists       *lists
	fields      []diff.Change
}

// visit adds what a node owns. keys are the merge keys of the list element that the node is.
func (w *walk) visit(t *tree, at diff.Path, value any, keys map[string]any) {
	if t.open() == nil || value == nil {
		return
	}
	if t.leaf {
		if !filled(value) || !w.split(at) {
			w.add(at, value)
		}
		return
	}
	m, _ := value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(t.fields)) {
		if _, key := keys[name]; !key {
			w.visit(t.fields[name], append(slices.Clip(at), diff.Elem{Kind: diff.Field, Name: name}), m[name], nil)
		}
	}
	list, _ := value.([]any)
	if len(list) == 0 {
		return
	}
	for _, e := range t.elements {
		i := -1
		if e.index < 0 {
			i = w.lists.find(list, e.step(-1)) // of a long list
		}
		if i < 0 {
			i = e.in(list)
		}
		if i >= 0 {
			w.visit(e.tree, append(slices.Clip(at), e.step(i)), list[i], e.keys)
		}
	}
}

// filled reports whether a value has parts.
func filled(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) > 0
	case []any:
		return len(v) > 0
	}
	return false
}

// split reports whether any entry owns parts of a value: then an entry that owns the value as such only wrote it when it was
// empty. Otherwise the value is atomic.
func (es Entries) split(p diff.Path) bool {
	at := es.Root().at
	for _, e := range p {
		at = at.step(e)
	}
	return !at.inherited && at.node.parts
}

func (w *walk) add(at diff.Path, value any) {
	if len(w.fields) >= w.limit {
		w.more++
		return
	}
	w.fields = append(w.fields, diff.Change{Path: at, Op: diff.Add, To: value})
}

// in returns the index of the element in a list; -1 if the list does not have it.
func (e element) in(list []any) int {
	return slices.IndexFunc(list, func(v any) bool {
		if e.keys != nil {
			m, ok := v.(map[string]any)
			return ok && e.is(-1, m, e.defaults(m))
		}
		return e.index < 0 && e.is(-1, v, nil)
	})
}

// defaults returns the merge keys that the object lacks: the server fills them in before it records ownership, as with a
// port's protocol.
func (e element) defaults(m map[string]any) (keys []diff.KeyValue) {
	if len(m) == 0 || !slices.ContainsFunc(slices.Collect(maps.Keys(e.keys)), func(name string) bool { return m[name] != nil }) {
		return nil
	}
	for name, v := range e.keys {
		if m[name] == nil {
			keys = append(keys, diff.KeyValue{Name: name, Value: v})
		}
	}
	return keys
}

// step returns the element's step of a path.
func (e element) step(i int) diff.Elem {
	switch {
	case e.keys != nil:
		step := diff.Elem{Kind: diff.Keyed}
		for name, v := range e.keys {
			step.Keys = append(step.Keys, diff.KeyValue{Name: name, Value: v})
		}
		slices.SortFunc(step.Keys, func(a, b diff.KeyValue) int { return cmp.Compare(rank(a.Name), rank(b.Name)) })
		return step
	case e.index < 0:
		return diff.Elem{Kind: diff.Value, Value: e.value}
	}
	return diff.Elem{Kind: diff.Index, Index: i}
}

// rank orders merge keys as the built-in kinds declare them: protocol comes last.
func rank(name string) string {
	if strings.EqualFold(name, "protocol") {
		return "\xff" + name
	}
	return name
}
