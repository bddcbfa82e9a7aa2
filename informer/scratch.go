package informer

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// scratch is a reusable buffer to unpack an object for decoding.
type scratch struct{ b []byte }

var scratches = sync.Pool{New: func() any { return &scratch{} }}

func borrow() *scratch { return scratches.Get().(*scratch) }

func (s *scratch) giveBack() {
	const keep = 1 << 20 // one huge object must not hold its memory forever
	if cap(s.b) <= keep {
		scratches.Put(s)
	}
}

// doorkeeper remembers, approximately, which versions were read recently, so that only versions read twice are kept
// decoded.
type doorkeeper [1 << 10]atomic.Uintptr

// again reports whether the version was read before, and remembers it. An occasional wrong answer costs a decode.
func (d *doorkeeper) again(v *compact.Version) bool {
	at := uintptr(unsafe.Pointer(v)) //nolint:gosec // only compared
	slot := &d[(at>>5*0x9E3779B1)>>16%uintptr(len(d))]
	return slot.Swap(at) == at
}
