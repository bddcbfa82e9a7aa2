package compact

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/klauspost/compress/s2"

	"github.com/tattler-dev/tattler/internal/delta"
)

// maxSource is the size in bytes of the largest object stored as a delta, and of the largest dictionary.
const maxSource = 64 << 10

// Dict is the base of deltas: either a sample, which is one packed object, or the shared dictionary of a source, which is a
// few unpacked objects. It is immutable and lives as long as a Version, another Dict or its Router needs it.
type Dict struct {
	// payload is the shared dictionary, or the packed sample: a delta from parent, or S2.
	payload []byte
	size    int // unpacked
	parent  *Dict
	index   *delta.Index                       // of the shared dictionary; nil for a sample
	of      weak.Pointer[Version]              // the version that payload belongs to; nil if it was loaded
	last    atomic.Pointer[weak.Pointer[base]] // the unpacked sample, until it is collected; nil before the first use
}

// base is an unpacked sample. It is immutable.
type base struct {
	raw   []byte
	once  sync.Once
	index delta.Index // built once
}

// base returns the unpacked sample. It is held weakly, so a sample in use is unpacked about once per garbage collection, and
// an unused one takes no memory.
func (d *Dict) base() *base {
	if w := d.last.Load(); w != nil {
		if b := w.Value(); b != nil {
			return b
		}
	}
	b := &base{raw: d.unpack(nil)}
	w := weak.Make(b)
	d.last.Store(&w)
	return b
}

// delta appends the delta of an object from the sample, or nothing if it would be longer than limit.
func (b *base) delta(dst, raw []byte, limit int) []byte {
	b.once.Do(func() { b.index.Build(b.raw) })
	return delta.Append(dst, raw, b.raw, &b.index, limit)
}

// newSample makes a sample of a version that needs no other sample, and shares its bytes.
func newSample(v *Version) *Dict {
	p := v.payload()
	return &Dict{payload: p, size: delta.Len(p), parent: v.dict, of: weak.Make(v)}
}

// newShared makes a shared dictionary. It retains b.
func newShared(b []byte) *Dict {
	d := &Dict{payload: b, size: len(b), index: &delta.Index{}}
	d.index.Build(b)
	return d
}

// cost returns the size in bytes of the dictionary on the heap, without the version that it was made of, and of a Router's
// record of it.
func (d *Dict) cost() int {
	const remembered = 64 // a weak pointer, and the runtime's record of it
	n := int(unsafe.Sizeof(Dict{})) + remembered
	if d.of.Value() == nil {
		n += allocated(cap(d.payload))
	}
	if d.last.Load() != nil {
		n += 2 * int(unsafe.Sizeof(weak.Pointer[base]{})) // and the pointed-to weak pointer
	}
	if d.index != nil {
		n += int(unsafe.Sizeof(*d.index)) + allocated(d.index.Size())
	}
	return n
}

// unpack appends the unpacked dictionary.
func (d *Dict) unpack(dst []byte) (out []byte) {
	var err error
	switch {
	case d.index != nil:
		return append(dst, d.payload...)
	case d.parent != nil:
		out, err = delta.Apply(dst, d.payload, d.parent.payload, maxSource)
	default:
		out, err = unpack(dst, d.payload, nil)
	}
	if err != nil {
		panic(err) // it was made by a Packer, or checked by LoadDict
	}
	return out
}

const (
	storedShared = iota
	storedSample
)

// Bytes encodes the dictionary, without its parent, for LoadDict: one byte, 0 for a shared dictionary or 1 for a sample, and
// its bytes in S2.
func (d *Dict) Bytes() []byte {
	s := getScratch()
	defer s.put()
	s.raw = d.unpack(s.raw[:0])
	s.out = s2.Encode(s.out[:cap(s.out)], s.raw)
	kind := byte(storedSample)
	if d.index != nil {
		kind = storedShared
	}
	return append([]byte{kind}, s.out...)
}

// LoadDict decodes what Bytes returned. It does not retain b. Versions can use the dictionary at once; for a Router to use it,
// see Router.Adopt.
func LoadDict(b []byte) (*Dict, error) {
	if len(b) == 0 || b[0] > storedSample {
		return nil, fmt.Errorf("load dictionary: %w", errCorrupt)
	}
	kind, payload := b[0], b[1:]
	n := delta.Len(payload)
	if n < minSource || n > maxSource {
		return nil, fmt.Errorf("load dictionary: %w: it claims %d bytes", errCorrupt, n)
	}
	raw, err := unpack(nil, payload, nil)
	if err != nil {
		return nil, fmt.Errorf("load dictionary: %w", err)
	}
	if kind == storedShared {
		return newShared(raw), nil
	}
	return &Dict{payload: bytes.Clone(payload), size: n}, nil
}
