package store

import (
	"maps"
	"strings"
	"unsafe"
)

// labelIndex finds objects by their labels. Objects of one namespace with equal labels form a group, and selectors
// are evaluated once per group. The store's lock guards it.
//
// An object costs about 40 bytes, a group about 350. Objects with unique labels, such as pods of StatefulSets, need a
// group each.
type labelIndex struct {
	places map[*object]place // contains no objects whose labels are unknown
	most   int               // the map's largest number of places so far
	groups set[*group]
	byID   []*group // nil for a free ID
	free   []uint32
	// keys has the groups by label key and value, spaces by namespace. unreadable has those of unreadable objects.
	keys       map[string]*labelKey
	spaces     map[string]*posting
	unreadable posting
}

// place is an object's position in its group.
type place struct{ group, at uint32 }

// group is the objects of a namespace with the same labels.
type group struct {
	space   *posting
	labels  []label // in the order of the keys
	members []*object
	id, sum uint32
	at      uint32 // its position in space
	bad     bool   // the labels cannot be read
	badAt   uint32
}

func (g *group) hash() uint32 { return g.sum }

// label is a label of a group, with the group's position in the label's posting.
type label struct {
	*posting
	at uint32
}

// posting is the groups with a label, or in a namespace.
type posting struct {
	key    *labelKey // nil for a namespace
	value  string
	groups []*group
}

// labelKey is the groups with a label key, by value.
type labelKey struct {
	name   string
	values map[string]*posting
	groups int // number of groups of all values
}

func newLabelIndex() *labelIndex {
	return &labelIndex{places: map[*object]place{}, keys: map[string]*labelKey{}, spaces: map[string]*posting{}}
}

// set moves an object to the group of its labels.
func (x *labelIndex) set(o *object, namespace string, l LabelSet) {
	if at, ok := x.places[o]; ok {
		if g := x.byID[at.group]; l != "" && g.space.value == namespace && g.is(l) {
			return
		}
		x.remove(o)
	}
	if l == "" {
		return
	}
	g := x.group(namespace, l)
	x.places[o] = place{g.id, uint32(len(g.members))} //nolint:gosec // there are fewer objects
	x.most = max(x.most, len(x.places))
	g.members = append(g.members, o)
}

// remove removes an object.
func (x *labelIndex) remove(o *object) {
	at, ok := x.places[o]
	if !ok {
		return
	}
	delete(x.places, o)
	x.shrink()
	g := x.byID[at.group]
	last := len(g.members) - 1
	if moved := g.members[last]; moved != o {
		g.members[at.at] = moved
		x.places[moved] = at
	}
	g.members[last] = nil
	switch g.members = g.members[:last]; {
	case last == 0:
		x.drop(g)
	case cap(g.members) > 64 && last < cap(g.members)/4:
		g.members = append(make([]*object, 0, last), g.members...)
	}
}

// shrink gives memory back if little of it is used, which a map does not.
func (x *labelIndex) shrink() {
	const few = 1 << 10
	if x.most < few || len(x.places) > x.most/8 {
		return
	}
	places := make(map[*object]place, len(x.places))
	maps.Copy(places, x.places)
	x.places, x.most = places, len(places)
}

// group returns the group with these labels.
func (x *labelIndex) group(namespace string, l LabelSet) *group {
	sum := hashKey(hashString(namespace), hashString(string(l)))
	g := x.groups.find(sum, func(g *group) bool { return g.space.value == namespace && g.is(l) })
	if g != nil {
		return g
	}
	g = &group{sum: sum, space: x.space(namespace), bad: l == UnreadableLabels}
	g.at = g.space.add(g)
	if g.bad {
		g.badAt = x.unreadable.add(g)
	} else {
		n := 0
		l.each(func(string, string) { n++ })
		g.labels = make([]label, 0, n)
		l.each(func(key, value string) {
			p := x.posting(key, value)
			p.key.groups++
			g.labels = append(g.labels, label{p, p.add(g)})
		})
	}
	if n := len(x.free); n > 0 {
		g.id, x.free = x.free[n-1], x.free[:n-1]
		x.byID[g.id] = g
	} else {
		g.id = uint32(len(x.byID)) //nolint:gosec // there are fewer objects
		x.byID = append(x.byID, g)
	}
	x.groups.add(g)
	return g
}

