package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// WriteJSON writes a value as indented JSON, without characters that control a terminal. Values more than 64 levels deep are
// on one line, so that the text is never far larger than the value.
func WriteJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escapeJSON(indented(b.Bytes())))
	return err
}

// maxIndent is the level below which JSON is not indented.
const maxIndent = 64

// indented indents compact JSON as json.Indent does, down to maxIndent.
func indented(doc []byte) []byte {
	out := make([]byte, 0, 2*len(doc))
	depth, quoted := 0, false
	line := func() {
		if depth <= maxIndent {
			out = append(out, '\n')
			for range depth {
				out = append(out, "  "...)
			}
		}
	}
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case quoted:
			if out = append(out, c); c == '\\' {
				i++
				out = append(out, doc[i])
			}
			quoted = c != '"'
		case (c == '{' || c == '[') && (doc[i+1] == '}' || doc[i+1] == ']'):
			out = append(out, c, doc[i+1])
			i++
		case c == '{', c == '[':
			out = append(out, c)
			depth++
			line()
		case c == '}', c == ']':
			inside := depth <= maxIndent
			if depth--; inside {
				line()
			}
			out = append(out, c)
		case c == ',':
			out = append(out, c)
			line()
		case c == ':':
			out = append(out, ": "...)
		default:
			quoted = c == '"'
			out = append(out, c)
		}
	}
	return out
}

// escapeJSON escapes the characters in a JSON document's strings that control a terminal. The values stay the same.
func escapeJSON(doc []byte) []byte {
	return escapeBy(doc, func(r rune) string {
		if r <= 0xffff {
			return fmt.Sprintf(`\u%04x`, r)
		}
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	})
}

// escapeYAML makes YAML of a JSON document. JSON is YAML except for surrogate pairs.
func escapeYAML(doc []byte) []byte {
	return escapeBy(doc, func(r rune) string { return fmt.Sprintf(`\U%08x`, r) })
}

// escapeBy replaces characters that control a terminal. Outside of its strings, a JSON document is ASCII.
func escapeBy(doc []byte, by func(rune) string) []byte {
	if !hasControls(doc) {
		return doc
	}
	out := make([]byte, 0, len(doc)+64)
	for len(doc) > 0 {
		r, n := utf8.DecodeRune(doc)
		if isControl(r, n) {
			out = append(out, by(r)...) // invalid UTF-8 becomes the replacement character
		} else {
			out = append(out, doc[:n]...)
		}
		doc = doc[n:]
	}
	return out
}

// hasControls reports whether a document has characters that control a terminal.
func hasControls(doc []byte) bool {
	for len(doc) > 0 {
		r, n := utf8.DecodeRune(doc)
		if isControl(r, n) {
			return true
		}
		doc = doc[n:]
	}
	return false
}

// isControl reports whether a rune of the given size in bytes controls a terminal or changes how it shows the text around:
// DEL, the C1 controls, and format characters such as the marks, overrides and isolates of bidirectional text. JSON
// already escapes the other ASCII controls in strings; between strings they are line ends.
func isControl(r rune, size int) bool {
	switch {
	case r < 0x7f:
		return false
	case r == utf8.RuneError && size == 1:
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
