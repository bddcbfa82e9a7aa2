package diff

import "slices"

// Visitor holds the callbacks of Visit.
type Visitor interface {
	// Enter is called before a step down, Leave after it.
	Enter(Elem)
	Leave()
	// Selected returns the replacement of a selected value, which the entered steps lead to.
	Selected(v any) any
}

// Replace calls fn for every value of an object that the pattern selects, and stores the result in its place. fn may keep its
// path, so each selected value costs its depth. See Visit for the rest.
func (p Pattern) Replace(root map[string]any, fn func(Path, any) any) {
	p.Visit(root, &replacer{fn: fn})
}

type replacer struct {
	at Path
	fn func(Path, any) any
}

func (r *replacer) Enter(e Elem)       { r.at = append(r.at, e) }
func (r *replacer) Leave()             { r.at = r.at[:len(r.at)-1] }
func (r *replacer) Selected(v any) any { return r.fn(slices.Clone(r.at), v) }

// Visit replaces every value of an object that the pattern selects. Nothing below a selected value is visited; an object that
// is selected as a whole (**) is visited field by field. In a list, [name=x] selects the elements with that field, and [3] the
// fourth. Steps identify list elements by name if names are unique (like Objects without a schema), else by index. The order
// of fields is unspecified.
func (p Pattern) Visit(root map[string]any, to Visitor) {
	if len(p.steps) > 0 {
		visit{p, to}.fields(p.begin(), root)
	}
}

type visit struct {
	Pattern
	to Visitor
}

func (r visit) fields(m matched, v map[string]any) {
	for name, child := range v {
		if next := r.nextField(m, name); next != 0 {
			v[name] = r.value(next, Elem{Kind: Field, Name: name}, child)
		}
	}
}

func (r visit) elements(m matched, v []any) {
	names, _ := readingNames(v, nil)
	for i, child := range v {
		next := r.nextElement(m, i, child)
		if next == 0 {
			continue
		}
		e := Elem{Kind: Index, Index: i}
		if names != nil {
			e = names[i].Elem
		}
		v[i] = r.value(next, e, child)
	}
}

func (r visit) value(m matched, e Elem, v any) any {
	r.to.Enter(e)
	defer r.to.Leave()
	if r.done(m) {
		return r.to.Selected(v)
	}
	switch v := v.(type) {
	case map[string]any:
		r.fields(m, v)
	case []any:
		r.elements(m, v)
	}
	return v
}
