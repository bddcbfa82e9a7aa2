package diff

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// HiddenPrefix is the start of the string that replaces a redacted value; 16 hexadecimal digits follow, which are equal for
// equal values of one field.
const HiddenPrefix = "hidden #"

const (
	hiddenDigits = 16
	shownDigits  = 4
)

// Hidden returns the digits of a redacted value, and whether v is one.
func Hidden(v any) (tag string, ok bool) {
	s, _ := v.(string)
	tag, ok = strings.CutPrefix(s, HiddenPrefix)
	if !ok || len(tag) != hiddenDigits || strings.Trim(tag, "0123456789abcdef") != "" {
		return "", false
	}
	return tag, true
}

// shortTags cuts two tags to the same length, at which they differ if they did before.
func shortTags(a, b string) (string, string) {
	n := shownDigits
	for n < hiddenDigits && a != b && a[:n] == b[:n] {
		n++
	}
	return a[:n], b[:n]
}

// Scalar formats a scalar on one line. A string is quoted if it would read as another type, is empty or padded, or contains
// characters that do not print (which a terminal might act on). Redacted values are shortened to four digits.
func Scalar(v any) string {
	s, ok := v.(string)
	if !ok {
		return scalarText(v)
	}
	if tag, ok := Hidden(v); ok {
		return HiddenPrefix + tag[:shownDigits]
	}
	if _, ok := bareScalar(s).(string); !ok || s == "" || s != strings.TrimSpace(s) || s == "{}" ||
		strings.ContainsAny(s[:1], `["`) || strings.Contains(s, "→") || !printable(s) {
		return strconv.Quote(s)
	}
	return s
}

// scalarText formats null, booleans and numbers as JSON, integral numbers without a fraction. Values of other types are
// formatted as Go does.
func scalarText(v any) string {
	switch v := plainNumber(v).(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return strconv.Quote(fmt.Sprint(v))
	}
}

func printable(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return utf8.ValidString(s)
}

// escape makes a line safe for a terminal: characters that do not print, except tabs, are escaped as in Go strings. Printable
// text is unchanged, backslashes included.
func escape(line string) string {
	if printable(strings.ReplaceAll(line, "\t", "")) {
		return line
	}
	var b strings.Builder
	for len(line) > 0 {
		r, n := utf8.DecodeRuneInString(line)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, line[0])
		case r == '\t' || unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		}
		line = line[n:]
	}
	return b.String()
}
