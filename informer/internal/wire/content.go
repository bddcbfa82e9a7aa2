package wire

import (
	"bytes"

	"github.com/cespare/xxhash/v2"
)

// Sum returns a sum of an object's content. A list and a watch of one API server give the same sum for
// the same version of an object: apiVersion and kind, which lists of built-in kinds leave out, are not
// part of it. Another server may order fields otherwise, so two sums that differ do not prove that the
// contents do. It is never 0, and not a secret: who knows the rest of an object can try values against it.
func Sum(f Format, raw []byte) uint64 {
	return max(1, xxhash.Sum64(Content(f, raw)))
}

// Content returns the part of an object's bytes that Sum is made of: in JSON what follows apiVersion and
// kind, where those come first; in protobuf everything, since the bare message has neither.
func Content(f Format, raw []byte) []byte {
	if f == Protobuf {
		return raw
	}
	rest, ok := bytes.CutPrefix(raw, []byte("{"))
	for ok {
		raw = rest
		rest, ok = cutTypeMember(rest)
	}
	return raw
}

// cutTypeMember cuts off the apiVersion or kind that a JSON object's members begin with, and the comma
// behind it. Bytes in any other form stay: API servers add no white space.
func cutTypeMember(members []byte) (rest []byte, ok bool) {
	for _, name := range [...]string{`"apiVersion":"`, `"kind":"`} {
		if value, ok := bytes.CutPrefix(members, []byte(name)); ok {
			_, rest, ok = bytes.Cut(value, []byte(`",`)) // neither value can hold a quote
			return rest, ok
		}
	}
	return nil, false
}
