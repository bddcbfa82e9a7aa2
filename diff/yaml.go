package diff

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// YAML returns the lines of a value in YAML as kubectl prints it: fields by name, lists not indented.
// It is made to be read: redacted values are shortened as in Scalar; else the text is valid YAML that
// holds no control characters but tabs.
func YAML(v any) []string { return yamlBlock(v, shownDigits) }

func yamlBlock(v any, digits int) []string {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return []string{"{}"}
		}
		var out []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, yamlField(yamlString(k), v[k], digits)...)
		}
		return out
	case []any:
		if len(v) == 0 {
			return []string{"[]"}
		}
		var out []string
		for _, e := range v {
			mark := "- "
			for _, l := range yamlBlock(e, digits) {
				if l != "" {
					l = mark + l
				}
				out = append(out, l)
				mark = "  "
			}
		}
		return out
	case string:
		if tag, ok := Hidden(v); ok {
			return []string{HiddenPrefix + tag[:digits]}
		}
		if lines, mark, ok := literal(v); ok {
			return append([]string{mark}, indent(lines)...)
		}
		return []string{yamlString(v)}
	}
	return []string{scalarText(v)}
}

// yamlField returns a field whose value is on the same line, or below it.
func yamlField(key string, v any, digits int) []string {
	lines := yamlBlock(v, digits)
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 {
			return append([]string{key + ":"}, indent(lines)...)
		}
	case []any:
		if len(v) > 0 {
			return append([]string{key + ":"}, lines...)
		}
	}
	lines[0] = key + ": " + lines[0]
	return lines
}

func indent(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		if l != "" {
			out[i] = "  " + l
		}
	}
	return out
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
	// yamlPlain are strings that mean themselves without quotes: a conservative part of YAML's rule.
	yamlPlain = regexp.MustCompile(`^[A-Za-z0-9_./$+-]([^:#]|:[^ ]|[^ ]#)*$`)
	// yamlOther are those that YAML 1.1 or 1.2 may read as another type: numbers in their several
	// notations, dates, booleans, null.
	yamlOther = regexp.MustCompile(`(?i)^([-+.]*[0-9][-+.,:_0-9a-fxot ze]*|y|n|yes|no|on|off|true|false|null|[-+]?\.(inf|nan))$`)
	// version is not a number in spite of its digits.
	version = regexp.MustCompile(`^[0-9]+(\.[0-9]+){2,}$`)
)

func yamlString(s string) string {
	plain := printable(s) && s == strings.TrimSpace(s) && !strings.HasSuffix(s, ":") && s != "-" && s != "---" &&
		!strings.HasPrefix(s, "- ") && yamlPlain.MatchString(s)
	if plain && (!yamlOther.MatchString(s) || version.MatchString(s)) {
		return s
	}
	return strconv.Quote(s)
}
