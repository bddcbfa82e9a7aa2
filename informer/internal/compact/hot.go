package compact

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// Hot keeps decoded objects with their versions, within a budget of bytes: those that are read again stay longest (CLOCK). A
// version may be kept decoded once per decoder, which is any comparable value. Readers share a kept object. A Hot is safe for
// concurrent use; a hit takes no lock. Each version belongs to one Hot only.
type Hot struct {
	// Left, if set before anything is kept, is called with each object that is evicted or dropped, but not with forgotten
	// ones. The Hot is locked: Left must not call it.
	Left func(v *Version, decoder, obj any)

	bytes atomic.Int64 // size of everything kept

	mu       sync.Mutex
	budget   int64
	hand     *decoded // in the ring of evictable objects
	evicting int64    // bytes in the ring
}

// decoded is a kept object.
type decoded struct {
	of      *Version
	decoder any
	obj     any
	size    int64
	used    atomic.Bool             // read since the hand, or Age, last passed
	idle    bool                    // Age found it unused
	next    atomic.Pointer[decoded] // the next one of the same version

	before, after *decoded // in the ring; nil if pinned
}

// perDecoded is the overhead in bytes of a kept object.
const perDecoded = int64(unsafe.Sizeof(decoded{}))

// NewHot returns a Hot with a budget of bytes for objects that are not pinned.
func NewHot(budget int64) *Hot { return &Hot{budget: budget} }

// Grow adds to the budget; a negative number reduces it.
func (h *Hot) Grow(bytes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.budget += bytes
	for h.evicting > h.budget {
		h.evict()
	}
}

// Bytes returns the size of everything kept, by the sizes passed to Put and Pin.
func (h *Hot) Bytes() int64 { return h.bytes.Load() }

// Get returns the kept object of v for a decoder.
func (h *Hot) Get(v *Version, decoder any) (obj any, ok bool) {
	for d := v.hot.Load(); d != nil; d = d.next.Load() {
		if d.decoder != decoder {
			continue
		}
		if !d.used.Load() { // storing the same value would still move the cache line
			d.used.Store(true)
		}
		return d.obj, true
	}
	return nil, false
}

// Put keeps an object decoded from v while the budget allows; size is its size in bytes. It returns the object kept for this
// decoder, which may be another goroutine's, or obj if none is kept.
func (h *Hot) Put(v *Version, decoder, obj any, size int64) any {
	return h.put(v, decoder, obj, size, true)
}

// Fill is Put for a reader of everything: it evicts nothing, because by its next round it would have evicted all.
func (h *Hot) Fill(v *Version, decoder, obj any, size int64) any {
	return h.put(v, decoder, obj, size, false)
}

func (h *Hot) put(v *Version, decoder, obj any, size int64, evict bool) any {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d := v.decoded(decoder); d != nil {
		return d.obj
	}
	h.admit(&decoded{of: v, decoder: decoder, obj: obj, size: size + perDecoded}, evict)
	return obj
}

// admit keeps an object if the budget allows. The caller holds the lock.
func (h *Hot) admit(d *decoded, evict bool) {
	if d.size > h.budget || !evict && h.evicting+d.size > h.budget {
		return
	}
	for h.evicting+d.size > h.budget {
		h.evict()
	}
	h.enring(d)
	h.add(d)
}

// Pin keeps an object decoded from v until Drop or Retire, outside the budget; after those it is Put. It returns what Put
// returns.
func (h *Hot) Pin(v *Version, decoder, obj any, size int64) any {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := &decoded{of: v, decoder: decoder, obj: obj, size: size + perDecoded}
	for { // Drop may happen in between
		first := v.hot.Load()
		kept, dropped := v.decoded(decoder), v.decoded(goneDecoder) != nil
		if kept != nil {
			if !dropped {
				h.unring(kept)
			}
			return kept.obj
		}
		if dropped {
			h.admit(d, true)
			return obj
		}
		if h.addBefore(d, first) {
			return obj
		}
	}
}

