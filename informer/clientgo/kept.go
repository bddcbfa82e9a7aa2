package clientgo

import (
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// An object that readers decode again and again is kept decoded instead of packed: its equal parts are shared with the
// others, and a read of it costs what it costs with client-go. It is packed again once nobody reads it. Each object is
// judged by its own reads, whether they come by key, by an index or by a list, so that nothing else is decoded for it.
const (
	// often is how many times an object is decoded for readers, within a while, before it is kept. A program that reads
	// everything once, as at its start, has nothing kept.
	often = 2
	// while is how often objects that were not read are looked for.
	while = 10 * time.Minute
)

// room is what all informers of an engine may keep decoded because it is read often.
type room struct {
	budget int64
	used   atomic.Int64
}

func (r *room) fits(weight int64) bool { return r.used.Load()+weight <= r.budget }

// keeper keeps a table's objects decoded that are read often. Nil is one that keeps none.
type keeper struct {
	room    *room
	waiting atomic.Bool  // the timer runs
	likely  atomic.Int64 // objects that are kept, or are about to be

	mu    sync.Mutex
	timer *time.Timer
	ended bool
}

// reading is an object that was decoded for a reader.
type reading struct {
	e   *entry
	it  *item
	obj any
}

// partsFor is the limit of a table's shared parts where so many objects are kept decoded, or are about to be.
func partsFor(objects int64) int64 { return min(partsLimit, fewParts+8<<10*objects) }

// wasRead counts a read that had to decode, and reports whether the object is to be kept.
func (t *table) wasRead(it *item) bool {
	if t.keeper == nil || it.v == nil {
		return false
	}
	t.keeper.ask(t.age)
	n := it.reads.Add(1)
	if n == often {
		t.packing.parts.Limit(partsFor(t.keeper.likely.Add(1)))
	}
	return n >= often && t.keeper.room.fits(it.heap())
}

// promote keeps objects. Where somebody writes, it is left to the next read: an index function may read, too.
func (t *table) promote(some []reading) {
	if len(some) == 0 || !t.writing.TryLock() {
		return
	}
	defer t.writing.Unlock()
	items := make([]*item, len(some)) // readers need not wait for them
	for i, r := range some {
		it := &item{obj: r.obj, form: r.it.form, weight: r.it.heap(), kept: true}
		if !t.packing.exact(r.obj) {
			it.keepFrom(r.it.v)
		}
		it.read()
		items[i] = it
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	for i, r := range some {
		if t.entries[r.e.key] != r.e || r.e.item != r.it || !t.keeper.room.fits(items[i].weight) {
			continue
		}
		t.swap(r.e, items[i])
	}
}

// keepFrom adds what a kept object was decoded from: encoding it would change it, so it is packed again as that.
func (it *item) keepFrom(v *compact.Version) {
	it.from = v
	it.weight += int64(v.Size())
}

// exact reports whether encoding an object is known to lose nothing.
func (p *packing) exact(obj any) bool {
	c := p.codec(reflect.TypeOf(obj))
	return c != nil && !c.broken.Load() && (c.check == nil || c.check(reflect.ValueOf(obj).UnsafePointer()) == same)
}

// again packs an object that was kept.
func (p *packing) again(it *item) *item {
	if it.from == nil {
		return p.item(it.obj)
	}
	return &item{v: it.from, form: it.form, weight: it.weight - int64(it.from.Size())}
}

// swap puts the same version of an object in another form. The caller holds writing and mu.
func (t *table) swap(e *entry, it *item) {
	t.forget(e)
	t.took(it)
	e.item = it
}

// age packs objects that have not been read since the last call.
func (t *table) age() {
	t.writing.Lock()
	defer t.writing.Unlock()
	t.packing.parts.Sweep()
	some := t.demote(false)
	t.keeper.likely.Store(t.kept.Load())
	t.packing.parts.Limit(partsFor(t.kept.Load()))
	if some {
		t.keeper.again()
	}
}

// demote packs objects that were not read since the last time, or all. It reports whether any were read. The caller holds
// writing.
func (t *table) demote(all bool) (some bool) {
	type packed struct {
		e  *entry
		it *item
	}
	var back []packed
	for _, e := range t.list { // nobody else writes
		switch it := e.item; {
		case !it.kept:
			some = it.reads.Swap(0) > 0 || some
		case it.used.Swap(false) && !all:
			some = true
		default:
			back = append(back, packed{e, t.packing.again(it)})
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range back {
		t.swap(p.e, p.it)
	}
	return some
}

// ask schedules a call of f, unless one is scheduled.
func (k *keeper) ask(f func()) {
	if k.waiting.Load() || k.waiting.Swap(true) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.ended:
	case k.timer == nil:
		k.timer = time.AfterFunc(while, func() { k.waiting.Store(false); f() })
	default:
		k.timer.Reset(while)
	}
}

// again schedules the same function as before.
func (k *keeper) again() { k.ask(nil) }

// end stops the timer.
func (k *keeper) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	if k.timer != nil {
		k.timer.Stop()
	}
}

// keeps reports whether the object that follows an item is to be kept decoded, too.
func (t *table) keeps(key string) bool {
	if t.keeper == nil {
		return false
	}
	it := t.item(key)
	return it != nil && it.kept && t.keeper.room.fits(0)
}
