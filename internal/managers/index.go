package managers

import (
	"maps"
	"math"
	"slices"

	"github.com/tattler-dev/tattler/diff"
)

// index finds the children of a node for list elements. Without it, to find those of each element of a list would take the
// square of the list's length. It has their positions by the text of what identifies them.
type index struct {
	byText map[string]int
	keys   [][]string // the names of merge keys, for each set of them in use
}

// maxKeys bounds the sets of merge keys of one list, each of which is looked up for an element. A list has one, and with
// defaults a few. Elements with others have no known owner.
const maxKeys = 16

// fewElements is the number of elements up to which comparing all of them is cheaper than an index.
const fewElements = 8

// element returns the child for a list element, of which some is known: see place.element.
func (t *tree) element(i int, v any, keys []diff.KeyValue) *tree {
	if len(t.elements) <= fewElements {
		for _, e := range t.elements {
			if e.is(i, v, keys) {
				return e.tree
			}
		}
		return nil
	}
	if t.index == nil {
		t.index = newIndex(t.elements)
	}
	first := t.index.find(i, v, keys)
	if first == math.MaxInt {
		return nil
	}
	return t.elements[first].tree
}

func newIndex(elements []element) *index {
	x := &index{byText: make(map[string]int, len(elements))}
	sets := map[string]bool{}
	for i, e := range elements {
		var step diff.Elem
		switch {
		case e.index >= 0:
			step = diff.Elem{Kind: diff.Index, Index: e.index}
		case e.keys == nil:
			step = diff.Elem{Kind: diff.Value, Value: e.value}
		default:
			step.Kind = diff.Keyed
			names := slices.Sorted(maps.Keys(e.keys))
			var set []byte
			for _, name := range names {
				step.Keys = append(step.Keys, diff.KeyValue{Name: name, Value: e.keys[name]})
				set = append(append(set, name...), 0)
			}
			if !sets[string(set)] {
				if len(sets) == maxKeys {
					continue
				}
				sets[string(set)] = true
				x.keys = append(x.keys, names)
			}
		}
		text, ok := textOf(step)
		if _, known := x.byText[text]; ok && !known {
			x.byText[text] = i
		}
	}
	return x
}

// find returns the position of the first child that element.is identifies with a list element; the greatest number without
// one. Only scalars identify elements.
func (x *index) find(i int, v any, keys []diff.KeyValue) int {
	first := math.MaxInt
	look := func(step diff.Elem) {
		text, ok := textOf(step)
		if at, known := x.byText[text]; ok && known {
			first = min(first, at)
		}
	}
	if i >= 0 {
		look(diff.Elem{Kind: diff.Index, Index: i})
	}
	if v != nil {
		look(diff.Elem{Kind: diff.Value, Value: v})
	}
	m, _ := v.(map[string]any)
	for _, names := range x.keys {
		step := diff.Elem{Kind: diff.Keyed}
		for _, name := range names {
			have := m[name]
			for _, k := range keys {
				if have == nil && k.Name == name {
					have = k.Value
				}
			}
			step.Keys = append(step.Keys, diff.KeyValue{Name: name, Value: have})
		}
		look(step)
	}
	return first
}

// lists find elements of the object's lists by merge keys or values, for many paths into one long list. They are for one
// goroutine, as trees are.
type lists struct {
	of map[*any]map[string]int // by the first element of a list, then by the texts of steps
}

// find returns the position of the first element that has all merge keys, or the value, of a step; -1 without one, and for a
// short list.
func (l *lists) find(list []any, e diff.Elem) int {
	if l == nil || len(list) <= fewElements || e.Kind != diff.Value && len(e.Keys) == 0 {
		return -1
	}
	if l.of == nil {
		l.of = map[*any]map[string]int{}
	}
	known := l.of[&list[0]]
	if known == nil {
		known = map[string]int{}
		l.of[&list[0]] = known
	}
	names := ""
	for _, k := range e.Keys {
		names += "\x00" + k.Name // a text of a step has no control characters
	}
	if _, ok := known[names]; !ok {
		known[names] = 0
		for i, v := range list {
			m, _ := v.(map[string]any)
			step := diff.Elem{Kind: e.Kind}
			if e.Kind == diff.Value {
				step.Value = v
			}
			for _, k := range e.Keys {
				if have := m[k.Name]; have != nil {
					step.Keys = append(step.Keys, diff.KeyValue{Name: k.Name, Value: have})
				}
			}
			if len(step.Keys) < len(e.Keys) {
				continue
			}
			text, ok := textOf(step)
			if _, found := known[text]; ok && !found {
				known[text] = i
			}
		}
	}
	if text, ok := textOf(e); ok {
		if i, found := known[text]; found {
			return i
		}
	}
	return -1
}

// textOf returns a text that is equal for equal steps only; ok is false for a value that is not a scalar.
func textOf(step diff.Elem) (text string, ok bool) {
	for _, k := range step.Keys {
		if !scalar(k.Value) {
			return "", false
		}
	}
	if !scalar(step.Value) {
		return "", false
	}
	return string(step.AppendText(nil, true)), true
}

func scalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}
