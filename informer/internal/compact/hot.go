package compact

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// Hot keeps decoded objects beside their versions, within a budget of bytes: those that are read
// again stay longest (CLOCK). A version may be kept decoded in several ways, one for each decoder,
// which is any comparable value. An object that is kept belongs to all who read it. A Hot is safe for
// concurrent use; a hit takes no lock. Each version is kept by one Hot only.
type Hot struct {
	// Left, if set before anything is kept, is called with each object that is evicted or dropped, but not with those
	// that are forgotten. The Hot is locked: Left must not call it.
	Left func(v *Version, decoder, obj any)

	bytes atomic.Int64 // of all that is kept

	mu       sync.Mutex
	budget   int64
	hand     *decoded // in the ring of what may be evicted
	evicting int64    // bytes of the ring
}

// decoded is an object that is kept.
type decoded struct {
	of      *Version
	decoder any
	obj     any
	size    int64
	used    atomic.Bool             // since the hand, or Age, came by last
	idle    bool                    // Age found it unused
	next    atomic.Pointer[decoded] // of the same version

	before, after *decoded // in the ring; nil where it is pinned
}

// perDecoded is what keeping an object costs beside the object, in bytes.
const perDecoded = int64(unsafe.Sizeof(decoded{}))

// NewHot returns a Hot that keeps so many bytes, and what is pinned.
func NewHot(budget int64) *Hot { return &Hot{budget: budget} }

// Grow adds to the budget; less than nothing takes from it.
func (h *Hot) Grow(bytes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.budget += bytes
	for h.evicting > h.budget {
		h.evict()
	}
}

// Bytes is what all that is kept costs, as Put and Pin were told.
func (h *Hot) Bytes() int64 { return h.bytes.Load() }

// Get returns what v was decoded to.
func (h *Hot) Get(v *Version, decoder any) (obj any, ok bool) {
	for d := v.hot.Load(); d != nil; d = d.next.Load() {
		if d.decoder != decoder {
			continue
		}
		if !d.used.Load() { // writing what is there already would move the cache line about
			d.used.Store(true)
		}
		return d.obj, true
	}
	return nil, false
}

// Put keeps what v was decoded to, for as long as the budget allows; size is what that costs, in
// bytes. It returns what is kept for this decoder, which may be what another goroutine put before, or
// obj where it is not kept at all.
func (h *Hot) Put(v *Version, decoder, obj any, size int64) any {
	return h.put(v, decoder, obj, size, true)
}

// Fill is Put for who reads everything: it keeps what there is room for and drives nothing out, since
// by the time that it comes round again it would have driven out all.
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

// Pin keeps what v was decoded to until Drop or Retire, beside the budget; after those it is Put. It returns what
// Put returns.
func (h *Hot) Pin(v *Version, decoder, obj any, size int64) any {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := &decoded{of: v, decoder: decoder, obj: obj, size: size + perDecoded}
	for { // Drop may come between
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

// Drop forgets what v was decoded to, pinned or not: few are going to read it, and nothing is pinned to
// it again. For a version that is not kept it takes no lock. A version that is never dropped is
// collected with what is pinned to it, but Bytes goes on to count that.
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

// Retire is Drop for a version that subscribers are about to read: what it was decoded to is no longer pinned, and stays
// for as long as the budget allows.
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

// Age evicts what nobody has read between the last two calls of it.
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

// gone is the last of what is kept of a version that was dropped or retired. It costs nothing, and no reader asks
// for its decoder.
var gone = &decoded{decoder: goneDecoder}

type goneMark struct{}

var goneDecoder any = goneMark{}

// decoded returns what is kept for a decoder. The caller holds the Hot's lock.
func (v *Version) decoded(decoder any) *decoded {
	for d := v.hot.Load(); d != nil; d = d.next.Load() {
		if d.decoder == decoder {
			return d
		}
	}
	return nil
}

// add puts an object before the others of its version.
func (h *Hot) add(d *decoded) {
	for !h.addBefore(d, d.of.hot.Load()) { // Drop was quicker
	}
}

// addBefore is add, unless first is no longer the first of the version's.
func (h *Hot) addBefore(d, first *decoded) bool {
	d.next.Store(first)
	if !d.of.hot.CompareAndSwap(first, d) {
		return false
	}
	h.bytes.Add(d.size)
	return true
}

// evict moves the hand on to an object that was not used since it came by last, and forgets it; it
// goes round more than once only if readers are quicker. The ring is not empty.
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

// enring puts an object where the hand comes by last.
func (h *Hot) enring(d *decoded) {
	if h.hand == nil {
		d.before, d.after, h.hand = d, d, d
	} else {
		d.before, d.after = h.hand.before, h.hand
		d.before.after, d.after.before = d, d
	}
	h.evicting += d.size
}

// unring takes an object out of the ring, if it is there.
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

// remove takes an object off its version. Who walks the list meanwhile still comes to its end.
func (h *Hot) remove(d *decoded) {
	at := &d.of.hot
	for at.Load() != d {
		at = &at.Load().next
	}
	at.Store(d.next.Load())
	h.bytes.Add(-d.size)
}
