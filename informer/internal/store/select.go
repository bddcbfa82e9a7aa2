package store

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Selected is the result of Select.
type Selected struct {
	// Found has the selected objects.
	Found []Item
	// Unsure has the objects whose bytes cannot be read.
	Unsure []Item
	// Unknown has the objects whose labels have not been read yet.
	Unknown []Item
}

// Select returns the objects of a namespace, or of all if it is empty, whose labels match, from one moment and in no
// order. IndexLabels must have been called.
func (s *Store) Select(namespace string, selector labels.Selector) Selected {
	if rs, exact := requirements(selector); exact {
		return s.view(namespace, rs, nil)
	}
	var groups []candidate
	out := s.view(namespace, nil, &groups)
	for _, c := range groups { // call the selector without the lock, since it is foreign code
		if selector.Matches(c.labels) {
			out.Found = append(out.Found, c.items...)
		}
	}
	return out
}

// requirements returns a selector's requirements. Exact means that they are complete. That is not certain for
// implementations other than apimachinery's.
func requirements(selector labels.Selector) (rs labels.Requirements, exact bool) {
	switch reflect.TypeOf(selector) {
	case reflect.TypeOf(labels.Everything()), reflect.TypeFor[labels.ValidatedSetSelector]():
		return selector.Requirements()
	}
	return nil, false
}

// candidate is a copy of a group, taken under the lock.
type candidate struct {
	labels labels.Set
	items  []Item
}

// view reads the objects that meet the requirements, or, if groups is set, every group.
func (s *Store) view(namespace string, rs labels.Requirements, groups *[]candidate) (out Selected) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	x := s.labels
	var found []*group
	objects := 0
	x.narrow(namespace, rs, func(p *posting) {
		for _, g := range p.groups {
			if (namespace == "" || g.space.value == namespace) && !g.bad && g.has(rs) {
				found = append(found, g)
				objects += len(g.members)
			}
		}
	})
	if groups == nil {
		out.Found = make([]Item, 0, objects)
	}
	for _, g := range found {
		if groups == nil {
			out.Found = g.items(out.Found)
		} else {
			*groups = append(*groups, candidate{g.set(), g.items(nil)})
		}
	}
	for _, g := range x.unreadable.groups {
		if namespace == "" || g.space.value == namespace {
			out.Unsure = g.items(out.Unsure)
		}
	}
	if len(x.places) < s.table.objects {
		out.Unknown = x.unknown(&s.table, namespace)
	}
	return out
}

// set returns the group's labels.
func (g *group) set() labels.Set {
	l := make(labels.Set, len(g.labels))
	for _, have := range g.labels {
		l[have.key.name] = have.value
	}
	return l
}

// narrow calls f with the smallest set of groups that contains all matches: those of the namespace, of a
// requirement's values, or of its key.
func (x *labelIndex) narrow(namespace string, rs labels.Requirements, f func(*posting)) {
	each, least := func(f func(*posting)) {
		for _, p := range x.spaces {
			f(p)
		}
	}, x.groups.used
	if namespace != "" {
		p := x.spaces[namespace]
		if p == nil {
			return
		}
		each, least = func(f func(*posting)) { f(p) }, len(p.groups)
	}
	for i := range rs {
		r := &rs[i]
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			k, n := x.keys[r.Key()], 0
			values := r.ValuesUnsorted()
			for _, v := range values {
				n += k.posting(v).len()
			}
			if n < least {
				each, least = func(f func(*posting)) {
					for j, v := range values {
						if p := k.posting(v); p != nil && !slices.Contains(values[:j], v) {
							f(p)
						}
					}
				}, n
			}
		case selection.Exists, selection.GreaterThan, selection.LessThan:
			k := x.keys[r.Key()]
			if k == nil {
				return
			}
			if k.groups < least {
				each, least = func(f func(*posting)) {
					for _, p := range k.values {
						f(p)
					}
				}, k.groups
			}
		}
	}
	if least > 0 {
		each(f)
	}
}

// posting returns the groups with a value, or nil.
func (k *labelKey) posting(value string) *posting {
	if k == nil {
		return nil
	}
	return k.values[value]
}

func (p *posting) len() int {
	if p == nil {
		return 0
	}
	return len(p.groups)
}

// has reports whether the group meets all requirements.
func (g *group) has(rs labels.Requirements) bool {
	for i := range rs {
		if !rs[i].Matches(groupLabels{g}) {
			return false
		}
	}
	return true
}

// items appends the group's objects.
func (g *group) items(to []Item) []Item {
	to = slices.Grow(to, len(g.members))
	for _, o := range g.members {
		to = append(to, Item{Key{g.space.value, o.name}, o.v})
	}
	return to
}

// unknown returns the objects whose labels are unknown.
func (x *labelIndex) unknown(t *table, namespace string) []Item {
	var all []Item
	take := func(sp *space, o *object) {
		if _, known := x.places[o]; !known {
			all = append(all, Item{Key{sp.name, o.name}, o.v})
		}
	}
	if namespace == "" {
		t.each(take)
	} else if sp := t.spaces[namespace]; sp != nil {
		sp.each(func(o *object) { take(sp, o) })
	}
	return all
}

// groupLabels implements labels.Labels.
type groupLabels struct{ *group }

// Has implements labels.Labels.
func (g groupLabels) Has(key string) bool {
	_, ok := g.Lookup(key)
	return ok
}

// Get implements labels.Labels.
func (g groupLabels) Get(key string) string {
	value, _ := g.Lookup(key)
	return value
}

// Lookup implements labels.Labels.
func (g groupLabels) Lookup(key string) (value string, exists bool) {
	for _, l := range g.labels {
		if l.key.name == key {
			return l.value, true
		}
	}
	return "", false
}
