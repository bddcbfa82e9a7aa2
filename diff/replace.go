package diff

// Replace calls fn for every value of an object that the pattern selects and stores what it returns
// in its place. Below a selected value nothing else is visited; an object that is selected as a whole
// (**) is visited field by field. In a list, [name=x] selects the elements that have that field, and
// [3] the fourth. The path that fn gets names list elements by name where these are unique (as
// Objects does without a schema), else by index; it is fn's to keep. Fields are visited in no
// particular order.
func (p Pattern) Replace(root map[string]any, fn func(Path, any) any) {
	if len(p.steps) == 0 {
		return
	}
	r := replacer{p, fn}
	r.fields(p.begin(), nil, root)
}

type replacer struct {
	Pattern
	fn func(Path, any) any
}

func (r replacer) fields(m matched, at Path, v map[string]any) {
	for name, child := range v {
		if next := r.nextField(m, name); next != 0 {
			v[name] = r.value(next, at, Elem{Kind: Field, Name: name}, child)
		}
	}
}

func (r replacer) elements(m matched, at Path, v []any) {
	var names []Elem
	if n := readingNames(v); n != nil {
		names = n[0]
	}
	for i, child := range v {
		next := r.nextElement(m, i, child)
		if next == 0 {
			continue
		}
		e := Elem{Kind: Index, Index: i}
		if names != nil {
			e = names[i]
		}
		v[i] = r.value(next, at, e, child)
	}
}

func (r replacer) value(m matched, at Path, e Elem, v any) any {
	at = append(at[:len(at):len(at)], e)
	if r.done(m) {
		return r.fn(at, v)
	}
	switch v := v.(type) {
	case map[string]any:
		r.fields(m, at, v)
	case []any:
		r.elements(m, at, v)
	}
	return v
}
