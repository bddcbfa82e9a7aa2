package clientgo

import (
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// table is the objects of one informer and their indexes: its cache. Any number of goroutines read it
// and any may write it, as client-go's stores allow.
type table struct {
	of      *sharedInformer // nil in some tests
	packing *packing
	hot     *compact.Hot
	keeper  *keeper // nil: what is read often is not kept decoded for that

	// writing is held by writers, and while indexes are added: values are computed under it, so that
	// readers wait only for the pointers to move. It is taken before mu.
	writing sync.Mutex

	mu      sync.RWMutex
	entries map[string]*entry
	list    []*entry // all of them, in no order
	indexes []*index
	version string // the last one seen
	ended   bool   // nothing is kept decoded any more

	bytes atomic.Int64 // of the items at rest
	kept  atomic.Int64 // objects that are kept decoded because they are read often
}

// entry is one object.
type entry struct {
	key    string
	item   *item
	place  int
	values [][]string // by index; nil where the key says it, or there is nothing but that
}

func newTable(e *Engine, storage Storage, indexers cache.Indexers, of *sharedInformer) *table {
	t := &table{of: of, packing: newPacking(storage == Live), hot: e.hot, entries: map[string]*entry{}}
	if storage == Auto {
		t.keeper = &keeper{room: &e.room}
	}
	for name, f := range indexers {
		t.indexes = append(t.indexes, newIndex(name, f))
	}
	return t
}

// detector is the informer's; nil is none.
func (t *table) detector() *detector {
	if t.of == nil {
		return nil
	}
	return t.of.detector
}

// change is what a writer does to one object.
type change struct {
	key string
	// item is the new state; nil deletes.
	item   *item
	obj    any        // item decoded, if it is at hand
	byHand bool       // whoever writes hears of an index function that panics
	vals   [][]string // computed by the table
	old    *item      // what was there; set by the table
	was    any        // old decoded, if that is at hand; set by the table
}

// apply makes the changes visible at once, and tells each what it replaced: of a key that occurs twice,
// both times what was there before. With all, what they do not name is deleted, and returned.
// The version, unless it is nil, is noted as the last one seen.
func (t *table) apply(changes []change, all bool, version *string) (gone []change) {
	t.writing.Lock()
	defer t.writing.Unlock()
	for i := range changes {
		c := &changes[i]
		if e := t.entries[c.key]; e != nil { // nobody else writes
			c.old, c.was = e.item, t.decoded(e)
		}
		if c.item == nil || c.item == c.old {
			continue
		}
		had := c.obj != nil
		c.vals = t.compute(c)
		if !had && i >= maxAtHand { // of a list, not every object is kept decoded at once
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
		if t.of != nil {
			t.of.metrics.version(*version)
		}
	}
	t.mu.Unlock()
	return gone
}

// unnamed are the objects that the changes do not name.
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

// decoded is an entry's object where that costs nothing, or nil. The caller holds writing or mu.
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
	case e.item == c.item: // a list named what is there
		c.obj = c.was
		return
	default:
		t.forget(e)
	}
	if e.item != nil { // a change is no read, and no reason to forget one
		c.item.reads.Store(e.item.reads.Load())
		c.item.used.Store(e.item.used.Load())
	}
	t.took(c.item)
	e.item = c.item
	for i, ix := range t.indexes {
		if kept := ix.move(e, valuesAt(e.values, i), valuesAt(c.vals, i)); c.vals != nil {
			c.vals[i] = kept
		}
	}
	e.values = c.vals
}

// enter makes the entry of an object that is not there.
func (t *table) enter(key string) *entry {
	e := &entry{key: key, place: len(t.list)}
	t.entries[key] = e
	t.list = append(t.list, e)
	for _, ix := range t.indexes {
		ix.enter(e)
	}
	return e
}

// forget lets go of what an entry has, which is about to be replaced.
func (t *table) forget(e *entry) {
	t.bytes.Add(-e.item.size())
	e.item.gone.Store(true)
	t.hot.Drop(e.item.v)
	if e.item.kept {
		t.keeper.room.used.Add(-e.item.weight)
		t.kept.Add(-1)
	}
}

// took counts what an entry is about to have.
func (t *table) took(it *item) {
	t.bytes.Add(it.size())
	it.gone.Store(false)
	if it.kept {
		t.keeper.room.used.Add(it.weight)
		t.kept.Add(1)
	}
}

// remove deletes an object, if it is there. The caller holds mu.
func (t *table) remove(key string) {
	e := t.entries[key]
	if e == nil {
		return
	}
	t.forget(e)
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

// keys are those of all objects, in no order.
func (t *table) keys() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	keys := make([]string, len(t.list))
	for i, e := range t.list {
		keys[i] = e.key
	}
	return keys
}

// items are those of all objects, in no order.
func (t *table) items() []change {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make([]change, len(t.list))
	for i, e := range t.list {
		all[i] = change{key: e.key, item: e.item, obj: t.decoded(e)}
	}
	return all
}

// item is what is stored of an object; nil is nothing.
func (t *table) item(key string) *item {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if e := t.entries[key]; e != nil {
		return e.item
	}
	return nil
}

// get reads one object. What is read is kept decoded for a while.
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

// glance decodes an item for a handler, which goes over much: that drives nothing out of what is kept for
// readers. Nil is one that cannot be decoded.
func (t *table) glance(it *item) any {
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

// warm keeps an object decoded for a while that was just changed: whoever hears of it may read it.
func (t *table) warm(c *change) {
	if c.item.v != nil && c.obj != nil {
		t.keep(c.item, c.obj, t.hot.Put)
	}
}

// keep keeps what an item was decoded to for a while, by one of Hot's methods, unless it was replaced since:
// nobody would drop it. It returns what is kept, or obj.
func (t *table) keep(it *item, obj any, by func(v *compact.Version, decoder, obj any, size int64) any) any {
	if t.of != nil {
		t.of.meet(obj)
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.ended || it.gone.Load() {
		return obj
	}
	return by(it.v, it.form.codec, obj, it.heap())
}

// end lets go of what is decoded: nobody is going to read much. What is still read is decoded each time.
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

// pick returns the objects of entries where they are kept decoded, in their places, and what is to be decoded for the
// other places. The caller holds mu.
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

// missing is an object that is to be decoded for a place in a list.
type missing struct {
	at int
	e  *entry
	it *item
}

// Reads of many objects are decoded by several goroutines: whoever lists all pods waits for them.
const (
	scanners = 4
	scanEach = 256 // objects that are worth a goroutine
)

// scan decodes what is missing, and leaves out what cannot be decoded. It drives nothing out of what is kept decoded
// because it is read by key.
func (t *table) scan(objs []any, some []missing) []any {
	if len(some) == 0 {
		return objs
	}
	each := max(scanEach, (len(some)+scanners-1)/scanners)
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

// scanPart returns those that are to be kept.
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
