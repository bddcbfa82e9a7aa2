// Package delta encodes a text as its difference from a base: another version of the same object, or an object like it.
//
// It is made for Kubernetes objects, in JSON or protobuf. The encoder copies from the base where the last copy would
// continue, for as long as that fits. So a changed value of the same length costs itself and a few bytes, an inserted or
// removed field costs a few more, and everything after the last change costs nothing. It takes the first match that it
// finds: a delta could be shorter.
//
//   - A delta has no checksum and does not name its base: the caller keeps both.
//   - Nothing is compressed: if long deltas are to be, the caller does it.
//   - The format is durable: the journal (docs/journal.md) and checkpoints of the informer library store it.
package delta

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// MaxSize is the size in bytes of the longest text and base.
const MaxSize = 64 << 20

// ErrBroken says that bytes are not a delta from the given base.
var ErrBroken = errors.New("broken delta")

// A delta is the text's length (uvarint), and operations that append to the text. The first byte of an operation holds
// its code (high three bits) and the number of bytes n (low five bits: up to 29 is n-1; 30 is followed by a byte, n-31; 31
// by a uvarint, n-287). After the last operation, the rest of the text is copied as by opSame.
const (
	opLiteral = iota // n bytes, which follow
	opHex            // 2n hexadecimal digits, as n bytes, which follow
	opSame           // n bytes of the base, at the text's position plus the shift (0 at first)
	opMove           // the same, after the varint that follows was added to the shift
	opAgain          // n bytes of the text itself, from as far back as the uvarint that follows
)

const (
	minMove  = 10 // shorter matches elsewhere in the base do not pay
	minHex   = 16 // shorter runs of digits do not pay: names contain some
	skipBits = 5  // after 1<<skipBits bytes without a match, only every second position is tried, and so on
	seenBits = 12
)

// Index finds positions in a base. The zero value is ready for Build. It may be shared once built.
type Index struct {
	table []uint16 // positions, in units of 1<<unit, by hash
	unit  uint8
	shift uint8
}

// Build indexes a base of at most MaxSize bytes, and reuses the memory of the last one. It indexes every eighth position;
// of bases above 512 KiB fewer, so that a position takes two bytes.
func (x *Index) Build(base []byte) {
	x.unit = uint8(max(3, bits.Len(uint(len(base)>>16))))
	n := max(1, bits.Len(uint(len(base)>>x.unit)))
	x.shift = uint8(64 - n)
	if cap(x.table) < 1<<n {
		x.table = make([]uint16, 1<<n)
	}
	x.table = x.table[:1<<n]
	clear(x.table)
	for i := 0; i+8 <= len(base); i += 1 << x.unit {
		x.table[hash(load64(base, i), x.shift)] = uint16(i >> x.unit)
	}
}

// Size is the size in bytes of the index's table.
func (x *Index) Size() int { return 2 * cap(x.table) }

// find returns a position at which the base may have word.
func (x *Index) find(word uint64) int { return int(x.table[hash(word, x.shift)]) << x.unit }

// encoder finds what a text shares with its base and with itself.
type encoder struct {
	text, base []byte
	index      *Index
	done       int // encoded bytes of the text
	shift      int // from a position in the text to one in the base
	seen       [1 << seenBits]uint16
}

// match says that the text at at equals the base, or for opAgain the text, at from, for n bytes.
type match struct {
	op          byte
	at, from, n int
}

// Append appends the delta of a text from the base of which x is the index, or nothing if the delta would be longer than
// limit. Text and base have at most MaxSize bytes.
func Append(dst, text, base []byte, x *Index, limit int) []byte {
	start := len(dst)
	e := encoder{text: text, base: base, index: x}
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	for len(dst)-start <= limit {
		m := e.next()
		dst = appendLiteral(dst, text[e.done:m.at])
		if m.op == opSame && m.at+m.n == len(text) { // implied
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
	}
	if len(dst)-start > limit {
		return dst[:start]
	}
	return dst
}

// next returns the next match. The last one, which may be empty, is opSame up to the end.
func (e *encoder) next() match {
	text, base := e.text, e.base
	for s := e.done; s+8 <= len(text); s += 1 + (s-e.done)>>skipBits {
		word := load64(text, s)
		if c := s + e.shift; c >= 0 && c <= len(base)-8 && load32(base, c) == uint32(word) {
			return e.extend(opSame, s, c, base)
		}
		if c := e.index.find(word); c <= len(base)-8 && load32(base, c) == uint32(word) {
			if m := e.extend(opMove, s, c, base); m.n >= minMove {
				return m
			}
		}
		h := hash(word, 64-seenBits)
		c := s - int(uint16(s)-e.seen[h]) // the last such position, at most 64 KiB back
		e.seen[h] = uint16(s)
		if c < s && load32(text, c) == uint32(word) {
			return e.extend(opAgain, s, c, text)
		}
	}
	n := 0
	for at := len(text) - 1; at >= e.done && at+e.shift >= 0 && at+e.shift < len(base) && text[at] == base[at+e.shift]; at-- {
		n++
	}
	return match{opSame, len(text) - n, len(text) - n + e.shift, n}
}

// extend extends a match of four bytes in both directions.
func (e *encoder) extend(op byte, s, c int, in []byte) match {
	n := 4 + common(e.text[s+4:], in[c+4:])
	for s > e.done && c > 0 && e.text[s-1] == in[c-1] {
		s, c, n = s-1, c-1, n+1
	}
	return match{op, s, c, n}
}

// common returns the length of the longest common prefix.
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

// hash hashes the first six bytes of a word to 64-shift bits.
func hash(word uint64, shift uint8) uint64 { return word << 16 * 0x9E3779B185EBCA87 >> (shift & 63) }

func load64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }
func load32(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[i:]) }

// appendOp appends the head of an operation on n bytes.
func appendOp(dst []byte, op byte, n int) []byte {
	switch n--; {
	case n < 30:
		return append(dst, op<<5|byte(n))
	case n < 30+256:
		return append(dst, op<<5|30, byte(n-30))
	}
	return binary.AppendUvarint(append(dst, op<<5|31), uint64(n-30-256))
}

// appendLiteral appends bytes as literals. Container and image ids make it worth looking for hexadecimal digits.
func appendLiteral(dst, lit []byte) []byte {
	for {
		i, n := hexRun(lit)
		if i > 0 {
			dst = append(appendOp(dst, opLiteral, i), lit[:i]...)
		}
		if n == 0 {
			return dst
		}
		dst = appendOp(dst, opHex, n/2)
		for j := i; j < i+n; j += 2 {
			dst = append(dst, nibble[lit[j]]<<4|nibble[lit[j+1]])
		}
		lit = lit[i+n:]
	}
}

// hexRun finds the first run of hexadecimal digits of even length; without one, start is the end.
func hexRun(b []byte) (start, n int) {
	for i := minHex - 1; i < len(b); i += minHex { // every run covers one of these
		if nibble[b[i]] == noNibble {
			continue
		}
		from, to := i, i+1
		for from > 0 && nibble[b[from-1]] != noNibble {
			from--
		}
		for to < len(b) && nibble[b[to]] != noNibble {
			to++
		}
		if n := (to - from) &^ 1; n >= minHex {
			return from, n
		}
	}
	return len(b), 0
}

const (
	noNibble  = 0xff
	hexDigits = "0123456789abcdef"
)

// nibble holds the values of the lower-case hexadecimal digits.
var nibble = func() (t [256]byte) {
	for i := range t {
		t[i] = noNibble
	}
	for i := range len(hexDigits) {
		t[hexDigits[i]] = byte(i)
	}
	return t
}()
