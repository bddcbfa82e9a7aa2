package diff

import (
	"cmp"
	"slices"
)

// limits are the bounds that Objects documents.
type limits struct {
	depth, changes int
	length         int // of the text of all paths
}

var objectLimits = limits{depth: 64, changes: 1000, length: 256 << 10}

// ahead: up to so many times the limits are collected before it is known which values become one change each.
const ahead = 4

// mark is a position in the changes.
type mark struct{ changes, total int }

func (d *differ) mark() mark { return mark{len(d.changes), d.total} }

// exceeds reports whether the changes of one value, since a mark, are too many.
func (d *differ) exceeds(since mark) bool {
	return len(d.changes)-since.changes > d.max.changes || d.total-since.total > d.max.length ||
		len(d.changes) > max(since.changes+1, ahead*d.max.changes) || d.total > ahead*d.max.length
}

// collapse replaces the changes of the value at path, since a mark, by one change if they are too many.
func (d *differ) collapse(since mark, from, to any) {
	if len(d.changes) > since.changes && d.exceeds(since) {
		d.cut(since)
		d.emit(opOf(from, to), from, to)
		d.changes[since.changes].Whole = true
	}
}

func (d *differ) cut(to mark) {
	clear(d.changes[to.changes:])
	d.changes, d.lengths, d.total = d.changes[:to.changes], d.lengths[:to.changes], to.total
}

func opOf(from, to any) Op {
	switch {
	case from == nil:
		return Add
	case to == nil:
		return Remove
	}
	return Replace
}

// group holds the changes of one field of an object.
type group struct {
	from, to int
	length   int
}

// bound applies the limits to the object: the fields with the most changes are collapsed first, until the rest fits. An
// object with more fields than that becomes one change with an empty path.
func (d *differ) bound(before, after map[string]any) {
	if len(d.changes) <= d.max.changes && d.total <= d.max.length {
		return
	}
	var groups []group
	for i, c := range d.changes {
		if i == 0 || c.Path[0].Name != d.changes[i-1].Path[0].Name {
			groups = append(groups, group{from: i})
		}
		g := &groups[len(groups)-1]
		g.to, g.length = i+1, g.length+d.lengths[i]
	}
	bySize := slices.Clone(groups)
	slices.SortStableFunc(bySize, func(a, b group) int {
		return -cmp.Compare(max((a.to-a.from)*d.max.length, a.length*d.max.changes), max((b.to-b.from)*d.max.length, b.length*d.max.changes))
	})
	whole := map[int]bool{}
	count, total := len(d.changes), d.total
	for _, g := range bySize {
		if count <= d.max.changes && total <= d.max.length {
			break
		}
		name := d.changes[g.from].Path[0]
		whole[g.from] = true
		count -= g.to - g.from - 1
		total -= g.length - name.length()
	}
	changes := d.changes
	d.changes, d.lengths, d.total = nil, nil, 0
	if count > d.max.changes || total > d.max.length {
		d.emit(Replace, before, after)
		d.changes[0].Whole = true
		return
	}
	for _, g := range groups {
		if !whole[g.from] {
			d.changes = append(d.changes, changes[g.from:g.to]...)
			continue
		}
		c := changes[g.from]
		if e := c.Path[0]; len(c.Path) > 1 || g.to-g.from > 1 {
			from, to := before[e.Name], after[e.Name]
			c = Change{Path: Path{e}, Op: opOf(from, to), From: from, To: to, Whole: true}
		}
		d.changes = append(d.changes, c)
	}
}

// length is about the length of the element's text in a path.
func (e Elem) length() int {
	n := len(e.Name) + 2
	for _, k := range e.Keys {
		n += len(k.Name) + valueLength(k.Value) + 2
	}
	return n + valueLength(e.Value)
}

func valueLength(v any) int {
	if s, ok := v.(string); ok {
		return len(s)
	}
	return 8
}