// is reports whether these are the group's labels.
func (g *group) is(l LabelSet) bool {
	if g.bad || l == UnreadableLabels {
		return g.bad && l == UnreadableLabels
	}
	rest := string(l[1:])
	for _, have := range g.labels {
		var key, value string
		if rest == "" {
			return false
		}
		key, rest = cutText(rest)
		value, rest = cutText(rest)
		if have.value != value || have.key.name != key {
			return false
		}
	}
	return rest == ""
}

// drop removes a group without members.
func (x *labelIndex) drop(g *group) {
	x.groups.remove(g)
	x.groups.shrink()
	x.byID[g.id] = nil
	x.free = append(x.free, g.id)
	if g.bad {
		x.unreadable.remove(g.badAt, func(moved *group) { moved.badAt = g.badAt })
	}
	if g.space.remove(g.at, func(moved *group) { moved.at = g.at }) == 0 {
		delete(x.spaces, g.space.value)
	}
	for _, l := range g.labels {
		k := l.key
		k.groups--
		if l.remove(l.at, func(moved *group) { moved.move(l.posting, l.at) }) == 0 {
			delete(k.values, l.value)
		}
		if k.groups == 0 {
			delete(x.keys, k.name)
		}
	}
}

// move records the group's new position in a label's posting.
func (g *group) move(p *posting, at uint32) {
	for i := range g.labels {
		if g.labels[i].posting == p {
			g.labels[i].at = at
		}
	}
}

func (x *labelIndex) space(namespace string) *posting {
	p := x.spaces[namespace]
	if p == nil {
		p = &posting{value: namespace}
		x.spaces[namespace] = p
	}
	return p
}

func (x *labelIndex) posting(key, value string) *posting {
	k := x.keys[key]
	if k == nil {
		k = &labelKey{name: strings.Clone(key), values: map[string]*posting{}}
		x.keys[k.name] = k
	}
	p := k.values[value]
	if p == nil {
		p = &posting{key: k, value: strings.Clone(value)}
		k.values[p.value] = p
	}
	return p
}

// add returns the group's position.
func (p *posting) add(g *group) uint32 {
	p.groups = append(p.groups, g)
	return uint32(len(p.groups) - 1) //nolint:gosec // there are fewer objects
}

// remove fills a group's position with the last group, for which it calls moved, and returns the number of groups
// left.
func (p *posting) remove(at uint32, moved func(*group)) int {
	last := len(p.groups) - 1
	if g := p.groups[last]; int(at) != last {
		p.groups[at] = g
		moved(g)
	}
	p.groups[last] = nil
	p.groups = p.groups[:last]
	if cap(p.groups) > 64 && last < cap(p.groups)/4 {
		p.groups = append(make([]*group, 0, last), p.groups...)
	}
	return last
}

// bytes estimates the memory of the index.
func (x *labelIndex) bytes() int64 {
	const mapSlot = 3 // about one slot in three is free, and each has a byte beside it
	n := len(x.places)*(int(unsafe.Sizeof(place{}))+8)*mapSlot/2 + len(x.groups.slots)*8 + len(x.byID)*8
	for _, g := range x.byID {
		if g != nil {
			n += int(unsafe.Sizeof(*g)) + 8*cap(g.members) + int(unsafe.Sizeof(label{}))*cap(g.labels) + 8*(1+len(g.labels))
		}
	}
	for _, k := range x.keys {
		for _, p := range k.values {
			n += int(unsafe.Sizeof(*p)) + len(p.value) + 24*mapSlot/2
		}
	}
	return int64(n)
}

// IndexLabels makes the store keep an index of labels from now on. Further calls do nothing.
//
// Objects whose change has no Labels, and existing ones, must be added by SetLabels: Select returns them as Unknown.
func (s *Store) IndexLabels() {
	s.mu.RLock()
	done := s.labels != nil
	s.mu.RUnlock()
	if done {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.labels == nil {
		s.labels = newLabelIndex()
	}
}

// LabelBytes estimates the memory of the index of labels.
func (s *Store) LabelBytes() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.labels == nil {
		return 0
	}
	return s.labels.bytes()
}

// Labelled is an object and its labels.
type Labelled struct {
	Item
	Labels LabelSet
}

// SetLabels sets the labels of objects whose version has not changed since.
func (s *Store) SetLabels(all []Labelled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.labels == nil {
		return
	}
	for _, l := range all {
		if o, _ := s.table.find(l.Key); o != nil && o.v == l.V {
			s.labels.set(o, l.Key.Namespace, l.Labels)
		}
	}
}
