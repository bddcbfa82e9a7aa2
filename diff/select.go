package diff

import (
	"cmp"
	"maps"
	"slices"
)

// maxSelected bounds the result of Select: the author of an object decides how many paths it has.
const maxSelected = 1000

// Select returns the values that patterns select in an object, each once with its path, as additions, in the order of
// Objects. Of nested selected values only the outer one is returned; if ** selects the object as a whole, its fields are. Paths
// identify list elements like Objects without a schema. It returns the first 1,000 values, and how many more there are.
func Select(root map[string]any, patterns []Pattern) (selected []Change, more int) {
	s := selecting{patterns: patterns}
	at := make([]matched, len(patterns))
	for i, p := range patterns {
		if len(p.steps) > 0 {
			at[i] = p.begin()
		}
	}
	s.fields(at, root)
	return s.found, s.more
}

type selecting struct {
	patterns []Pattern
	path     Path
	found    []Change
	more     int
}

func (s *selecting) fields(at []matched, v map[string]any) {
	order := cmp.Compare[string]
	if len(s.path) == 0 {
		order = compareRoot
	}
	for _, name := range slices.SortedFunc(maps.Keys(v), order) {
		s.value(at, Elem{Kind: Field, Name: name}, v[name], func(p Pattern, m matched) matched { return p.nextField(m, name) })
	}
}

func (s *selecting) elements(at []matched, v []any) {
	names, _ := readingNames(v, nil)
	for i, child := range v {
		e := Elem{Kind: Index, Index: i}
		if names != nil {
			e = names[i].Elem
		}
		s.value(at, e, child, func(p Pattern, m matched) matched { return p.nextElement(m, i, child) })
	}
}

// value visits a value one step below the positions at in the patterns.
func (s *selecting) value(at []matched, e Elem, v any, step func(Pattern, matched) matched) {
	if v == nil {
		return
	}
	next, reached, done := make([]matched, len(at)), false, false
	for i, p := range s.patterns {
		if at[i] != 0 {
			next[i] = step(p, at[i])
			reached, done = reached || next[i] != 0, done || p.done(next[i])
		}
	}
	if !reached {
		return
	}
	s.path = append(s.path, e)
	defer func() { s.path = s.path[:len(s.path)-1] }()
	switch v := v.(type) {
	case map[string]any:
		if !done {
			s.fields(next, v)
		}
	case []any:
		if !done {
			s.elements(next, v)
		}
	}
	switch {
	case !done:
	case len(s.found) == maxSelected:
		s.more++
	default:
		s.found = append(s.found, Change{Op: Add, Path: slices.Clone(s.path), To: v})
	}
}
