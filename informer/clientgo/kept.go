package clientgo

import (
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// An object that readers decode repeatedly is kept decoded instead of packed. It shares its equal parts with others,
// and reading it costs the same as with client-go. It is packed again when it is no longer read. Each object counts
// its own reads, whether by key, by an index or in a list, so one object's reads never keep another decoded.
const (
	// readsToKeep is the number of decodes for readers, within packUnreadEvery, after which an object is kept
	// decoded. With 2, a program that reads everything once at its start keeps nothing.
	readsToKeep = 2
	// packUnreadEvery is the interval at which unread objects are packed again.
	packUnreadEvery = 10 * time.Minute
)

// keptBudget limits the objects of all informers of an engine that are kept decoded because they are read often.
type keptBudget struct {
	limit int64
	used  atomic.Int64
}

func (b *keptBudget) fits(weight int64) bool { return b.used.Load()+weight <= b.limit }

// keeper keeps a table's frequently read objects decoded. A nil keeper keeps none.
type keeper struct {
	budget     *keptBudget
	waiting    atomic.Bool  // the timer is running
	candidates atomic.Int64 // objects that are kept or about to be

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

// partsFor returns the limit of a table's shared parts for this number of objects that are kept decoded or about to
// be.
func partsFor(objects int64) int64 { return min(partsLimit, minPartsLimit+8<<10*objects) }

// wasRead counts a read that had to decode, and reports whether to keep the object.
func (t *table) wasRead(it *item) bool {
	if t.keeper == nil || it.v == nil {
		return false
	}
	t.keeper.schedule(t.age)
	n := it.reads.Add(1)
	if n == readsToKeep {
		t.packing.parts.Limit(partsFor(t.keeper.candidates.Add(1)))
	}
	return n >= readsToKeep && t.keeper.budget.fits(it.heap())
}

// promote keeps objects decoded. If the table is being written, it leaves them to the next read: an index function
// may be the reader.
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
		if t.entries[r.e.key] != r.e || r.e.item != r.it || !t.keeper.budget.fits(items[i].weight) {
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

// swap replaces an item by another form of the same version. The caller holds writing and mu.
func (t *table) swap(e *entry, it *item) {
	t.release(e)
	t.account(it)
	e.item = it
}

// age packs objects that were not read since the last call.
func (t *table) age() {
	t.writing.Lock()
	defer t.writing.Unlock()
	t.packing.parts.Sweep()
	some := t.demote(false)
	t.keeper.candidates.Store(t.kept.Load())
	t.packing.parts.Limit(partsFor(t.kept.Load()))
	if some {
		t.keeper.reschedule()
	}
}

// demote packs the objects that were not read since the last call, or all of them. It reports whether any were read.
// The caller holds writing.
func (t *table) demote(all bool) (some bool) {
	type packed struct {
		e  *entry
		it *item
	}
	var back []packed
	for _, e := range t.list { // the lock keeps other writers out
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

// schedule schedules a call of f, unless one is scheduled already.
func (k *keeper) schedule(f func()) {
	if k.waiting.Load() || k.waiting.Swap(true) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.ended:
	case k.timer == nil:
		k.timer = time.AfterFunc(packUnreadEvery, func() { k.waiting.Store(false); f() })
	default:
		k.timer.Reset(packUnreadEvery)
	}
}

// reschedule schedules the same function again.
func (k *keeper) reschedule() { k.schedule(nil) }

// end stops the timer.
func (k *keeper) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	if k.timer != nil {
		k.timer.Stop()
	}
}

// staysDecoded reports whether the next version of this object is kept decoded, too.
func (t *table) staysDecoded(key string) bool {
	if t.keeper == nil {
		return false
	}
	it := t.item(key)
	return it != nil && it.kept && t.keeper.budget.fits(0)
}
