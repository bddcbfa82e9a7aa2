package clientgo

import (
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// table is an informer's cache: its objects and their indexes. Any number of goroutines may read and write it, as
// with client-go's stores.
type table struct {
	informer *sharedInformer // nil in some tests
	packing  *packing
	hot      *compact.Hot
	keeper   *keeper // nil: objects that are read often are not kept decoded

	// writing is held by writers and while indexes are added. Index values are computed under it, so that mu is held
	// only to swap pointers. Lock it before mu.
	writing sync.Mutex

	mu      sync.RWMutex
	entries map[string]*entry
	list    []*entry // all entries, in no order
	indexes []*index
	version string // the last one seen
	ended   bool   // nothing is kept decoded from now on

	bytes atomic.Int64 // of the stored items
	kept  atomic.Int64 // objects kept decoded because they are read often
}

// entry is one object.
type entry struct {
	key    string
	item   *item
	place  int
	values [][]string // by index; nil for indexes of namespaces, or if there are no others
}

func newTable(e *Engine, storage Storage, indexers cache.Indexers, informer *sharedInformer) *table {
	t := &table{informer: informer, packing: newPacking(storage == Live), hot: e.hot, entries: map[string]*entry{}}
	if storage == Auto {
		t.keeper = &keeper{budget: &e.keptBudget}
	}
	for name, f := range indexers {
		t.indexes = append(t.indexes, newIndex(name, f))
	}
	return t
}

// detector returns the informer's detector, or nil.
func (t *table) detector() *detector {
	if t.informer == nil {
		return nil
	}
	return t.informer.detector
}

// change is a write to one object.
type change struct {
	key string
	// item is the new state; nil deletes the object.
	item   *item
	obj    any        // item decoded, if available
	byHand bool       // written by the program: a failing index function panics in its call
	vals   [][]string // computed by the table
	old    *item      // the previous item; set by the table
	was    any        // old decoded, if available; set by the table
}

// apply applies the changes atomically, and sets what each one replaced: if a key occurs twice, both get the state
// before the call. With all, it deletes the objects that the changes do not name, and returns them. The version,
// unless it is nil, is recorded as the last one seen.
func (t *table) apply(changes []change, all bool, version *string) (gone []change) {
	t.writing.Lock()
	defer t.writing.Unlock()
	for i := range changes {
		c := &changes[i]
		if e := t.entries[c.key]; e != nil { // the lock keeps other writers out
			c.old, c.was = e.item, t.decoded(e)
		}
		if c.item == nil || c.item == c.old {
			continue
		}
		had := c.obj != nil
		c.vals = t.compute(c)
		if !had && i >= maxDecodedNotes { // limits how many objects of a list are decoded at once
			c.obj = nil
		}
	}
	if all {
		gone = t.unnamed(changes)
	}
	t.mu.Lock()
	for i := range gone {
		t.remove(gone[i].key)
	}
	for i := range changes {
		if c := &changes[i]; c.item == nil {
			t.remove(c.key)
		} else {
			t.put(c)
		}
	}
	if version != nil {
		t.version = *version
		if t.informer != nil {
			t.informer.metrics.version(*version)
		}
	}
	t.mu.Unlock()
	return gone
}

// unnamed returns the objects that the changes do not name.
func (t *table) unnamed(changes []change) []change {
	named := make(map[string]struct{}, len(changes))
	for i := range changes {
		named[changes[i].key] = struct{}{}
	}
	var gone []change
	for _, e := range t.list {
		if _, ok := named[e.key]; !ok {
			gone = append(gone, change{key: e.key, old: e.item, was: t.decoded(e)})
		}
	}
	return gone
}

// decoded returns an entry's object if it is decoded already, or nil. The caller holds writing or mu.
func (t *table) decoded(e *entry) any {
	if e.item.v == nil {
		return e.item.obj
	}
	if obj, ok := t.hot.Get(e.item.v, e.item.form.codec); ok {
		return obj
	}
	return nil
}

// put stores one change. The caller holds mu.
func (t *table) put(c *change) {
	e := t.entries[c.key]
	switch {
	case e == nil:
		e = t.enter(c.key)
	case e.item == c.item: // a list contained the stored version
		c.obj = c.was
		return
	default:
		t.release(e)
	}
	if e.item != nil { // a change is no read, and no reason to forget one
		c.item.reads.Store(e.item.reads.Load())
		c.item.used.Store(e.item.used.Load())
	}
	t.account(c.item)
	e.item = c.item
	for i, ix := range t.indexes {
		if kept := ix.move(e, valuesAt(e.values, i), valuesAt(c.vals, i)); c.vals != nil {
			c.vals[i] = kept
		}
	}
	e.values = c.vals
}

// enter adds an entry for a new object.
func (t *table) enter(key string) *entry {
	e := &entry{key: key, place: len(t.list)}
	t.entries[key] = e
	t.list = append(t.list, e)
	for _, ix := range t.indexes {
		ix.enter(e)
	}
	return e
}

// release accounts for an entry's item that is about to be replaced or removed.
func (t *table) release(e *entry) {
	t.bytes.Add(-e.item.size())
	e.item.gone.Store(true)
	t.hot.Drop(e.item.v)
	if e.item.kept {
		t.keeper.budget.used.Add(-e.item.weight)
		t.kept.Add(-1)
	}
}

// account accounts for an item that an entry is about to get.
func (t *table) account(it *item) {
	t.bytes.Add(it.size())
	it.gone.Store(false)
	if it.kept {
		t.keeper.budget.used.Add(it.weight)
		t.kept.Add(1)
	}
}

// remove deletes an object, if it exists. The caller holds mu.
func (t *table) remove(key string) {
	e := t.entries[key]
	if e == nil {
		return
	}
	t.release(e)
	for i, ix := range t.indexes {
		ix.leave(e)
		ix.move(e, valuesAt(e.values, i), nil)
	}
	delete(t.entries, key)
	last := len(t.list) - 1
	t.list[e.place] = t.list[last]
	t.list[e.place].place = e.place
	t.list[last] = nil
	t.list = t.list[:last]
}

// keys returns the keys of all objects, in no order.
func (t *table) keys() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	keys := make([]string, len(t.list))
	for i, e := range t.list {
		keys[i] = e.key
	}
	return keys
}

