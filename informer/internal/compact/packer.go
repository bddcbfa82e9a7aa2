package compact

import (
	"sync"

	"github.com/klauspost/compress/s2"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Packer packs versions. The zero value is ready: it stores each object for itself. It has no state of
// its own, so it is safe for concurrent use.
type Packer struct {
	// Router chooses what to store the objects as the difference from.
	Router *Router
}

// Pack makes a version of an object's bytes, which it does not keep.
func (p *Packer) Pack(f wire.Format, uid, rv string, raw []byte) *Version {
	return p.PackSummed(f, uid, rv, 0, raw)
}

// PackSummed is Pack, of an object whose content had this sum when the server sent it: see Version.Sum.
func (p *Packer) PackSummed(f wire.Format, uid, rv string, sum uint64, raw []byte) *Version {
	s := getScratch()
	defer s.put()
	id := &ident{f, uid, rv, sum}
	if p.Router == nil || len(raw) < minSource || len(raw) > maxSource {
		s.plain(nil, raw)
		return newVersion(s, id, s.out, nil)
	}
	return p.Router.pack(s, id, raw)
}

// scratch is space to pack or unpack one object. It remembers the samples that it served last, since
// objects of one application come one after the other in a list, and in turn in a rollout.
type scratch struct {
	out    []byte // a payload
	record []byte
	raw    []byte

	bases [4]base
	next  int // of bases, to be replaced
}

// base is a sample, unpacked.
type base struct {
	dict    *Dict
	raw     []byte
	index   index
	indexed bool
}

var scratches = sync.Pool{New: func() any { return &scratch{} }}

func getScratch() *scratch {
	s, ok := scratches.Get().(*scratch)
	if !ok {
		return &scratch{}
	}
	return s
}

func (s *scratch) put() {
	const keep = 1 << 20 // one huge object must not cost its size for ever
	if cap(s.out)+cap(s.record)+cap(s.raw) > keep {
		s.out, s.record, s.raw = nil, nil, nil
	}
	scratches.Put(s)
}

// base returns a sample; it is valid until the next one is asked for.
func (s *scratch) base(d *Dict) *base {
	for i := range s.bases {
		if s.bases[i].dict == d {
			return &s.bases[i]
		}
	}
	b := s.spare()
	b.raw = d.unpack(b.raw[:0])
	b.dict = d
	return b
}

// spare returns space for the next sample.
func (s *scratch) spare() *base {
	b := &s.bases[s.next]
	s.next = (s.next + 1) % len(s.bases)
	b.dict, b.indexed = nil, false
	return b
}

// delta packs an object into out as the difference from the sample.
func (b *base) delta(out, raw []byte, limit int) []byte {
	if !b.indexed {
		b.index.build(b.raw)
		b.indexed = true
	}
	return delta(out, raw, b.raw, &b.index, limit)
}

// difference packs an object into out as the difference from a dictionary, unless it would be longer
// than limit.
func (s *scratch) difference(d *Dict, raw []byte, limit int) bool {
	if d.index != nil {
		s.out = delta(s.out[:0], raw, d.payload, d.index, limit)
	} else {
		s.out = s.base(d).delta(s.out[:0], raw, limit)
	}
	return len(s.out) > 0
}

// challenge returns the length of the difference of an object from a version, up to limit.
func (s *scratch) challenge(v *Version, raw []byte, limit int) int {
	b := s.spare()
	var err error
	if b.raw, err = v.Append(b.raw[:0]); err != nil {
		panic(err) // made by a Packer
	}
	if s.out = b.delta(s.out[:0], raw, limit); len(s.out) > 0 {
		return len(s.out)
	}
	return limit
}

// plain packs an object into out as the difference from the shared dictionary, which it returns, or
// where there is none or it does not help, in S2.
func (s *scratch) plain(shared *Dict, raw []byte) *Dict {
	if shared != nil && s.difference(shared, raw, len(raw)) {
		return shared
	}
	if n := s2.MaxEncodedLen(len(raw)); cap(s.out) < n {
		s.out = make([]byte, n)
	}
	s.out = s2.Encode(s.out[:cap(s.out)], raw)
	return nil
}
