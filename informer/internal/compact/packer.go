package compact

import (
	"sync"

	"github.com/klauspost/compress/s2"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Packer packs versions. The zero value is ready: it stores each object for itself.
type Packer struct {
	// Router chooses what to store the objects as the difference from.
	Router *Router
}

// Pack makes a version of an object's bytes, which it does not keep.
func (p *Packer) Pack(f wire.Format, uid, rv string, raw []byte) *Version {
	s := getScratch()
	defer s.put()
	if p.Router == nil || len(raw) < minSource || len(raw) > maxSource {
		s.plain(nil, raw)
		return newVersion(s, f, uid, rv, s.out, nil)
	}
	return p.Router.pack(s, f, uid, rv, raw)
}

// scratch is space to pack or unpack one object. It remembers the sample that it served last, since
// objects of one application come one after the other in a list.
type scratch struct {
	out    []byte // a payload
	record []byte
	raw    []byte

	dict    *Dict // a sample
	base    []byte
	index   index // of base
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

// content returns what a dictionary is; it is valid until the next one is asked for.
func (s *scratch) content(d *Dict) []byte {
	if d.index != nil {
		return d.payload
	}
	if s.dict != d {
		s.base = d.unpack(s.base[:0])
		s.dict, s.indexed = d, false
	}
	return s.base
}

// difference packs an object into out as the difference from a dictionary, unless it would be longer
// than limit.
func (s *scratch) difference(d *Dict, raw []byte, limit int) bool {
	base, ix := s.content(d), d.index
	if ix == nil {
		if ix = &s.index; !s.indexed {
			ix.build(base)
			s.indexed = true
		}
	}
	s.out = delta(s.out[:0], raw, base, ix, limit)
	return len(s.out) > 0
}

// challenger returns the length of the difference of an object from a version; limit is the most.
func (s *scratch) challenger(v *Version, raw []byte, limit int) int {
	s.dict = nil
	base, err := v.Append(s.base[:0])
	if err != nil {
		panic(err) // made by a Packer
	}
	s.base = base
	s.index.build(base)
	s.out = delta(s.out[:0], raw, base, &s.index, limit)
	if len(s.out) == 0 {
		return limit
	}
	return len(s.out)
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
