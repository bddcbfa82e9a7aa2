package jsonscan

import (
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote appends the value of a string's text, which String must have found valid, to dst. Like encoding/json, it
// replaces invalid UTF-8 and unpaired surrogates by U+FFFD.
func Unquote(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '\\' && text[i+1] != 'u':
			dst = append(dst, letters[text[i+1]])
			i += 2
		case c == '\\':
			r := hex(text[i+2:])
			i += 6
			if utf16.IsSurrogate(r) {
				pair := rune(unicode.ReplacementChar)
				if len(text)-i >= 6 && text[i] == '\\' && text[i+1] == 'u' {
					pair = utf16.DecodeRune(r, hex(text[i+2:]))
				}
				if r = pair; r != unicode.ReplacementChar {
					i += 6
				}
			}
			dst = utf8.AppendRune(dst, r)
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			r, n := utf8.DecodeRune(text[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
		}
	}
	return dst
}

// hex reads four hexadecimal digits.
func hex(b []byte) (r rune) {
	for _, c := range b[:4] {
		if IsDigit(c) {
			r = r<<4 | rune(c-'0')
		} else {
			r = r<<4 | rune(c|0x20-'a'+10)
		}
	}
	return r
}
