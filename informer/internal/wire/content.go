package wire

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// Sum returns a checksum of an object's content, never 0. A list and a watch of one API server yield the same
// sum for the same version of an object: apiVersion and kind, which lists of built-in kinds omit, are not
// included. Another server may order fields differently, so different sums do not prove different contents. The
// sum does not hide the content: a reader who knows the rest of an object can test guesses against it.
func Sum(f Format, raw []byte) uint64 {
	return max(1, xxhash.Sum64(Content(f, raw)))
}

// KeyedSum is Sum with a key, without which guesses cannot be tested against it.
func KeyedSum(key []byte, f Format, raw []byte) uint64 {
	h := hmac.New(sha256.New, key)
	h.Write(Content(f, raw))
	return max(1, binary.BigEndian.Uint64(h.Sum(nil)))
}

// Content returns the part of an object's bytes that Sum covers. In JSON that is everything after a leading
// apiVersion and kind; in protobuf it is everything, since the bare message has neither.
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

// cutTypeMember cuts off a leading apiVersion or kind and the comma after it. It expects no white space,
// because API servers write none; bytes in any other form stay.
func cutTypeMember(members []byte) (rest []byte, ok bool) {
	for _, name := range [...]string{`"apiVersion":"`, `"kind":"`} {
		if value, ok := bytes.CutPrefix(members, []byte(name)); ok {
			_, rest, ok = bytes.Cut(value, []byte(`",`)) // neither value can contain a quote
			return rest, ok
		}
	}
	return nil, false
}
