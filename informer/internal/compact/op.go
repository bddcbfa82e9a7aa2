package compact

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// appendOp appends the head of an operation on n bytes, from 1 to 65,536.
func appendOp(dst []byte, op byte, n int) []byte {
	switch n--; {
	case n < 30:
		return append(dst, op<<5|byte(n))
	case n < 30+256:
		return append(dst, op<<5|30, byte(n-30))
	}
	return append(dst, op<<5|31, byte(n), byte(n>>8))
}

// appendLiteral appends the operations that tell bytes as they are. Container and image ids make it
// worth to look for hexadecimal digits.
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

// hexRun finds the first run of hexadecimal digits, of even length. Without one, start is the end.
func hexRun(b []byte) (start, n int) {
	for i := minHex - 1; i < len(b); i += minHex { // a run has at least one of these
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

// nibble has the values of the hexadecimal digits, lower case.
var nibble = func() (t [256]byte) {
	for i := range t {
		t[i] = noNibble
	}
	for i := range len(hexDigits) {
		t[hexDigits[i]] = byte(i)
	}
	return t
}()

// undelta appends the object that a difference from dict tells. Whatever the bytes are, it neither
// panics nor takes more than maxSource bytes.
func undelta(dst, p, dict []byte) ([]byte, error) {
	size, k := binary.Uvarint(p)
	if k <= 0 || size > maxSource {
		return nil, errCorrupt
	}
	dst = slices.Grow(dst, int(size))
	out := dst[len(dst) : len(dst)+int(size)]
	at, shift := 0, 0
	for p = p[k:]; len(p) > 0; {
		op, n, k := readOp(p)
		p = p[k:]
		if k == 0 || n > len(out)-at {
			return nil, errCorrupt
		}
		switch op {
		case opLiteral:
			if n > len(p) {
				return nil, errCorrupt
			}
			copy(out[at:], p[:n])
			p = p[n:]
		case opHex:
			if n > len(p) || 2*n > len(out)-at {
				return nil, errCorrupt
			}
			hex.Encode(out[at:], p[:n])
			p = p[n:]
			n *= 2
		case opMove, opSame:
			if op == opMove {
				by, k := binary.Varint(p)
				if k <= 0 || by < -2*maxSource || by > 2*maxSource {
					return nil, errCorrupt
				}
				p, shift = p[k:], shift+int(by)
			}
			if from := at + shift; from < 0 || n > len(dict)-from {
				return nil, errCorrupt
			}
			copy(out[at:], dict[at+shift:at+shift+n])
		case opAgain:
			back, k := binary.Uvarint(p)
			if k <= 0 || back == 0 || back > uint64(at) {
				return nil, errCorrupt
			}
			p = p[k:]
			repeat(out, at, int(back), n)
		default:
			return nil, errCorrupt
		}
		at += n
	}
	if at != len(out) {
		return nil, errCorrupt
	}
	return dst[:len(dst)+len(out)], nil
}

// readOp reads the head of an operation, of k bytes; none where it is not whole.
func readOp(p []byte) (op byte, n, k int) {
	op, n = p[0]>>5, int(p[0]&31)+1
	switch {
	case n <= 30:
		return op, n, 1
	case n == 31 && len(p) > 1:
		return op, n + int(p[1]), 2
	case n == 32 && len(p) > 2:
		return op, 1 + (int(p[1]) | int(p[2])<<8), 3
	}
	return 0, 0, 0
}

// repeat appends n bytes, at a position of out, from so far back; they overlap where they repeat.
func repeat(out []byte, at, back, n int) {
	if n <= back {
		copy(out[at:at+n], out[at-back:])
		return
	}
	for i := at; i < at+n; i++ {
		out[i] = out[i-back]
	}
}
