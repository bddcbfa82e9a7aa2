package delta

import (
	"encoding/binary"
	"fmt"
)

// Apply appends to dst the text of which diff is the difference from base. Bytes that are no such
// difference are ErrBroken, with dst as it was; those of another difference or another base may yield
// another text: only a checksum tells.
func Apply(dst, diff, base []byte) ([]byte, error) {
	d := decoder{diff: diff, base: base}
	longer := d.varint()
	size := int64(len(base)) + longer
	if d.broken || longer > MaxSize || size < 0 || size > MaxSize {
		return dst, fmt.Errorf("%w: no length", ErrBroken)
	}
	start := len(dst)
	d.out = dst
	if cap(dst)-start < int(size) { // size is bounded by MaxSize, but need not be true
		d.out = append(make([]byte, 0, start+min(int(size), len(base)+len(diff)+64)), dst...)
	}
	d.start, d.size = start, int(size)
	for len(d.diff) > 0 && !d.broken {
		d.step()
	}
	d.copy(d.left())
	if d.broken {
		return dst, fmt.Errorf("%w at byte %d of its text", ErrBroken, len(d.out)-start)
	}
	return d.out, nil
}

// decoder reads one difference. What cannot be read sets broken and is nothing.
type decoder struct {
	diff, base, out []byte
	start, size     int // of the text in out
	shift           int
	broken          bool
}

// left is how much of the text lacks.
func (d *decoder) left() int { return d.size - (len(d.out) - d.start) }

func (d *decoder) step() {
	op, n := d.diff[0]>>6, int(d.diff[0]&longLen)+1
	d.diff = d.diff[1:]
	if n > longLen {
		n += d.length()
	}
	switch op {
	case opLiteral:
		if n > len(d.diff) || n > d.left() {
			d.broken = true
			return
		}
		d.out = append(d.out, d.diff[:n]...)
		d.diff = d.diff[n:]
	case opSame:
		d.copy(n)
	case opMove:
		by := d.varint()
		if by > MaxSize || by < -MaxSize {
			d.broken = true
			return
		}
		d.shift += int(by)
		d.copy(n)
	default:
		d.broken = true
	}
}

// copy appends n bytes of the base.
func (d *decoder) copy(n int) {
	from := len(d.out) - d.start + d.shift
	if d.broken || n == 0 {
		return
	}
	if n < 0 || n > d.left() || from < 0 || n > len(d.base)-from {
		d.broken = true
		return
	}
	d.out = append(d.out, d.base[from:from+n]...)
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.diff)
	if n <= 0 {
		d.broken = true
		return 0
	}
	d.diff = d.diff[n:]
	return v
}

func (d *decoder) length() int {
	v, n := binary.Uvarint(d.diff)
	if n <= 0 || v > MaxSize {
		d.broken = true
		return 0
	}
	d.diff = d.diff[n:]
	return int(v)
}
