package compact

import (
	"sync"

	"github.com/klauspost/compress/s2"

	"github.com/tattler-dev/tattler/informer/internal/wire"
	"github.com/tattler-dev/tattler/internal/delta"
)

// Packer packs versions. The zero value is ready: it packs each object by itself. It has no state and is safe for concurrent
// use.
type Packer struct {
	// Router chooses the objects' dictionaries.
	Router *Router
}

// Pack packs an object's bytes, which it does not retain.
func (p *Packer) Pack(f wire.Format, uid, rv string, raw []byte) *Version {
	return p.PackSummed(f, uid, rv, 0, raw)
}

// PackSummed is Pack with the sum of the content that the server sent: see Version.Sum.
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

// scratch is reusable memory to pack or unpack one object.
type scratch struct {
	out    []byte // a payload
	record []byte
	raw    []byte
}

var scratches = sync.Pool{New: func() any { return &scratch{} }}

func getScratch() *scratch { return scratches.Get().(*scratch) }

func (s *scratch) put() {
	const keep = 1 << 20 // one huge object must not cost its size forever
	if cap(s.out)+cap(s.record)+cap(s.raw) > keep {
		s.out, s.record, s.raw = nil, nil, nil
	}
	scratches.Put(s)
}

// difference packs an object into out as a delta from a dictionary, unless it would be longer than limit.
func (s *scratch) difference(d *Dict, raw []byte, limit int) bool {
	if d.index != nil {
		s.out = delta.Append(s.out[:0], raw, d.payload, d.index, limit)
	} else {
		s.out = d.base().delta(s.out[:0], raw, limit)
	}
	return len(s.out) > 0
}

// challenge returns the length of an object's delta from a version, up to limit.
func (s *scratch) challenge(v *Version, raw []byte, limit int) int {
	sample, err := v.Append(nil)
	if err != nil {
		panic(err) // made by a Packer
	}
	b := &base{raw: sample}
	if s.out = b.delta(s.out[:0], raw, limit); len(s.out) > 0 {
		return len(s.out)
	}
	return limit
}

// plain packs an object into out as a delta from the shared dictionary, which it returns, or in S2 if there is no such dictionary or it
// does not help.
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
