package diff

import "slices"

// readingKeys are the fields by which objects in a list of no stated identity are told apart.
var readingKeys = []string{"name", "key", "type", "id"}

func (d *differ) lists(from, to []any, s Schema) {
	var elem Schema
	if s != nil {
		elem = s.Elem()
	}
	if f, t := declaredNames(from, s, elem), declaredNames(to, s, elem); f != nil && t != nil {
		d.named(from, to, f, t, elem)
		return
	}
	if allScalars(from) && allScalars(to) {
		d.emit(Replace, from, to)
		return
	}
	if names := readingNames(from, to); names != nil {
		if sameOrder(names[0], names[1]) {
			d.named(from, to, names[0], names[1], elem)
		} else {
			d.emit(Replace, from, to)
		}
		return
	}
	d.indexed(from, to, elem)
}

// named compares lists whose elements have unique names: those before in their order, then the new.
func (d *differ) named(from, to []any, fromNames, toNames []Elem, s Schema) {
	at := make(map[string]int, len(to))
	for i, e := range toNames {
		at[e.id()] = i
	}
	here := d.mark()
	for i, e := range fromNames {
		j, ok := at[e.id()]
		switch {
		case !ok:
			d.step(e, from[i], nil, s)
		case !Equal(from[i], to[j]):
			d.step(e, from[i], to[j], s)
		}
		if d.exceeds(here) {
			return
		}
		delete(at, e.id())
	}
	for j, e := range toNames {
		if _, ok := at[e.id()]; !ok {
			continue
		}
		if d.step(e, nil, to[j], s); d.exceeds(here) {
			return
		}
	}
}

// indexed compares what is left of two lists without their common front and back.
func (d *differ) indexed(from, to []any, s Schema) {
	front := 0
	for front < min(len(from), len(to)) && Equal(from[front], to[front]) {
		front++
	}
	back := 0
	for back < min(len(from), len(to))-front && Equal(from[len(from)-1-back], to[len(to)-1-back]) {
		back++
	}
	f, t := from[front:len(from)-back], to[front:len(to)-back]
	if len(f) != len(t) && len(f) > 0 && len(t) > 0 {
		d.emit(Replace, from, to)
		return
	}
	here := d.mark()
	for i := range max(len(f), len(t)) {
		e := Elem{Kind: Index, Index: front + i}
		d.path, d.length = append(d.path, e), d.length+e.length()
		switch {
		case len(f) == 0:
			d.emit(Add, nil, t[i])
		case len(t) == 0:
			d.emit(Remove, f[i], nil)
		case !Equal(f[i], t[i]):
			d.values(f[i], t[i], s)
		}
		d.path, d.length = d.path[:len(d.path)-1], d.length-e.length()
		if d.exceeds(here) {
			return
		}
	}
}

// declaredNames names the elements as the schema says; nil where it does not, or they are not unique.
func declaredNames(list []any, s, elem Schema) []Elem {
	if s == nil {
		return nil
	}
	typ, keys := s.List()
	switch typ {
	case ListMap:
		return uniqueNames(list, func(v any) (Elem, bool) { return mergeKeys(v, keys, elem) })
	case ListSet:
		return uniqueNames(list, func(v any) (Elem, bool) {
			return Elem{Kind: Value, Value: plainNumber(v)}, isScalar(v) && v != nil
		})
	}
	return nil
}

// mergeKeys names an element by its merge keys. A key without value and default is left out, as
// the API server does, as long as there is another.
func mergeKeys(v any, keys []string, s Schema) (Elem, bool) {
	m, ok := v.(map[string]any)
	e := Elem{Kind: Keyed}
	for _, k := range keys {
		v := m[k]
		if v == nil && s != nil {
			v = s.Default(k)
		}
		if v != nil {
			ok = ok && isScalar(v)
			e.Keys = append(e.Keys, KeyValue{k, plainNumber(v)})
		}
	}
	return e, ok && len(e.Keys) > 0
}

// readingNames names the elements of all lists by the first of readingKeys that tells them apart; nil
// where none does.
func readingNames(lists ...[]any) [][]Elem {
	for _, k := range readingKeys {
		names := make([][]Elem, len(lists))
		found := true
		for i := range lists {
			names[i] = uniqueNames(lists[i], func(v any) (Elem, bool) {
				e, ok := mergeKeys(v, []string{k}, nil)
				return e, ok && e.Keys[0].Value != ""
			})
			found = found && names[i] != nil
		}
		if found {
			return names
		}
	}
	return nil
}

func uniqueNames(list []any, name func(any) (Elem, bool)) []Elem {
	names := make([]Elem, 0, len(list))
	seen := make(map[string]bool, len(list))
	for _, v := range list {
		e, ok := name(v)
		if !ok || seen[e.id()] {
			return nil
		}
		seen[e.id()] = true
		names = append(names, e)
	}
	return names
}

// sameOrder is true where the elements that are in both lists follow each other in the same order.
func sameOrder(from, to []Elem) bool {
	f, t := ids(from), ids(to)
	return slices.Equal(common(f, t), common(t, f))
}

func ids(names []Elem) []string {
	out := make([]string, len(names))
	for i, e := range names {
		out[i] = e.id()
	}
	return out
}

// common returns the elements of a that are in b too, in the order of a.
func common(a, b []string) []string {
	in := make(map[string]bool, len(b))
	for _, s := range b {
		in[s] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !in[s] })
}

// id is equal for equal list elements, and for no others.
func (e Elem) id() string {
	if len(e.Keys) == 1 {
		if s, ok := e.Keys[0].Value.(string); ok { // as nearly always
			return e.Keys[0].Name + "\x00" + s // a path's text has no control characters
		}
	}
	return Path{e}.String()
}

func allScalars(list []any) bool {
	return !slices.ContainsFunc(list, func(v any) bool { return !isScalar(v) })
}

// plainNumber makes an integral float an int64, so that a path does not depend on the decoder.
func plainNumber(v any) any {
	if f, ok := v.(float64); ok && sameNumber(int64(f), f) {
		return int64(f)
	}
	return v
}