// Drop removes v's decoded objects, pinned or not, because few will read it; nothing can be pinned to it again. It takes no
// lock if nothing is kept. A version that is never dropped is collected with its pinned objects, but Bytes keeps counting
// them.
func (h *Hot) Drop(v *Version) {
	if v == nil || v.hot.CompareAndSwap(nil, gone) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for d := v.hot.Load(); d != nil; d = d.next.Load() {
		h.unring(d)
		h.bytes.Add(-d.size)
		h.left(d)
	}
	v.hot.Store(gone)
}

// Retire is Drop for a version that subscribers are about to read: its objects are no longer pinned, and stay while the
// budget allows.
func (h *Hot) Retire(v *Version) {
	if v == nil || v.hot.CompareAndSwap(nil, gone) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if v.decoded(goneDecoder) != nil {
		return
	}
	var pinned []*decoded
	first, last := v.hot.Load(), (*decoded)(nil)
	for d := first; d != nil; d = d.next.Load() {
		if last = d; d.before == nil {
			pinned = append(pinned, d)
		}
	}
	if last == nil {
		v.hot.Store(gone)
		return
	}
	last.next.Store(gone)
	for _, d := range pinned {
		h.enring(d)
	}
	for h.evicting > h.budget {
		h.evict()
	}
}

// Age evicts objects that were not read between its last two calls.
func (h *Hot) Age() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hand == nil {
		return
	}
	last := h.hand.before
	for d, next := h.hand, h.hand.after; ; d, next = next, next.after {
		switch {
		case d.used.Swap(false):
			d.idle = false
		case !d.idle:
			d.idle = true
		default:
			h.unring(d)
			h.remove(d)
			h.left(d)
		}
		if d == last {
			return
		}
	}
}

// gone ends the list of a version that was dropped or retired. It costs nothing, and no reader has its decoder.
var gone = &decoded{decoder: goneDecoder}

type goneMark struct{}

var goneDecoder any = goneMark{}

// decoded returns the object kept for a decoder. The caller holds the Hot's lock.
func (v *Version) decoded(decoder any) *decoded {
	for d := v.hot.Load(); d != nil; d = d.next.Load() {
		if d.decoder == decoder {
			return d
		}
	}
	return nil
}

// add adds an object to the front of its version's list.
func (h *Hot) add(d *decoded) {
	for !h.addBefore(d, d.of.hot.Load()) { // Drop was faster
	}
}

// addBefore is add, unless first is no longer at the front.
func (h *Hot) addBefore(d, first *decoded) bool {
	d.next.Store(first)
	if !d.of.hot.CompareAndSwap(first, d) {
		return false
	}
	h.bytes.Add(d.size)
	return true
}

// evict moves the hand to an object that was not used since it last passed, and removes it. It goes round more than once
// only if readers are faster. The ring is not empty.
func (h *Hot) evict() {
	for h.hand.used.Swap(false) {
		h.hand = h.hand.after
	}
	d := h.hand
	h.unring(d)
	h.remove(d)
	h.left(d)
}

func (h *Hot) left(d *decoded) {
	if h.Left != nil && d.of != nil {
		h.Left(d.of, d.decoder, d.obj)
	}
}

// enring adds an object to the ring, where the hand comes last.
func (h *Hot) enring(d *decoded) {
	if h.hand == nil {
		d.before, d.after, h.hand = d, d, d
	} else {
		d.before, d.after = h.hand.before, h.hand
		d.before.after, d.after.before = d, d
	}
	h.evicting += d.size
}

// unring removes an object from the ring, if it is in it.
func (h *Hot) unring(d *decoded) {
	if d.before == nil {
		return
	}
	if h.hand == d {
		h.hand = d.after
	}
	if h.hand == d {
		h.hand = nil // it was the only one
	}
	d.before.after, d.after.before = d.after, d.before
	d.before, d.after = nil, nil
	h.evicting -= d.size
}

// remove removes an object from its version's list. A concurrent walk of the list still reaches the end.
func (h *Hot) remove(d *decoded) {
	at := &d.of.hot
	for at.Load() != d {
		at = &at.Load().next
	}
	at.Store(d.next.Load())
	h.bytes.Add(-d.size)
}
