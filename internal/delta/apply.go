package delta

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// trusted is the claimed length up to which Apply allocates a text at once.
const trusted = 64 << 10

// Len returns the length that a delta claims for its text; -1 if it claims none.
func Len(delta []byte) int {
	n, k := binary.Uvarint(delta)
	if k <= 0 || n > 1<<31-1 {
		return -1
	}
	return int(n)
}

// Apply appends to dst the text that a delta encodes. The error is ErrBroken, with dst unchanged, if the bytes are not a
// delta from base, or claim a text of more than limit bytes. A delta from another base may yield a wrong text without an
// error.
func Apply(dst, delta, base []byte, limit int) ([]byte, error) {
	size, k := binary.Uvarint(delta)
	if k <= 0 || size > uint64(limit) {
		return dst, ErrBroken
	}
	d := decoder{delta: delta[k:], base: base, out: dst, start: len(dst), left: int(size)}
	// A text is rarely longer than what it is made of: a broken delta must not claim memory.
	d.out = slices.Grow(dst, min(int(size), max(trusted, len(base)+len(delta))))
	for len(d.delta) > 0 {
		if !d.step() {
			return dst, ErrBroken
		}
	}
	if !d.copy(d.left) {
		return dst, ErrBroken
	}
	return d.out, nil
}

// decoder decodes one delta.
type decoder struct {
	delta, base, out []byte
	start            int // of the text in out
	left             int // bytes of the text still to come
	shift            int
}

// step runs the next operation; false if it is invalid.
func (d *decoder) step() bool {
	op, n, k := readOp(d.delta)
	if k == 0 || n > d.left {
		return false
	}
	d.delta = d.delta[k:]
	switch op {
	case opLiteral:
		if n > len(d.delta) {
			return false
		}
		d.out = append(d.out, d.delta[:n]...)
		d.delta = d.delta[n:]
	case opHex:
		if n > len(d.delta) || 2*n > d.left {
			return false
		}
		d.out = hex.AppendEncode(d.out, d.delta[:n])
		d.delta = d.delta[n:]
		n *= 2
	case opMove:
		by, k := binary.Varint(d.delta)
		if k <= 0 || by < -2*MaxSize || by > 2*MaxSize {
			return false
		}
		d.delta, d.shift = d.delta[k:], d.shift+int(by)
		return d.copy(n)
	case opSame:
		return d.copy(n)
	case opAgain:
		back, k := binary.Uvarint(d.delta)
		if k <= 0 || back == 0 || back > uint64(len(d.out)-d.start) {
			return false
		}
		d.delta = d.delta[k:]
		d.repeat(int(back), n)
	default:
		return false
	}
	d.left -= n
	return true
}

// copy appends n bytes of the base.
func (d *decoder) copy(n int) bool {
	from := len(d.out) - d.start + d.shift
	if n > 0 && (from < 0 || n > len(d.base)-from) {
		return false
	}
	if n > 0 {
		d.out = append(d.out, d.base[from:from+n]...)
		d.left -= n
	}
	return true
}

// repeat appends n bytes of the text from so far back; they overlap if n is greater.
func (d *decoder) repeat(back, n int) {
	from := len(d.out) - back
	for n > back {
		d.out = append(d.out, d.out[from:from+back]...)
		n -= back
	}
	d.out = append(d.out, d.out[from:from+n]...)
}

// readOp reads the head of an operation, of k bytes; k is 0 if it is invalid.
func readOp(p []byte) (op byte, n, k int) {
	op, n = p[0]>>5, int(p[0]&31)+1
	switch {
	case n <= 30:
		return op, n, 1
	case n == 31 && len(p) > 1:
		return op, n + int(p[1]), 2
	case n == 32:
		if v, k := binary.Uvarint(p[1:]); k > 0 && v <= MaxSize {
			return op, int(v) + 31 + 256, 1 + k
		}
	}
	return 0, 0, 0
}
