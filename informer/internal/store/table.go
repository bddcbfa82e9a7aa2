package store

import (
	"cmp"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// Key names an object within a resource.
type Key struct{ Namespace, Name string }

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Item is an object with its stored version.
type Item struct {
	Key Key
	V   *compact.Version
}

// table holds the objects by namespace and name. The two levels intern the namespaces and allow reading one alone.
type table struct {
	spaces  map[string]*space
	objects int
}

// space is one namespace; it has at least one object.
type space struct {
	name    string
	sum     uint32 // the hash of the name
	objects set[*object]
}

// object is a stored object: 32 bytes, and about 15 for its slot.
type object struct {
	name string
	v    *compact.Version
	mark uint32 // the last list that contained it; for the writer only
	sum  uint32 // the hash of the name
}

func (o *object) hash() uint32 { return o.sum }

func newTable() table { return table{spaces: map[string]*space{}} }

// find returns an object and its namespace, or nil.
func (t *table) find(k Key) (*object, *space) {
	sp := t.spaces[k.Namespace]
	if sp == nil {
		return nil, nil
	}
	return sp.find(k.Name, hashString(k.Name)), sp
}

func (sp *space) find(name string, sum uint32) *object {
	return sp.objects.find(sum, func(o *object) bool { return o.name == name })
}

// get returns the stored version, or nil.
func (t *table) get(k Key) *compact.Version {
	if o, _ := t.find(k); o != nil {
		return o.v
	}
	return nil
}

// add adds a new object.
func (t *table) add(k Key, v *compact.Version, mark uint32) (*object, *space) {
	sp := t.spaces[k.Namespace]
	if sp == nil {
		sp = &space{name: k.Namespace, sum: hashString(k.Namespace)}
		t.spaces[k.Namespace] = sp
	}
	o := &object{name: k.Name, v: v, mark: mark, sum: hashString(k.Name)}
	sp.objects.add(o)
	t.objects++
	return o, sp
}

// remove removes an object of the table.
func (t *table) remove(o *object, sp *space) {
	sp.objects.remove(o)
	sp.objects.shrink()
	t.objects--
	if sp.objects.used == 0 {
		delete(t.spaces, sp.name)
	}
}

// each calls f for every object.
func (t *table) each(f func(*space, *object)) {
	for _, sp := range t.spaces {
		sp.each(func(o *object) { f(sp, o) })
	}
}

func (sp *space) each(f func(*object)) {
	for _, o := range sp.objects.slots {
		if o != nil {
			f(o)
		}
	}
}

// items returns the objects of a namespace, or of all if it is empty.
func (t *table) items(namespace string) []Item {
	if namespace == "" {
		all := make([]Item, 0, t.objects)
		t.each(func(sp *space, o *object) { all = append(all, Item{Key{sp.name, o.name}, o.v}) })
		return all
	}
	sp := t.spaces[namespace]
	if sp == nil {
		return nil
	}
	all := make([]Item, 0, sp.objects.used)
	sp.each(func(o *object) { all = append(all, Item{Key{sp.name, o.name}, o.v}) })
	return all
}
