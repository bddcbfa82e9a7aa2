package diff

import (
	"cmp"
	"slices"
)

// Objects returns the differences between two versions of an object.
//
// Fields are in the order apiVersion, kind, metadata, spec, others by name, status; below that, by name. The new order of a
// list comes before its elements, which are in the old list's order, followed by new ones.
//
// A field that is added or removed is one change with its whole value, except that a map with user-named scalars (labels,
// annotations, data and the like) is always compared key by key, and empty equals absent. Null equals absent. A value whose
// type changed is one Replace.
//
// Lists are compared as follows:
//
//   - ListMap by merge keys and ListSet by value. If that does not identify the elements (a key is missing or repeated), like
//     a list of unknown type. A ListMap whose remaining elements changed their order has a Reorder; a ListSet has no order.
//     Where an element was inserted is not a difference.
//   - ListAtomic and unknown types: lists of scalars are one Replace. Lists of objects that all have a scalar "name" (else
//     "key", "type" or "id") that is unique before and after are compared by it, unless the remaining elements changed
//     their order, which is one Replace of the list.
//   - Others by index, between the common front and the common back; if both lists have elements in between, but not the
//     same number, that is one Replace of the list.
//
// Anyone who may write an object can make one whose changes, each with its path, are far larger than the object. So changes
// are bounded: a value more than 64 steps deep, or with more than 1,000 changes, or whose changes' paths exceed 256 KiB,
// becomes one change (Change.Whole). The same bounds hold for an object, whose fields with the most changes are collapsed
// first. No difference is omitted.
func Objects(before, after map[string]any, s Schema) []Change {
	return objects(before, after, s, objectLimits)
}

func objects(before, after map[string]any, s Schema, m limits) []Change {
	d := differ{max: m}
	d.maps(before, after, s)
	d.bound(before, after)
	return d.changes
}

// differ walks two values that differ.
type differ struct {
	max     limits
	path    Path
	length  int // approximate length of the path's text
	changes []Change
	lengths []int // of the changes' paths
	total   int   // of these
}

func (d *differ) emit(op Op, from, to any) {
	d.changes = append(d.changes, Change{Path: slices.Clone(d.path), Op: op, From: from, To: to})
	d.lengths = append(d.lengths, d.length)
	d.total += d.length
}

func (d *differ) maps(before, after map[string]any, s Schema) {
	var names []string
	for name, v := range before {
		if !Equal(v, after[name]) {
			names = append(names, name)
		}
	}
	for name, v := range after {
		if _, ok := before[name]; !ok && v != nil {
			names = append(names, name)
		}
	}
	if len(d.path) == 0 {
		slices.SortFunc(names, compareRoot)
	} else {
		slices.Sort(names)
	}
	here := d.mark()
	for _, name := range names {
		if d.step(Elem{Kind: Field, Name: name}, before[name], after[name], field(s, name)); d.exceeds(here) && len(d.path) > 0 {
			return // it becomes one change
		}
	}
}

// step compares one field or list element; nil is absent.
func (d *differ) step(e Elem, from, to any, s Schema) {
	d.path, d.length = append(d.path, e), d.length+e.length()
	switch {
	case userMap(d.path, from, to):
		here := d.mark()
		f, _ := from.(map[string]any)
		t, _ := to.(map[string]any)
		d.maps(f, t, s)
		d.collapse(here, from, to)
	case from == nil:
		d.emit(Add, nil, to)
	case to == nil:
		d.emit(Remove, from, nil)
	default:
		d.values(from, to, s)
	}
	d.path, d.length = d.path[:len(d.path)-1], d.length-e.length()
}

func (d *differ) values(from, to any, s Schema) {
	here := d.mark()
	deep := len(d.path) >= d.max.depth
	switch f := from.(type) {
	case map[string]any:
		if t, ok := to.(map[string]any); ok && !deep {
			d.maps(f, t, s)
			d.collapse(here, from, to)
			return
		}
	case []any:
		if t, ok := to.([]any); ok && !deep {
			d.lists(f, t, s)
			d.collapse(here, from, to)
			return
		}
	}
	d.emit(Replace, from, to)
	d.changes[here.changes].Whole = deep && !isScalar(from) && !isScalar(to)
}

// userMaps are the fields that hold scalars under user-chosen keys.
var userMaps = map[string]bool{
	"labels": true, "annotations": true, "matchLabels": true, "nodeSelector": true,
	"data": true, "stringData": true, "binaryData": true,
}

// userMap reports whether an added or removed field is such a map and holds scalars only.
func userMap(p Path, from, to any) bool {
	if e := p[len(p)-1]; e.Kind != Field || !userMaps[e.Name] || from != nil && to != nil {
		return false
	}
	m, ok := from.(map[string]any)
	if from == nil {
		m, ok = to.(map[string]any)
	}
	for _, v := range m {
		ok = ok && isScalar(v)
	}
	return ok
}

// compareRoot orders the fields of an object as kubectl users expect.
func compareRoot(a, b string) int {
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

func rank(name string) int {
	switch name {
	case "apiVersion":
		return 0
	case "kind":
		return 1
	case "metadata":
		return 2
	case "spec":
		return 3
	case "status":
		return 5
	}
	return 4
}

func field(s Schema, name string) Schema {
	if s == nil {
		return nil
	}
	return s.Field(name)
}
