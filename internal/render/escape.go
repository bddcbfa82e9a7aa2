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

// WriteJSON writes a value for people and programs: indented, and without characters that command a terminal.
func WriteJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escapeJSON(b.Bytes()))
	return err
}

// escapeJSON writes what commands a terminal in the strings of a JSON document as escapes. The values stay what
// they are.
func escapeJSON(doc []byte) []byte {
	return escapeBy(doc, func(r rune) string {
		if r <= 0xffff {
			return fmt.Sprintf(`\u%04x`, r)
		}
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	})
}

// escapeYAML makes YAML of a JSON document, which is YAML as it is but for pairs of surrogates.
func escapeYAML(doc []byte) []byte {
	return escapeBy(doc, func(r rune) string { return fmt.Sprintf(`\U%08x`, r) })
}

// escapeBy replaces what commands a terminal. Outside of its strings a JSON document is ASCII.
func escapeBy(doc []byte, by func(rune) string) []byte {
	if !commands(doc) {
		return doc
	}
	out := make([]byte, 0, len(doc)+64)
	for len(doc) > 0 {
		r, n := utf8.DecodeRune(doc)
		if isCommand(r, n) {
			out = append(out, by(r)...) // of a byte that is no text: the replacement character
		} else {
			out = append(out, doc[:n]...)
		}
		doc = doc[n:]
	}
	return out
}

// commands reports whether a document holds what commands a terminal.
func commands(doc []byte) bool {
	for len(doc) > 0 {
		r, n := utf8.DecodeRune(doc)
		if isCommand(r, n) {
			return true
		}
		doc = doc[n:]
	}
	return false
}

// isCommand reports whether a rune of so many bytes commands a terminal or changes how it shows what is around:
// DEL and the C1 controls, and format characters, such as the marks, overrides and isolates of bidirectional text.
// The other controls of ASCII are escapes in a JSON string already; a line end is one between strings.
func isCommand(r rune, size int) bool {
	switch {
	case r < 0x7f:
		return false
	case r == utf8.RuneError && size == 1:
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
