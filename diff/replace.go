package diff

import "slices"

// Visitor is what Visit calls on its way to the values that a pattern selects.
type Visitor interface {
	// Enter takes a step down, and Leave one back.
	Enter(Elem)
	Leave()
	// Selected returns what takes the place of a selected value. The steps that were taken lead to it.
	Selected(v any) any
}

// Replace calls fn for every value of an object that the pattern selects and stores what it returns
// in its place. The path that fn gets is fn's to keep, so that a deep object costs its depth for each
// selected value: see Visit, which says the rest.
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

// Visit goes to every value of an object that the pattern selects and replaces it. Below a selected value
// nothing else is visited; an object that is selected as a whole (**) is visited field by field. In a list,
// [name=x] selects the elements that have that field, and [3] the fourth. Steps name list elements by name
// where these are unique (as Objects does without a schema), else by index. Fields are visited in no
// particular order.
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
