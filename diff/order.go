package diff

import (
	"cmp"
	"slices"
	"strings"
)

// reordered adds a Reorder if the elements that are in both lists changed their order. It names those between the first and
// the last that have another place among them.
func (d *differ) reordered(from, to []named) {
	f, t := common(from, to), common(to, from)
	for len(f) > 0 && f[0].id == t[0].id {
		f, t = f[1:], t[1:]
	}
	for n := len(f) - 1; n >= 0 && f[n].id == t[n].id; n-- {
		f, t = f[:n], t[:n]
	}
	if len(f) > 0 {
		d.emit(Reorder, namesOf(f), namesOf(t))
	}
}

// namesOf returns the merge keys of each element as an object.
func namesOf(list []named) []any {
	names := make([]any, len(list))
	for i, n := range list {
		m := make(map[string]any, len(n.Keys))
		for _, k := range n.Keys {
			m[k.Name] = k.Value
		}
		names[i] = m
	}
	return names
}

// Moved returns the elements of a Reorder that moved: as few as explain the new order. The merge keys of a step are sorted by
// name.
func (c Change) Moved() []Elem {
	if c.Op != Reorder {
		return nil
	}
	list, _ := c.To.([]any)
	to := nameTexts(c.To)
	regions, ok := changedRegions(nameTexts(c.From), to)
	if !ok {
		regions = []region{{b0: 0, b1: len(to)}}
	}
	var moved []Elem
	for _, r := range regions {
		for _, v := range list[r.b0:r.b1] {
			moved = append(moved, nameElem(v))
		}
	}
	return moved
}

// nameElem is the step to the element that namesOf named.
func nameElem(v any) Elem {
	m, _ := v.(map[string]any)
	e := Elem{Kind: Keyed}
	for name, value := range m {
		e.Keys = append(e.Keys, KeyValue{name, value})
	}
	slices.SortFunc(e.Keys, func(a, b KeyValue) int { return cmp.Compare(a.Name, b.Name) })
	return e
}

// nameTexts formats From or To of a Reorder: the value of the merge key, or the step of a path if there are several.
func nameTexts(v any) []string {
	list, _ := v.([]any)
	texts := make([]string, len(list))
	for i, v := range list {
		e := nameElem(v)
		if len(e.Keys) == 1 {
			texts[i] = Scalar(e.Keys[0].Value)
		} else {
			texts[i] = string(e.AppendText(nil, true))
		}
	}
	return texts
}

// Order formats From or To of a Reorder on one line: "HOST, URL".
func Order(names any) string { return strings.Join(nameTexts(names), ", ") }

// order formats a Reorder.
func (t *texter) order(path string, from, to any) {
	if f := Order(from); len([]rune(f)) <= maxInline {
		t.head(PlainLine, path, "order %s → %s", f, Order(to))
		return
	}
	a, b := nameTexts(from), nameTexts(to)
	t.head(PlainLine, path, "order of %s changed", count(len(b), "item"))
	if regions, ok := changedRegions(a, b); ok {
		t.hunked(regions, a, b)
	}
}
