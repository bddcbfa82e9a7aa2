package decode

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"
)

// quoted decodes a string, at its quote. The bytes are valid until the next call.
func (d *jsonDecoder) quoted() (b []byte, ok bool) {
	d.pos++
	rest := d.raw[d.pos:]
	for n, ascii := 0, true; ; {
		if n += plain(rest[n:]); n == len(rest) {
			return nil, false
		}
		switch c := rest[n]; {
		case c == '"':
			d.pos += n + 1
			return rest[:n:n], ascii || utf8.Valid(rest[:n])
		case c == '\\':
			return d.escaped(n)
		case c < ' ':
			return nil, false
		default:
			ascii = false
			n++
		}
	}
}

// plain returns the number of bytes before a quote, a backslash, a control character or a non-ASCII byte.
func plain(b []byte) (n int) {
	const each = 0x0101010101010101
	for ; len(b)-n >= 8; n += 8 { // eight at a time: the high bit of the lowest byte that is found gets set
		w := binary.LittleEndian.Uint64(b[n:])
		quote, slash := w^each*'"', w^each*'\\'
		if found := ((quote-each)&^quote | (slash-each)&^slash | (w-each*' ')&^w | w) & (each * 0x80); found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	for ; n < len(b); n++ {
		if c := b[n]; c == '"' || c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			break
		}
	}
	return n
}

// simple has the one-letter escapes.
var simple = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escaped decodes a string whose first escape is n bytes from here.
func (d *jsonDecoder) escaped(n int) (b []byte, ok bool) {
	b = append(d.scratch[:0], d.raw[d.pos:d.pos+n]...)
	rest := d.raw[d.pos+n:]
	for len(rest) > 0 {
		n := plain(rest)
		b = append(b, rest[:n]...)
		if rest = rest[n:]; len(rest) == 0 {
			break
		}
		switch c := rest[0]; {
		case c == '"':
			d.pos = len(d.raw) - len(rest) + 1
			d.scratch = b
			return b, utf8.Valid(b)
		case c >= utf8.RuneSelf:
			b, rest = append(b, c), rest[1:]
		case c != '\\' || len(rest) < 2:
			return nil, false
		case simple[rest[1]] != 0:
			b, rest = append(b, simple[rest[1]]), rest[2:]
		case rest[1] == 'u' && len(rest) >= 6:
			r, ok := hex(rest[2:6])
			if !ok || r >= 0xd800 && r < 0xe000 { // half of a surrogate pair
				return nil, false
			}
			b, rest = utf8.AppendRune(b, r), rest[6:]
		default:
			return nil, false
		}
	}
	return nil, false
}

// hex reads hexadecimal digits.
func hex(digits []byte) (r rune, ok bool) {
	for _, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// number decodes a number: most are short integers.
func (d *jsonDecoder) number() (any, bool) {
	from, n := d.pos, int64(0)
	if d.pos < len(d.raw) && d.raw[d.pos] == '-' {
		d.pos++
	}
	first := d.pos
	for ; d.pos < len(d.raw) && isDigit(d.raw[d.pos]); d.pos++ {
		n = n*10 + int64(d.raw[d.pos]-'0')
	}
	digits := d.pos - first
	if digits == 0 || digits > 1 && d.raw[first] == '0' {
		return nil, false
	}
	d.size += 8
	if digits > 18 || d.pos < len(d.raw) && strings.IndexByte(".eE", d.raw[d.pos]) >= 0 {
		return d.longNumber(from)
	}
	if first > from {
		n = -n
	}
	return n, true
}

// longNumber decodes a number that began earlier and whose integer part has been read.
func (d *jsonDecoder) longNumber(from int) (any, bool) {
	fraction := d.pos < len(d.raw) && d.raw[d.pos] == '.'
	if fraction {
		d.pos++
		if !d.digits() {
			return nil, false
		}
	}
	if d.pos < len(d.raw) && d.raw[d.pos]|0x20 == 'e' {
		d.pos++
		if d.pos < len(d.raw) && (d.raw[d.pos] == '+' || d.raw[d.pos] == '-') {
			d.pos++
		}
		if !d.digits() {
			return nil, false
		}
	}
	text := string(d.raw[from:d.pos])
	if !fraction {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, true
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
}

// digits skips digits, and reports whether there were any.
func (d *jsonDecoder) digits() bool {
	from := d.pos
	for d.pos < len(d.raw) && isDigit(d.raw[d.pos]) {
		d.pos++
	}
	return d.pos > from
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// key decodes a key. The same few keys are in all objects, so one string serves all of them, with a table or without.
func (d *jsonDecoder) key() (string, bool) {
	b, ok := d.quoted()
	if !ok {
		return "", false
	}
	if len(b) > longText {
		return string(b), true
	}
	slot := &d.keys[maphash.Bytes(keySeed, b)%uint64(len(d.keys))]
	if *slot != string(b) {
		*slot = d.newKey(b)
	}
	return *slot, true
}

// newKey returns the string of a key that is not cached.
func (d *jsonDecoder) newKey(b []byte) string {
	if d.t != nil {
		if c := d.t.cached(b, true); c != nil {
			return c.text
		}
	}
	return string(b)
}

// keyCache holds the last keys of a decoder, each in a slot by its hash. It is smaller than a table's cache, so it
// stays in the processor's cache, and it outlives the object that filled it.
type keyCache [256]string

var keySeed = maphash.MakeSeed()

// text decodes a string that is a value.
func (d *jsonDecoder) text() (any, bool) {
	b, ok := d.quoted()
	if !ok {
		return nil, false
	}
	if d.t != nil {
		if c := d.t.cached(b, true); c != nil && c.boxed != nil {
			return c.boxed, true
		}
	}
	d.size += 16 + int64(len(b))
	return string(b), true
}
