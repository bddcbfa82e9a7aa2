package managers

import "github.com/tattler-dev/tattler/diff"

// fewElements is the number of elements up to which comparing all of them is cheaper than an index.
const fewElements = 8

// lists find elements of the object's lists by merge keys or values, for many paths into one long list. They are for one
// goroutine, as trees are.
type lists struct {
	of map[*any]map[string]int // by the first element of a list, then by the texts of steps
	// steps counts the work of finding owners: the places that were visited, and the nodes of trees that were read.
	steps int
}

func (l *lists) count(steps int) {
	if l != nil {
		l.steps += steps
	}
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