// items returns the items of all objects, in no order.
func (t *table) items() []change {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make([]change, len(t.list))
	for i, e := range t.list {
		all[i] = change{key: e.key, item: e.item, obj: t.decoded(e)}
	}
	return all
}

// item returns an object's item, or nil.
func (t *table) item(key string) *item {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if e := t.entries[key]; e != nil {
		return e.item
	}
	return nil
}

// get reads one object. The decoded object is kept for a while.
func (t *table) get(key string) (any, bool) {
	t.mu.RLock()
	e := t.entries[key]
	if e == nil {
		t.mu.RUnlock()
		return nil, false
	}
	it, obj := e.item, t.decoded(e)
	t.mu.RUnlock()
	if obj != nil {
		it.read()
		return obj, true
	}
	if obj = it.decode(); obj == nil {
		return nil, false
	}
	if t.wasRead(it) {
		t.promote([]reading{{e, it, obj}})
	}
	return t.keep(it, obj, t.hot.Put), true
}

// decodeForHandler decodes an item for a handler. Handlers go through many objects, so this evicts nothing that
// readers use. It returns nil if the item is undecodable.
func (t *table) decodeForHandler(it *item) any {
	if it.v == nil {
		return it.obj
	}
	if obj, ok := t.hot.Get(it.v, it.form.codec); ok {
		return obj
	}
	obj := it.decode()
	if obj == nil {
		return nil
	}
	return t.keep(it, obj, t.hot.Fill)
}

// cacheChanged keeps a changed object decoded for a while, since its handlers are likely to read it.
func (t *table) cacheChanged(c *change) {
	if c.item.v != nil && c.obj != nil {
		t.keep(c.item, c.obj, t.hot.Put)
	}
}

// keep caches an item's decoded object for a while by one of Hot's methods, unless the item was replaced meanwhile:
// nothing would drop it then. It returns the cached object, or obj.
func (t *table) keep(it *item, obj any, by func(v *compact.Version, decoder, obj any, size int64) any) any {
	if t.informer != nil {
		t.informer.learnKind(obj)
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.ended || it.gone.Load() {
		return obj
	}
	return by(it.v, it.form.codec, obj, it.heap())
}

// end drops all decoded objects. Later reads decode each time.
func (t *table) end() {
	t.writing.Lock()
	defer t.writing.Unlock()
	if t.keeper != nil {
		t.keeper.end()
		t.demote(true)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	for _, e := range t.list {
		t.hot.Drop(e.item.v)
	}
}

// all reads every object.
func (t *table) all() []any {
	t.mu.RLock()
	objs, some := t.pick(t.list)
	t.mu.RUnlock()
	return t.scan(objs, some)
}

// pick returns the decoded objects of the entries in place, and the entries still to be decoded. The caller holds mu.
func (t *table) pick(entries []*entry) (objs []any, some []missing) {
	objs = make([]any, len(entries))
	for i, e := range entries {
		if it := e.item; it.v == nil {
			it.read()
			objs[i] = it.obj
		} else {
			some = append(some, missing{i, e, it})
		}
	}
	return objs, some
}

// missing is an object still to be decoded, with its place in a list.
type missing struct {
	at int
	e  *entry
	it *item
}

// Several goroutines decode reads of many objects, to shorten calls such as listing all pods.
const (
	scanners = 4
	minScan  = 256 // the least number of objects for a goroutine
)

// scan decodes the missing objects and drops undecodable ones. It evicts nothing that is kept decoded because it is
// read by key.
func (t *table) scan(objs []any, some []missing) []any {
	if len(some) == 0 {
		return objs
	}
	each := max(minScan, (len(some)+scanners-1)/scanners)
	var mu sync.Mutex
	var keep []reading
	var others sync.WaitGroup
	part := func(some []missing) {
		read := t.scanPart(objs, some)
		mu.Lock()
		defer mu.Unlock()
		keep = append(keep, read...)
	}
	for len(some) > each {
		these := some[:each]
		some = some[each:]
		others.Go(func() { part(these) })
	}
	part(some)
	others.Wait()
	t.promote(keep)
	return slices.DeleteFunc(objs, func(obj any) bool { return obj == nil })
}

// scanPart returns the objects to keep decoded.
func (t *table) scanPart(objs []any, some []missing) (keep []reading) {
	for _, m := range some {
		if obj, ok := t.hot.Get(m.it.v, m.it.form.codec); ok {
			objs[m.at] = obj
		} else if obj := m.it.decode(); obj != nil {
			if t.wasRead(m.it) {
				objs[m.at] = obj
				keep = append(keep, reading{m.e, m.it, obj})
			} else {
				objs[m.at] = t.keep(m.it, obj, t.hot.Fill)
			}
		}
	}
	return keep
}
