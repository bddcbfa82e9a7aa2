package diff

import "slices"

// readingKeys are the fields that identify objects in a list without a declared identity.
var readingKeys = []string{"name", "key", "type", "id"}

func (d *differ) lists(from, to []any, s Schema) {
	var elem Schema
	if s != nil {
		elem = s.Elem()
	}
	if f := declaredNames(from, s, elem); f != nil {
		if t := declaredNames(to, s, elem); t != nil {
			if typ, _ := s.List(); typ == ListMap && !sameNames(f, t) {
				d.reordered(f, t)
			}
			d.named(from, to, f, t, elem)
			return
		}
	}
	if allScalars(from) && allScalars(to) {
		d.emit(Replace, from, to)
		return
	}
	if f, t := readingNames(from, to); f != nil {
		if sameOrder(f, t) {
			d.named(from, to, f, t, elem)
		} else {
			d.emit(Replace, from, to)
		}
		return
	}
	d.indexed(from, to, elem)
}

// named compares lists whose elements have unique names: old ones in their order, then new ones.
func (d *differ) named(from, to []any, fromNames, toNames []named, s Schema) {
	here := d.mark()
	if sameNames(fromNames, toNames) { // nearly always
		for i, e := range fromNames {
			if !Equal(from[i], to[i]) {
				if d.step(e.Elem, from[i], to[i], s); d.exceeds(here) {
					return
				}
			}
		}
		return
	}
	at := make(map[string]int, len(to))
	for i, e := range toNames {
		at[e.id] = i
	}
	for i, e := range fromNames {
		j, ok := at[e.id]
		switch {
		case !ok:
			d.step(e.Elem, from[i], nil, s)
		case !Equal(from[i], to[j]):
			d.step(e.Elem, from[i], to[j], s)
		}
		if d.exceeds(here) {
			return
		}
		delete(at, e.id)
	}
	for j, e := range toNames {
		if _, ok := at[e.id]; !ok {
			continue
		}
		if d.step(e.Elem, nil, to[j], s); d.exceeds(here) {
			return
		}
	}
}

// indexed compares the parts of two lists between their common front and back.
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

// declaredNames names the elements by the schema; nil if it does not define names, or they are not unique.
func declaredNames(list []any, s, elem Schema) []named {
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

// mergeKeys names an element by its merge keys. It omits a key without a value and a default, as the API server does, if
// there is another one.
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

// readingNames names the elements of two lists by the first of readingKeys that is unique in both; nil if none is.
func readingNames(from, to []any) (f, t []named) {
	for _, k := range readingKeys {
		keys := []string{k}
		name := func(v any) (Elem, bool) {
			e, ok := mergeKeys(v, keys, nil)
			return e, ok && e.Keys[0].Value != ""
		}
		if f = uniqueNames(from, name); f == nil {
			continue
		}
		if t = uniqueNames(to, name); t != nil {
			return f, t
		}
	}
	return nil, nil
}

// named is a list element and its name.
type named struct {
	Elem
	id string // Elem.id
}

// fewNames is the number of names up to which comparing all pairs is cheaper than a map.
const fewNames = 8

func uniqueNames(list []any, name func(any) (Elem, bool)) []named {
	names := make([]named, 0, len(list))
	var seen map[string]bool
	if len(list) > fewNames {
		seen = make(map[string]bool, len(list))
	}
	for _, v := range list {
		e, ok := name(v)
		if !ok {
			return nil
		}
		n := named{e, e.id()}
		if seen[n.id] || seen == nil && slices.ContainsFunc(names, func(other named) bool { return other.id == n.id }) {
			return nil
		}
		if seen != nil {
			seen[n.id] = true
		}
		names = append(names, n)
	}
	return names
}

// sameNames reports whether two lists have the same elements in the same order.
func sameNames(from, to []named) bool {
	return slices.EqualFunc(from, to, func(a, b named) bool { return a.id == b.id })
}

// sameOrder reports whether the elements that are in both lists have the same order in both.
func sameOrder(from, to []named) bool {
	return sameNames(from, to) || sameNames(common(from, to), common(to, from))
}

// common returns the elements of a that are also in b, in the order of a.
func common(a, b []named) []named {
	in := make(map[string]bool, len(b))
	for _, n := range b {
		in[n.id] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(n named) bool { return !in[n.id] })
}

// id returns a string that is equal for equal list elements only.
func (e Elem) id() string {
	if len(e.Keys) == 1 {
		if s, ok := e.Keys[0].Value.(string); ok { // nearly always
			return e.Keys[0].Name + "\x00" + s // a path's text has no control characters
		}
	}
	return Path{e}.String()
}

func allScalars(list []any) bool {
	return !slices.ContainsFunc(list, func(v any) bool { return !isScalar(v) })
}

// plainNumber converts an integral float to int64, so that a path does not depend on the decoder.
func plainNumber(v any) any {
	if f, ok := v.(float64); ok && sameNumber(int64(f), f) {
		return int64(f)
	}
	return v
}
