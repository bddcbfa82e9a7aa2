package diff

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// YAML returns the lines of a value in YAML as kubectl prints it: fields by name, lists not indented. It is for people:
// redacted values are shortened as in Scalar; otherwise the text is valid YAML without control characters except tabs. Values
// more than 64 levels deep are on one line, so that the text is never far larger than the value.
func YAML(v any) []string { return yamlLines(v, shownDigits) }

// WholeYAML is YAML with redacted values whole, for programs to read.
func WholeYAML(v any) []string { return yamlLines(v, hiddenDigits) }

// maxBlocks bounds the levels of blocks.
const maxBlocks = 64

func yamlLines(v any, digits int) []string {
	w := yamlWriter{digits: digits}
	w.block("", "", v, maxBlocks)
	return w.lines
}

type yamlWriter struct {
	digits int // of redacted values
	lines  []string
}

// block writes a value. The first line starts with first, the others with rest.
func (w *yamlWriter) block(first, rest string, v any, blocks int) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 || blocks == 0 {
			break
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			w.field(first+yamlString(k)+":", rest, v[k], blocks-1)
			first = rest
		}
		return
	case []any:
		if len(v) == 0 || blocks == 0 {
			break
		}
		for _, e := range v {
			w.block(first+"- ", rest+"  ", e, blocks-1)
			first = rest
		}
		return
	case string:
		lines, mark, ok := literal(v)
		if _, hidden := Hidden(v); !ok || hidden {
			break
		}
		w.lines = append(w.lines, first+mark)
		for _, l := range lines {
			if l != "" {
				l = rest + "  " + l
			}
			w.lines = append(w.lines, l)
		}
		return
	}
	w.lines = append(w.lines, first+yamlFlow(v, w.digits))
}

// field writes the value of a field on the line of its key, or below it.
func (w *yamlWriter) field(key, rest string, v any, blocks int) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 && blocks > 0 {
			w.lines = append(w.lines, key)
			w.block(rest+"  ", rest+"  ", v, blocks)
			return
		}
	case []any:
		if len(v) > 0 && blocks > 0 {
			w.lines = append(w.lines, key)
			w.block(rest, rest, v, blocks)
			return
		}
	}
	w.block(key+" ", rest, v, blocks)
}

// yamlFlow returns a value on one line, as JSON except for redacted values.
func yamlFlow(v any, digits int) string {
	if s, ok := v.(string); ok {
		if tag, ok := Hidden(v); ok {
			return HiddenPrefix + tag[:digits]
		}
		return yamlString(s)
	}
	var b strings.Builder
	writeFlow(&b, v, digits)
	return b.String()
}

func writeFlow(b *strings.Builder, v any, digits int) {
	switch v := v.(type) {
	case map[string]any:
		mark := "{"
		for _, k := range slices.Sorted(maps.Keys(v)) {
			b.WriteString(mark + strconv.Quote(k) + ": ")
			writeFlow(b, v[k], digits)
			mark = ", "
		}
		b.WriteString(strings.TrimSuffix(mark, ", ") + "}")
	case []any:
		mark := "["
		for _, e := range v {
			b.WriteString(mark)
			writeFlow(b, e, digits)
			mark = ", "
		}
		b.WriteString(strings.TrimSuffix(mark, ", ") + "]")
	case string:
		if tag, ok := Hidden(v); ok {
			v = HiddenPrefix + tag[:digits]
		}
		b.WriteString(strconv.Quote(v))
	default:
		b.WriteString(scalarText(v))
	}
}

// literal returns the lines of a string that can be a literal block (|), and the block's header.
func literal(s string) (lines []string, mark string, ok bool) {
	body, end := strings.CutSuffix(s, "\n")
	if !strings.Contains(s, "\n") || body == "" || strings.ContainsAny(body[:1], " \t\n") || strings.HasSuffix(body, "\n") {
		return nil, "", false
	}
	lines = strings.Split(body, "\n")
	for _, l := range lines {
		if escape(l) != l || l != "" && strings.TrimSpace(l) == "" {
			return nil, "", false
		}
	}
	if end {
		return lines, "|", true
	}
	return lines, "|-", true
}

var (
	// yamlPlain matches the beginnings of strings that need no quotes, unless yamlMark matches something in them, which would
	// begin a comment or end a key: a conservative part of YAML's rule.
	yamlPlain = regexp.MustCompile(`^[A-Za-z0-9_./$+-]`)
	yamlMark  = regexp.MustCompile(`\s#|:(\s|$)`)
	// yamlOther matches strings that YAML 1.1 or 1.2 may read as another type: numbers in several notations, dates, booleans,
	// null.
	yamlOther = regexp.MustCompile(`(?i)^([-+.]*[0-9][-+.,:_0-9a-fxot ze]*|y|n|yes|no|on|off|true|false|null|[-+]?\.(inf|nan))$`)
	// version matches versions, which are not numbers despite their digits.
	version = regexp.MustCompile(`^[0-9]+(\.[0-9]+){2,}$`)
)

// isWord reports whether a string is plain at a glance, as most are: it begins with a letter, has nothing but letters,
// digits and _./-, and is longer than the words that YAML reads as another type.
func isWord(s string) bool {
	if len(s) <= len("false") {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case i > 0 && ('0' <= c && c <= '9' || c == '_' || c == '.' || c == '/' || c == '-'):
		default:
			return false
		}
	}
	return true
}

func yamlString(s string) string {
	if isWord(s) {
		return s
	}
	plain := printable(s) && s == strings.TrimSpace(s) && s != "-" && !strings.HasPrefix(s, "- ") && !strings.HasPrefix(s, "---") && !strings.HasPrefix(s, "...") &&
		yamlPlain.MatchString(s) && !yamlMark.MatchString(s)
	if plain && (!yamlOther.MatchString(s) || version.MatchString(s)) {
		return s
	}
	return strconv.Quote(s)
}
