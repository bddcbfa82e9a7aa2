package compact

import (
	"encoding/binary"
	"math/bits"
)

// A difference is the object's length (uvarint), and operations that append to the object. The first
// byte of an operation holds what it does (high three bits) and for how many bytes (low five bits, n:
// up to 29 is n+1; 30 is the next byte + 31; 31 is the next two bytes, little-endian, + 1). Checkpoints
// hold differences: a change here is a change of their format.
const (
	opLiteral = iota // n bytes, which follow
	opHex            // twice n hexadecimal digits, as n bytes, which follow
	opSame           // n bytes of the dictionary, from where the object's position and the shift lead
	opMove           // the same, after the shift was changed by the varint that follows
	opAgain          // n bytes of the object itself, from as far back as the uvarint says that follows
)

const (
	stride  = 8  // of the positions that are in an index
	minMove = 10 // shorter matches elsewhere in the dictionary do not pay
	minHex  = 16 // shorter runs of digits do not pay: names have them, too
)

// delta appends the difference of src from a dictionary, or nothing if it would be longer than limit.
// src and the dictionary have at least minSource and at most maxSource bytes.
//
// What is written is what a person would: go on in the sample where the last match would go on, as
// long as that fits; so an id of the same length costs itself and two bytes, and a field more or
// less costs three. It could be shorter: the search takes what it finds first.
func delta(dst, src, dict []byte, ix *index, limit int) []byte {
	start := len(dst)
	e := encoder{src: src, dict: dict, ix: ix}
	dst = binary.AppendUvarint(dst, uint64(len(src)))
	for {
		m := e.next()
		dst = appendLiteral(dst, src[e.done:m.at])
		if m.n == 0 {
			break
		}
		dst = appendOp(dst, m.op, m.n)
		switch m.op {
		case opMove:
			dst = binary.AppendVarint(dst, int64(m.from-m.at-e.shift))
			e.shift = m.from - m.at
		case opAgain:
			dst = binary.AppendUvarint(dst, uint64(m.at-m.from))
		}
		e.done = m.at + m.n
		if len(dst)-start > limit {
			return dst[:start]
		}
	}
	if len(dst)-start > limit {
		return dst[:start]
	}
	return dst
}

// encoder finds what an object shares with a dictionary, and with itself.
type encoder struct {
	src, dict []byte
	ix        *index
	done      int // so much of src is told
	shift     int // from a position in src to the one in dict
	seen      [1 << seenBits]uint16
}

// match says that src has at at what dict, or for opAgain src, has at from.
type match struct {
	op          byte
	at, from, n int
}

const (
	seenBits = 12
	skipBits = 5 // after so many bytes without a match (as a power of two) every second is looked at
)

// next finds the next match; at the end of src it is empty.
func (e *encoder) next() match {
	src, dict := e.src, e.dict
	for s := e.done; s+8 <= len(src); s += 1 + (s-e.done)>>skipBits {
		word := load64(src, s)
		if c := s + e.shift; c >= 0 && c <= len(dict)-8 && load32(dict, c) == uint32(word) {
			return e.extend(opSame, s, c, dict)
		}
		if c := e.ix.find(word); load32(dict, c) == uint32(word) {
			if m := e.extend(opMove, s, c, dict); m.n >= minMove {
				return m
			}
		}
		h := hash(word, 64-seenBits)
		c := int(e.seen[h])
		e.seen[h] = uint16(s)
		if c < s && load32(src, c) == uint32(word) {
			return e.extend(opAgain, s, c, src)
		}
	}
	return match{at: len(src)}
}

// extend makes a match of four bytes as long as it can be, backwards too.
func (e *encoder) extend(op byte, s, c int, in []byte) match {
	n := 4 + common(e.src[s+4:], in[c+4:])
	for s > e.done && c > 0 && e.src[s-1] == in[c-1] {
		s, c, n = s-1, c-1, n+1
	}
	return match{op, s, c, n}
}

// common is the length of the longest common prefix.
func common(a, b []byte) int {
	n := 0
	for ; len(a)-n >= 8 && len(b)-n >= 8; n += 8 {
		if x := load64(a, n) ^ load64(b, n); x != 0 {
			return n + bits.TrailingZeros64(x)>>3
		}
	}
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// index finds where a dictionary has the bytes at hand, if it has them.
type index struct {
	table []uint16 // positions by hash
	shift uint8
}

// build makes the index of a dictionary, in the space of the last one.
func (x *index) build(dict []byte) {
	n := bits.Len(uint(len(dict) / stride))
	x.shift = uint8(64 - n)
	if cap(x.table) < 1<<n {
		x.table = make([]uint16, 1<<n)
	}
	x.table = x.table[:1<<n]
	clear(x.table)
	for i := 0; i+8 <= len(dict); i += stride {
		x.table[hash(load64(dict, i), x.shift)] = uint16(i)
	}
}

// find returns a position at which a dictionary of at least eight bytes may have word.
func (x *index) find(word uint64) int { return int(x.table[hash(word, x.shift)]) }

// cost is what the index takes on the heap, in bytes.
func (x *index) cost() int { return 32 + allocated(2*cap(x.table)) }

// hash hashes the six bytes that come first.
func hash(word uint64, shift uint8) uint64 {
	return word << 16 * 0x9E3779B185EBCA87 >> (shift & 63)
}

func load64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }
func load32(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[i:]) }
