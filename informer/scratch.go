package informer

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// scratch is space to unpack an object in, for as long as it takes to decode it.
type scratch struct{ b []byte }

var scratches = sync.Pool{New: func() any { return &scratch{} }}

func borrow() *scratch {
	s, ok := scratches.Get().(*scratch)
	if !ok {
		return &scratch{}
	}
	return s
}

func (s *scratch) giveBack() {
	const keep = 1 << 20 // one huge object must not cost its size for ever
	if cap(s.b) <= keep {
		scratches.Put(s)
	}
}

// doorkeeper remembers, roughly, which versions were read lately, so that only what is read a second
// time is kept decoded.
type doorkeeper [1 << 10]atomic.Uintptr

// again tells whether the version was read before, and remembers it. Now and then it errs, which
// costs a decode.
func (d *doorkeeper) again(v *compact.Version) bool {
	at := uintptr(unsafe.Pointer(v)) //nolint:gosec // only compared
	slot := &d[(at>>5*0x9E3779B1)>>16%uintptr(len(d))]
	return slot.Swap(at) == at
}
