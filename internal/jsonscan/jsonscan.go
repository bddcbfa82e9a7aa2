// Package jsonscan reads JSON text in memory, strictly by RFC 8259, without decoding it.
//
// Its functions take the text and a position in it, and keep no state. They accept the same texts as encoding/json;
// like it, they leave invalid UTF-8 in strings to the decoding, which replaces it by U+FFFD.
//
// It serves the readers that need not, or must not, decode a whole object: internal/jsonmap,
// internal/capture/redact, and, for the text of strings, informer/internal/wire, which reads from a stream.
package jsonscan

import (
	"encoding/binary"
	"math/bits"
)

// MaxDepth bounds the nesting of a value, as in encoding/json.
const MaxDepth = 10_000

// Space returns the position of the first byte from b[i] on that is not white space.
func Space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// Form is the form of a string's text.
type Form uint8

// The forms of a string's text.
const (
	Invalid Form = iota // without an end, or with a control character or an unknown escape
	ASCII               // ASCII without escapes
	Plain               // without escapes; it may be invalid UTF-8
	Escaped             // with escapes, which are valid; it may be invalid UTF-8
)

// String scans a string. Its text begins at b[i], after the quote, and ends at b[end], the closing quote.
func String(b []byte, i int) (end int, form Form) {
	var seen uint64               // all bits of the text
	for ; i+8 <= len(b); i += 8 { // eight bytes at once, as in Run
		x := binary.LittleEndian.Uint64(b[i:])
		m := special(x)
		if m == 0 {
			seen |= x
			continue
		}
		n := bits.TrailingZeros64(m) &^ 7
		seen |= x & (1<<n - 1)
		if i += n / 8; b[i] != '"' {
			break
		}
		if seen&tops != 0 {
			return i, Plain
		}
		return i, ASCII
	}
	form = ASCII
	if seen&tops != 0 {
		form = Plain
	}
	return rest(b, i, form)
}

// rest is String from b[i] on, for a text that has the form up to there.
func rest(b []byte, i int, form Form) (end int, _ Form) {
	for {
		from := i
		i = Run(b, i)
		if form == ASCII && !isASCII(b[from:i]) {
			form = Plain
		}
		switch {
		case i == len(b) || b[i] < ' ':
			return i, Invalid
		case b[i] == '"':
			return i, form
		}
		form = Escaped
		if i = escape(b, i+1); i < 0 {
			return len(b), Invalid
		}
	}
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

const ones, tops = 0x0101010101010101, 0x8080808080808080 // the lowest and the highest bits of eight bytes

// special marks quotes, backslashes and control characters among eight bytes by their highest bits. Marks after the
// first one may be wrong.
func special(x uint64) uint64 {
	quote, slash := x^'"'*ones, x^'\\'*ones
	return ((x-' '*ones)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & tops
}

// Run returns the end of the bytes of a string from b[i] on that are neither quotes, backslashes nor control
// characters.
func Run(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// escape returns the position after an escape whose backslash is before b[i]; -1 if it is invalid.
func escape(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	if b[i] != 'u' {
		if letters[b[i]] == 0 {
			return -1
		}
		return i + 1
	}
	if len(b)-i < 5 {
		return -1
	}
	for _, c := range b[i+1 : i+5] {
		if !IsHex(c) {
			return -1
		}
	}
	return i + 5
}

// letters are the escapes of one letter, and their values.
var letters = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// IsDigit reports whether c is a decimal digit.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// IsHex reports whether c is a hexadecimal digit.
func IsHex(c byte) bool { return IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// Literal reports whether b has a word, such as true, at b[i]. What follows is not checked.
func Literal(b []byte, i int, word string) bool {
	return len(b)-i >= len(word) && string(b[i:i+len(word)]) == word
}

// Number returns the end of the number at b[i]; -1 if it is not one. What follows is not checked.
func Number(b []byte, i int) (end int) {
	if i < len(b) && b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if i = digits(b, i); i < 0 {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		if i = digits(b, i+1); i < 0 {
			return -1
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return digits(b, i)
	}
	return i
}

// digits returns the end of one digit or more at b[i]; -1 if there is none.
func digits(b []byte, i int) int {
	from := i
	for i < len(b) && IsDigit(b[i]) {
		i++
	}
	if i == from {
		return -1
	}
	return i
}

// Value returns the end of the value at b[i]; -1 if it is invalid, or nested in more than depth arrays and objects.
func Value(b []byte, i, depth int) (end int) {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		end, form := String(b, i+1)
		if form == Invalid {
			return -1
		}
		return end + 1
	case '{', '[':
		if depth == 0 {
			return -1
		}
		return container(b, i, depth-1)
	case 't':
		return literal(b, i, "true")
	case 'f':
		return literal(b, i, "false")
	case 'n':
		return literal(b, i, "null")
	}
	return Number(b, i)
}

func literal(b []byte, i int, word string) int {
	if !Literal(b, i, word) {
		return -1
	}
	return i + len(word)
}

// container returns the end of the object or array at b[i].
func container(b []byte, i, depth int) (end int) {
	object, closing := b[i] == '{', b[i]+2 // in ASCII, ] and } come two after [ and {
	i = Space(b, i+1)
	if i < len(b) && b[i] == closing {
		return i + 1
	}
	for {
		if object {
			if i = name(b, i); i < 0 {
				return -1
			}
		}
		if i = Value(b, i, depth); i < 0 {
			return -1
		}
		if i = Space(b, i); i == len(b) {
			return -1
		}
		if b[i] == closing {
			return i + 1
		}
		if b[i] != ',' {
			return -1
		}
		i = Space(b, i+1)
	}
}

// name returns the position of the value after the field's name at b[i].
func name(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	end, form := String(b, i+1)
	if form == Invalid {
		return -1
	}
	if i = Space(b, end+1); i == len(b) || b[i] != ':' {
		return -1
	}
	return Space(b, i+1)
}
