package diff

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// LineKind tells what a line means, for colours.
type LineKind uint8

// The kinds of a line.
const (
	// PlainLine names a path, and its values where they fit: "path: from → to", "path: replaced".
	PlainLine LineKind = iota
	// AddLine is a path that appeared, or a line of a value that did.
	AddLine
	// RemoveLine is a path that went, or a line of a value that did.
	RemoveLine
	// ContextLine is a line of a value that stayed.
	ContextLine
	// NoteLine tells of lines that are not shown.
	NoteLine
)

// Line is one line of a report, without its end. It holds no control characters but tabs, and nothing
// that reorders text.
type Line struct {
	Kind LineKind
	Text string
}

// TextOptions tune Text. The zero value is usable.
type TextOptions struct {
	// Context is the number of unchanged lines around each changed one in a text of several lines.
	// 0 means 2: enough to recognise a place in a configuration file. A negative number means none.
	Context int
	// MaxLines bounds the lines below each path; what is left out is counted. 0 means 15: two
	// changes still fit a small terminal. A negative number means no bound.
	MaxLines int
}

// Text reports changes to a person: one line for each, and below it, indented, the lines of values
// that do not fit one.
//
//	spec.replicas: 3 → 5
//	metadata.labels.tier: + web
//	data["app.properties"]: line 2 of 3
//	    cache.size=64
//	  - http.timeout=30s
//	  + http.timeout=5s
//	    http.retries=3
//	data.password: changed (hidden, #4e1f → #9c20)
//
// Line numbers are those of the new text; where lines were only removed, of the old one; "after 9" is
// where lines are missing now. Values are quoted where they would read as another type. Long values
// are not cut.
func Text(changes []Change, o TextOptions) []Line {
	if o.Context == 0 {
		o.Context = 2
	}
	if o.MaxLines == 0 {
		o.MaxLines = 15
	}
	t := &texter{o: o}
	for _, c := range changes {
		path := c.Path.String()
		if path == "" {
			path = "(the object)"
		}
		switch c.Op {
		case Add:
			t.one(path, AddLine, c.To)
		case Remove:
			t.one(path, RemoveLine, c.From)
		default:
			t.whole = c.Whole
			t.replaced(path, c.From, c.To)
		}
	}
	return t.lines
}

type texter struct {
	o     TextOptions
	whole bool // the change stands for more than can be listed
	lines []Line
}

func (t *texter) head(kind LineKind, path, format string, args ...any) {
	t.lines = append(t.lines, Line{kind, path + ": " + fmt.Sprintf(format, args...)})
}

// hunked adds the lines of what changed.
func (t *texter) hunked(regions []region, a, b []string) {
	context := max(t.o.Context, 0)
	if t.o.MaxLines < 0 {
		lines, _ := hunks(regions, a, b, context, math.MaxInt)
		t.block(lines, 0)
		return
	}
	t.block(fitting(regions, a, b, context, t.o.MaxLines))
}

// block adds lines below a path, up to the bound, and says how many are left out, with those that were before.
func (t *texter) block(lines []Line, left int) {
	if t.o.MaxLines >= 0 && len(lines) > t.o.MaxLines {
		left += len(lines) - t.o.MaxLines
		lines = lines[:t.o.MaxLines]
	}
	t.lines = append(t.lines, lines...)
	if left > 0 {
		t.lines = append(t.lines, Line{NoteLine, "    … " + count(left, "more line")})
	}
}

// one reports a value that appeared or went.
func (t *texter) one(path string, kind LineKind, v any) {
	sign, verb := "+", "added"
	if kind == RemoveLine {
		sign, verb = "-", "removed"
	}
	if s, ok := inline(v); ok {
		t.head(kind, path, "%s %s", sign, s)
		return
	}
	var lines []string
	if s, ok := v.(string); ok {
		lines, _ = splitLines(s)
		verb += ", " + count(len(lines), "line")
	} else {
		lines = YAML(v)
	}
	t.head(kind, path, "%s", verb)
	body := make([]Line, len(lines))
	for i, l := range lines {
		body[i] = bodyLine(kind, l)
	}
	t.block(body, 0)
}

