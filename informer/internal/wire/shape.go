package wire

import (
	"math/bits"
	"strings"
)

// shape is the input of a fingerprint. Its slices lie in the object's bytes.
type shape struct {
	owner     []byte // kind of the controller
	app       []byte // value of the label that comes first in appLabels
	rank      int    // 1 + its place there; 0: no such label
	component []byte
	generate  []byte // generateName
}

// appLabels name the application of an object, the most reliable first.
var appLabels = [...]string{"app.kubernetes.io/name", "app", "k8s-app", "name", "run"}

// componentLabel distinguishes the parts of one application.
const componentLabel = "app.kubernetes.io/component"

// label records one label.
func (s *shape) label(key, value []byte) {
	if len(value) == 0 {
		return
	}
	if string(key) == componentLabel {
		s.component = value
		return
	}
	for i, l := range appLabels {
		if string(key) == l && (s.rank == 0 || i+1 <= s.rank) {
			s.app, s.rank = value, i+1
		}
	}
}

// complete reports whether the rest of the object cannot change the fingerprint: labels lie together.
func (s *shape) complete() bool { return len(s.owner) > 0 && (len(s.app) > 0 || len(s.component) > 0) }

// sum returns the fingerprint of an object of size bytes.
func (s *shape) sum(size int) uint64 {
	h := fnvOffset
	h.add('o', s.owner)
	switch {
	case len(s.app) > 0 || len(s.component) > 0:
		h.add('a', s.app)
		h.add('c', s.component)
	case len(s.generate) > 0:
		h.add('g', withoutHash(s.generate))
	default:
		h.add('s', []byte{byte(bits.Len(uint(size)))})
	}
	return uint64(h)
}

// fnv is 64-bit FNV-1a, which is the same in every process.
type fnv uint64

const (
	fnvOffset fnv = 14695981039346656037
	fnvPrime  fnv = 1099511628211
)

// add hashes a non-empty value, preceded by a byte for its type.
func (h *fnv) add(what byte, value []byte) {
	if len(value) == 0 {
		return
	}
	x := (*h ^ fnv(what)) * fnvPrime
	for _, c := range value {
		x = (x ^ fnv(c)) * fnvPrime
	}
	*h = x * fnvPrime // like a zero byte, which no value contains
}

// hashAlphabet has the letters and digits of a template's hash.
//
// Source: k8s.io/apimachinery/pkg/util/rand.
const hashAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// withoutHash removes the suffix of a generateName that differs between templates or runs: the hash that a
// Deployment gives its ReplicaSets, the time that a CronJob gives its Jobs.
func withoutHash(name []byte) []byte {
	for len(name) > 0 && name[len(name)-1] == '-' {
		name = name[:len(name)-1]
	}
	i, hash, digits := len(name), true, true
	for ; i > 0 && name[i-1] != '-'; i-- {
		digit := isDigit(name[i-1])
		digits = digits && digit
		hash = hash && strings.IndexByte(hashAlphabet, name[i-1]) >= 0
	}
	n := len(name) - i
	if i > 1 && (hash && n >= 6 && n <= 10 || digits && n >= 8) {
		return name[:i-1]
	}
	return name
}
