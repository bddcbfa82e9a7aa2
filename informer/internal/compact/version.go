package compact

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/klauspost/compress/s2"

	"github.com/tattler-dev/tattler/informer/internal/wire"
	"github.com/tattler-dev/tattler/internal/delta"
)

// Version is a packed version of an object: immutable, and shared by pointer. Nil is an absent version.
type Version struct {
	// record is the format, the sum if there is one, the lengths of UID and resource version, the UID's position, the
	// resource version, the UID unless the payload contains it, and the payload. One string costs one allocation without
	// slack, and its parts can be returned without a copy.
	record string
	dict   *Dict // the payload's base; nil if it is S2
	hot    atomic.Pointer[decoded]
}

// versionSize is the size in bytes of a Version without its record.
const versionSize = int(unsafe.Sizeof(Version{}))

// ident identifies a version.
type ident struct {
	format  wire.Format
	uid, rv string
	sum     uint64 // see Version.Sum
}

// summed marks the first byte of a record that has a sum.
const summed = 0x80

// newVersion makes a version of a payload, which it copies.
func newVersion(s *scratch, id *ident, payload []byte, d *Dict) *Version {
	// A UID is random, so the payload nearly always contains it literally: the search is short.
	place := 1 + bytes.Index(payload, unsafe.Slice(unsafe.StringData(id.uid), len(id.uid)))
	b := append(s.record[:0], byte(id.format))
	if id.sum != 0 {
		b[0] |= summed
		b = binary.LittleEndian.AppendUint64(b, id.sum)
	}
	b = binary.AppendUvarint(b, uint64(len(id.uid)))
	b = binary.AppendUvarint(b, uint64(len(id.rv)))
	b = binary.AppendUvarint(b, uint64(place))
	b = append(b, id.rv...)
	if place == 0 {
		b = append(b, id.uid...)
	}
	s.record = append(b, payload...)
	return &Version{record: string(s.record), dict: d}
}

// parts splits the record.
func (v *Version) parts() (uid, rv, payload string) {
	rest := v.record[1:]
	if v.record[0]&summed != 0 {
		rest = rest[8:]
	}
	uids, rest := cutUvarint(rest)
	rvs, rest := cutUvarint(rest)
	place, rest := cutUvarint(rest)
	rv, rest = rest[:rvs], rest[rvs:]
	if place == 0 {
		return rest[:uids], rv, rest[uids:]
	}
	return rest[place-1 : place-1+uids], rv, rest
}

// cutUvarint cuts a number off a record, which is always valid.
func cutUvarint(s string) (int, string) {
	n := 0
	for i := 0; ; i++ {
		n |= int(s[i]&0x7f) << (7 * i)
		if s[i] < 0x80 {
			return n, s[i+1:]
		}
	}
}

// UID returns the object's UID. Like RV, it is part of the record: keeping it keeps the whole record.
func (v *Version) UID() string {
	if v == nil {
		return ""
	}
	uid, _, _ := v.parts()
	return uid
}

// RV returns the resource version.
func (v *Version) RV() string {
	if v == nil {
		return ""
	}
	_, rv, _ := v.parts()
	return rv
}

// Format returns the format of the object's bytes; 0 for an absent version.
func (v *Version) Format() wire.Format {
	if v == nil {
		return 0
	}
	return wire.Format(v.record[0] &^ summed)
}

// Sum returns the sum of the object's content as the server sent it (wire.Sum); the packed bytes may be transformed. 0:
// unknown.
func (v *Version) Sum() uint64 {
	if v == nil || v.record[0]&summed == 0 {
		return 0
	}
	s := v.record[1:9]
	return binary.LittleEndian.Uint64(unsafe.Slice(unsafe.StringData(s), len(s)))
}

// Size returns the version's size in bytes, without its dictionary.
func (v *Version) Size() int {
	if v == nil {
		return 0
	}
	return versionSize + allocated(len(v.record))
}

// allocated returns about what Go allocates for n bytes without pointers: the size classes are a 16th to an eighth apart.
//
// Source: runtime/sizeclasses.go.
func allocated(n int) int {
	step := 16
	if n > 256 {
		step = 1 << (bits.Len(uint(n-1)) - 4)
	}
	return (n + step - 1) &^ (step - 1)
}

// Append appends the object's bytes to dst; none for an absent version. It is safe for concurrent use. It fails only if
// Restore was given damaged bytes, and then returns dst unchanged.
func (v *Version) Append(dst []byte) ([]byte, error) {
	if v == nil {
		return dst, nil
	}
	out, err := unpack(dst, v.payload(), v.dict)
	if err != nil {
		return dst, fmt.Errorf("unpack object: %w", err)
	}
	return out, nil
}

// payload returns the packed object, which must not be modified.
func (v *Version) payload() []byte {
	_, _, p := v.parts()
	return unsafe.Slice(unsafe.StringData(p), len(p))
}

// Identical reports whether two versions have the same bytes, however they were packed.
func (v *Version) Identical(o *Version) bool {
	if v == nil || o == nil || v.Format() != o.Format() {
		return false
	}
	if v == o {
		return true
	}
	p, q := v.payload(), o.payload()
	if v.dict == o.dict && bytes.Equal(p, q) {
		return true
	}
	if delta.Len(p) != delta.Len(q) {
		return false
	}
	s := getScratch()
	defer s.put()
	var err error
	if s.raw, err = unpack(s.raw[:0], p, v.dict); err != nil {
		return false
	}
	n := len(s.raw)
	if s.raw, err = unpack(s.raw, q, o.dict); err != nil {
		return false
	}
	return bytes.Equal(s.raw[:n], s.raw[n:])
}

// Stored returns the packed object, which must not be modified, and its dictionary, if any, for Restore.
func (v *Version) Stored() (payload []byte, d *Dict) {
	if v == nil {
		return nil, nil
	}
	return v.payload(), v.dict
}

// Restore returns the version whose parts Stored returned. It copies the payload, and checks its claimed length only: Append
// returns an error if it is damaged.
func Restore(f wire.Format, uid, rv string, sum uint64, payload []byte, d *Dict) (*Version, error) {
	n := delta.Len(payload)
	switch {
	case n < 0:
		return nil, fmt.Errorf("restore object: %w", errCorrupt)
	case n > maxRaw, d != nil && n > maxSource:
		return nil, fmt.Errorf("restore object: %w: it claims %d bytes", errCorrupt, n)
	}
	s := getScratch()
	defer s.put()
	return newVersion(s, &ident{f, uid, rv, sum}, payload, d), nil
}

// maxRaw bounds the length in bytes that a restored object may claim. The wire adds the object's kind to what it bounds.
const maxRaw = wire.MaxObject + 64<<10

var errCorrupt = errors.New("damaged bytes")

// unpack appends the object in a payload.
func unpack(dst, payload []byte, d *Dict) ([]byte, error) {
	switch {
	case d == nil:
	case d.index != nil:
		return delta.Apply(dst, payload, d.payload, maxSource)
	default:
		return delta.Apply(dst, payload, d.base().raw, maxSource)
	}
	n := delta.Len(payload)
	if n < 0 {
		return nil, errCorrupt
	}
	dst = slices.Grow(dst, n)
	end := len(dst) + n
	if _, err := s2.Decode(dst[len(dst):len(dst):end], payload); err != nil {
		return nil, err
	}
	return dst[:end], nil
}