func (t *texter) replaced(path string, from, to any) {
	if a, ok := Hidden(from); ok {
		if b, ok := Hidden(to); ok {
			a, b = shortTags(a, b)
			t.head(PlainLine, path, "changed (hidden, #%s → #%s)", a, b)
			return
		}
	}
	a, okA := inline(from)
	b, okB := inline(to)
	if okA && okB {
		t.head(PlainLine, path, "%s → %s", a, b)
		return
	}
	f, isText := from.(string)
	s, ok := to.(string)
	switch {
	case isText && ok:
		t.texts(path, f, s)
	case isScalarList(from) && isScalarList(to):
		t.lists(path, from.([]any), to.([]any))
	default:
		t.structures(path, from, to)
	}
}

// texts compares two strings of which one at least has several lines.
func (t *texter) texts(path, from, to string) {
	a, endA := splitLines(from)
	b, endB := splitLines(to)
	end := ""
	switch {
	case endA && !endB:
		end = "newline at the end removed"
	case !endA && endB:
		end = "newline at the end added"
	}
	if regions, ok := changedRegions(a, b); !ok || len(regions) > 0 {
		head := places(regions, len(a), len(b), "line")
		if !ok {
			head = fmt.Sprintf("%s replaced by %s", count(len(a), "line"), count(len(b), "line"))
		}
		if end != "" && from != "" && to != "" {
			head += "; " + end
		}
		t.head(PlainLine, path, "%s", head)
		t.hunked(regions, a, b)
		return
	}
	t.head(PlainLine, path, "%s", end)
}

// lists compares two lists of scalars by item.
func (t *texter) lists(path string, from, to []any) {
	a, b := items(from), items(to)
	regions, ok := changedRegions(a, b)
	if !ok {
		t.head(PlainLine, path, "%s replaced by %s", count(len(a), "item"), count(len(b), "item"))
		return
	}
	t.head(PlainLine, path, "%s", places(regions, len(a), len(b), "item"))
	t.hunked(regions, a, b)
}

// structures compares all else as YAML.
func (t *texter) structures(path string, from, to any) {
	a, b := YAML(from), YAML(to)
	if slices.Equal(a, b) { // redacted values that begin with the same digits
		a, b = yamlLines(from, hiddenDigits), yamlLines(to, hiddenDigits)
	}
	what := "replaced"
	if t.whole {
		what = "changed in more places than are listed"
	}
	regions, ok := changedRegions(a, b)
	if !ok {
		t.head(PlainLine, path, "%s, %s by %s", what, count(len(a), "line"), count(len(b), "line"))
		return
	}
	t.head(PlainLine, path, "%s", what)
	t.hunked(regions, a, b)
}

func items(list []any) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = Scalar(v)
	}
	return out
}

// maxInline is how many characters a list may have to be shown on one line.
const maxInline = 60

// inline returns the text of a value that fits one line.
func inline(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return Scalar(v), !strings.Contains(v, "\n")
	case map[string]any:
		return "{}", len(v) == 0
	case []any:
		if !isScalarList(v) {
			return "", false
		}
		list := items(v)
		for i, s := range list {
			if strings.ContainsAny(s, ",]") && s[0] != '"' {
				list[i] = `"` + strings.ReplaceAll(s, `"`, `\"`) + `"`
			}
		}
		s := "[" + strings.Join(list, ", ") + "]"
		return s, len([]rune(s)) <= maxInline
	}
	return Scalar(v), true
}

func isScalarList(v any) bool {
	l, ok := v.([]any)
	return ok && allScalars(l)
}

// splitLines also tells whether the last line has an end.
func splitLines(s string) (lines []string, end bool) {
	if s == "" {
		return nil, false
	}
	s, end = strings.CutSuffix(s, "\n")
	return strings.Split(s, "\n"), end
}

// bodyLine marks a line of a value. At the end of a line that changed, blanks are escaped: they may be
// all that changed.
func bodyLine(kind LineKind, text string) Line {
	mark := "    "
	switch kind {
	case AddLine:
		mark = "  + "
	case RemoveLine:
		mark = "  - "
	}
	if text == "" {
		return Line{kind, strings.TrimRight(mark, " ")}
	}
	visible := text
	if kind != ContextLine {
		visible = strings.TrimRight(text, " \t")
	}
	end := strings.NewReplacer(" ", `\x20`, "\t", `\t`).Replace(text[len(visible):])
	return Line{kind, mark + escape(visible) + end}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
