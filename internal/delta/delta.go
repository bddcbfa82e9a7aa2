// Package delta writes a text as its difference from another one, of which it is a version.
//
// It is made for JSON objects of any size, of which little changes at a time: a copied run costs one
// to four bytes, and what lies behind the last change costs nothing.
//
//   - A difference carries no checksum and does not know its base: the caller keeps both.
//   - Nothing is compressed: a caller whose differences are long does that himself.
//   - The format is durable; docs/journal.md describes it.
package delta

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// MaxSize is the length in bytes of the longest text that is written or read.
const MaxSize = 64 << 20

// ErrBroken says that bytes are no difference from the base that they are read with.
var ErrBroken = errors.New("difference is broken")

// A difference is the varint of how much longer the text is than its base, and operations that append
// to the text. The first byte of an operation holds what it does (high two bits) and for how many
// bytes (low six bits: up to 62 is that and 1; 63 is the uvarint that follows and 64). What lacks of
// the text after the last operation is copied from where the last copy would go on.
const (
	opLiteral = iota // the bytes follow
	opSame           // bytes of the base, from where the text's position and the shift lead
	opMove           // the same, after the shift was changed by the varint that follows
)

const (
	longLen  = 63 // in the low bits: the length follows
	stride   = 8  // of the positions of the base that are found
	minMove  = 12 // shorter matches elsewhere in the base do not pay
	skipBits = 6  // after so many bytes without a match (as a power of two) every second is looked at
)

// Encoder writes differences. Its zero value is ready; it is not safe for concurrent use.
type Encoder struct {
	table []uint32 // positions in the base, by hash
	shift uint8    // from a hash to an index
}

// Append appends to dst the difference of text from base. Both have at most MaxSize bytes: more is
// the caller's bug and panics.
//
// What is written is what a person would: go on in the base where the last match would go on, as long
// as that fits. It could be shorter: the search takes what it finds first.
func (e *Encoder) Append(dst, text, base []byte) []byte {
	if len(text) > MaxSize || len(base) > MaxSize {
		panic(fmt.Sprintf("delta: texts of %d and %d bytes", len(text), len(base)))
	}
	e.index(base)
	dst = binary.AppendVarint(dst, int64(len(text)-len(base)))
	done, shift := 0, 0
	for {
		m := e.next(text, base, done, shift)
		if m.n > 0 && m.at+m.n == len(text) && m.from-m.at == shift {
			return appendLiteral(dst, text[done:m.at]) // the rest goes without saying
		}
		dst = appendLiteral(dst, text[done:m.at])
		switch {
		case m.n == 0:
			return dst
		case m.from-m.at == shift:
			dst = appendOp(dst, opSame, m.n)
		default:
			dst = appendOp(dst, opMove, m.n)
			dst = binary.AppendVarint(dst, int64(m.from-m.at-shift))
			shift = m.from - m.at
		}
		done = m.at + m.n
	}
}

// match says that the text has at at the n bytes that the base has at from.
type match struct{ at, from, n int }

// next finds the first match behind what is told; where there is none, it is empty and at the end.
func (e *Encoder) next(text, base []byte, done, shift int) match {
	for s := done; s+8 <= len(text); s += 1 + (s-done)>>skipBits {
		word := load64(text, s)
		if c := s + shift; c >= 0 && c+4 <= len(base) && load32(base, c) == uint32(word) {
			return extend(text, base, done, s, c)
		}
		if c := int(e.table[hash(word, e.shift)]); c+8 <= len(base) && load32(base, c) == uint32(word) {
			if m := extend(text, base, done, s, c); m.n >= minMove {
				return m
			}
		}
	}
	// The last bytes are too few to be looked for, but may go on where the last match did.
	n := 0
	for at := len(text) - 1; at >= done && at+shift >= 0 && at+shift < len(base) && text[at] == base[at+shift]; at-- {
		n++
	}
	return match{len(text) - n, len(text) - n + shift, n}
}

// extend makes a match of four bytes as long as it can be, backwards too.
func extend(text, base []byte, done, s, c int) match {
	n := 4 + common(text[s+4:], base[c+4:])
	for s > done && c > 0 && text[s-1] == base[c-1] {
		s, c, n = s-1, c-1, n+1
	}
	return match{s, c, n}
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

// index notes where the base has what.
func (e *Encoder) index(base []byte) {
	n := bits.Len(uint(len(base) / stride))
	e.shift = uint8(64 - n)
	if cap(e.table) < 1<<n {
		e.table = make([]uint32, 1<<n)
	}
	e.table = e.table[:1<<n]
	clear(e.table)
	for i := 0; i+8 <= len(base); i += stride {
		e.table[hash(load64(base, i), e.shift)] = uint32(i)
	}
}

// hash hashes the six bytes that come first.
func hash(word uint64, shift uint8) uint64 { return word << 16 * 0x9E3779B185EBCA87 >> shift }

func load64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }
func load32(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[i:]) }

func appendLiteral(dst, b []byte) []byte {
	if len(b) == 0 {
		return dst
	}
	return append(appendOp(dst, opLiteral, len(b)), b...)
}

func appendOp(dst []byte, op byte, n int) []byte {
	if n <= longLen {
		return append(dst, op<<6|byte(n-1))
	}
	return binary.AppendUvarint(append(dst, op<<6|longLen), uint64(n-longLen-1))
}
