package clientgo

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// index maps the values that an index function returns to entries.
type index struct {
	name  string
	of    cache.IndexFunc
	byKey bool // of is cache.MetaNamespaceIndexFunc: the value comes from the key
	found map[string]*bucket
}

func newIndex(name string, f cache.IndexFunc) *index {
	namespace := reflect.ValueOf(cache.MetaNamespaceIndexFunc).Pointer()
	return &index{name: name, of: f, byKey: reflect.ValueOf(f).Pointer() == namespace, found: map[string]*bucket{}}
}

// values calls the index function.
//
// It panics on an error, as client-go does: otherwise the object would silently be missing from the index.
func (ix *index) values(key string, obj any) []string {
	values, err := ix.of(obj)
	if err != nil {
		panic(fmt.Errorf("unable to calculate an index entry for key %q on index %q: %w", key, ix.name, err))
	}
	return values
}

// valuesOrNone is values for changes from the server, whose caller cannot handle a panic. If
// k8s.io/apimachinery/pkg/util/runtime is set not to crash, a failing object is missing from this index only;
// client-go stores it but notifies no handler.
func (ix *index) valuesOrNone(key string, obj any) (values []string) {
	defer utilruntime.HandleCrash()
	return ix.values(key, obj)
}

// compute returns the values of a change's object for every index.
func (t *table) compute(c *change) [][]string {
	var all [][]string
	for i, ix := range t.indexes {
		if ix.byKey {
			continue
		}
		if c.obj == nil {
			c.obj = c.item.decode() // this evicts nothing from the cache of decoded objects
		}
		if c.obj == nil {
			return nil // undecodable, so no index finds it
		}
		if all == nil {
			all = make([][]string, len(t.indexes))
		}
		t.detector().handsOut("index "+ix.name, c.obj)
		if c.byHand {
			all[i] = ix.values(c.key, c.obj)
		} else {
			all[i] = ix.valuesOrNone(c.key, c.obj)
		}
	}
	return all
}

func valuesAt(all [][]string, i int) []string {
	if i < len(all) {
		return all[i]
	}
	return nil
}

func namespaceOf(key string) string {
	namespace, _, ok := strings.Cut(key, "/")
	if !ok {
		return ""
	}
	return namespace
}

// move moves an entry from its old values to its new ones, and returns the values to keep. The caller holds the
// table's mu.
func (ix *index) move(e *entry, from, to []string) []string {
	if slices.Equal(from, to) {
		return from
	}
	for _, v := range from {
		ix.remove(e, v)
	}
	to = slices.Clone(to) // it may belong to the object
	for i, v := range to {
		to[i] = ix.add(e, v)
	}
	return to
}

// add returns the index's copy of the value, which objects share.
func (ix *index) add(e *entry, value string) string {
	b := ix.found[value]
	if b == nil {
		b = &bucket{value: strings.Clone(value)} // it may be part of a larger string
		ix.found[b.value] = b
	}
	b.add(e)
	return b.value
}

func (ix *index) remove(e *entry, value string) {
	if b := ix.found[value]; b != nil && b.remove(e) == 0 {
		delete(ix.found, value)
	}
}

// enter and leave update an index of namespaces.
func (ix *index) enter(e *entry) {
	if ix.byKey {
		ix.add(e, namespaceOf(e.key))
	}
}

func (ix *index) leave(e *entry) {
	if ix.byKey {
		ix.remove(e, namespaceOf(e.key))
	}
}

// bucket is a set of entries, usually of one or a few.
type bucket struct {
	value string
	few   []*entry
	many  map[*entry]struct{} // used once there were more than maxFew
}

const maxFew = 16

func (b *bucket) add(e *entry) {
	switch {
	case b.many != nil:
		b.many[e] = struct{}{}
	case slices.Contains(b.few, e):
	case len(b.few) < maxFew:
		b.few = append(b.few, e)
	default:
		b.many = make(map[*entry]struct{}, 2*maxFew)
		for _, have := range b.few {
			b.many[have] = struct{}{}
		}
		b.many[e], b.few = struct{}{}, nil
	}
}

// remove returns the number of entries left.
func (b *bucket) remove(e *entry) int {
	delete(b.many, e)
	if i := slices.Index(b.few, e); i >= 0 {
		last := len(b.few) - 1
		b.few[i], b.few[last] = b.few[last], nil
		b.few = b.few[:last]
	}
	return len(b.few) + len(b.many)
}

func (b *bucket) each(f func(*entry)) {
	if b == nil {
		return
	}
	for _, e := range b.few {
		f(e)
	}
	for e := range b.many {
		f(e)
	}
}

// index returns the index with this name. The caller holds mu.
func (t *table) index(name string) (*index, error) {
	for _, ix := range t.indexes {
		if ix.name == name {
			return ix, nil
		}
	}
	return nil, fmt.Errorf("Index with name %s does not exist", name)
}

func (t *table) indexers() cache.Indexers {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make(cache.Indexers, len(t.indexes))
	for _, ix := range t.indexes {
		all[ix.name] = ix.of
	}
	return all
}

// addIndexers adds indexes and fills them. Writers wait; readers do not.
func (t *table) addIndexers(more cache.Indexers) error {
	t.writing.Lock()
	defer t.writing.Unlock()
	if both := sets.KeySet(t.indexers()).Intersection(sets.KeySet(more)); both.Len() > 0 {
		return fmt.Errorf("indexer conflict: %v", both)
	}
	var added []*index
	for _, name := range slices.Sorted(maps.Keys(more)) {
		added = append(added, newIndex(name, more[name]))
	}
	values := make([][][]string, len(t.list))
	for i, e := range t.list { // the lock keeps other writers out
		values[i] = t.computeMore(e, added)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	first := len(t.indexes)
	t.indexes = append(t.indexes, added...)
	for i, e := range t.list {
		for j, ix := range added {
			ix.enter(e)
			if v := valuesAt(values[i], j); v != nil {
				values[i][j] = ix.move(e, nil, v)
			}
		}
		if values[i] != nil {
			all := make([][]string, len(t.indexes))
			copy(all, e.values)
			copy(all[first:], values[i])
			e.values = all
		}
	}
	return nil
}

// computeMore returns an entry's values for new indexes.
func (t *table) computeMore(e *entry, added []*index) [][]string {
	var all [][]string
	var obj any
	for j, ix := range added {
		if ix.byKey {
			continue
		}
		if obj == nil {
			if obj = t.decoded(e); obj == nil {
				obj = e.item.decode()
			}
			if obj == nil {
				return nil
			}
			all = make([][]string, len(added))
		}
		all[j] = ix.values(e.key, obj)
	}
	return all
}

// indexed returns the entries with one of the values. The caller holds mu.
func (ix *index) indexed(values []string) []*entry {
	var out []*entry
	if len(values) == 1 {
		ix.found[values[0]].each(func(e *entry) { out = append(out, e) })
		return out
	}
	seen := map[*entry]struct{}{}
	for _, v := range values {
		ix.found[v].each(func(e *entry) {
			if _, ok := seen[e]; !ok {
				seen[e] = struct{}{}
				out = append(out, e)
			}
		})
	}
	return out
}

// lookup reads the objects with one of the values.
func (t *table) lookup(name string, values []string) ([]any, error) {
	t.mu.RLock()
	ix, err := t.index(name)
	if err != nil {
		t.mu.RUnlock()
		return nil, err
	}
	objs, some := t.pick(ix.indexed(values))
	t.mu.RUnlock()
	return t.scan(objs, some), nil
}
