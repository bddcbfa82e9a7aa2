package diff

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// LineKind is the meaning of a line, for colours.
type LineKind uint8

// The kinds of a line.
const (
	// PlainLine has a path, and its values if they fit: "path: from → to", "path: replaced".
	PlainLine LineKind = iota
	// AddLine is an added path, or a line of an added value.
	AddLine
	// RemoveLine is a removed path, or a line of a removed value.
	RemoveLine
	// ContextLine is an unchanged line of a value.
	ContextLine
	// NoteLine says that lines are omitted.
	NoteLine
)

// Line is one line of a report, without its line break. It contains no control characters except tabs, and nothing that
// reorders text.
type Line struct {
	Kind LineKind
	Text string
}

// TextOptions tune Text. The zero value is usable.
type TextOptions struct {
	// Context is the number of unchanged lines around each changed one in a text of several lines. 0 means 2, enough to
	// recognise a place in a configuration file; a negative number means none.
	Context int
	// MaxLines bounds the lines below each path; omitted lines are counted. 0 means 15, so that two changes fit a small
	// terminal; a negative number means no bound.
	MaxLines int
}

// Text formats changes for people: one line each and, indented below it, the lines of values that do not fit one line.
//
//	spec.replicas: 3 → 5
//	metadata.labels.tier: + web
//	data["app.properties"]: line 2 of 3
//	    cache.size=64
//	  - http.timeout=30s
//	  + http.timeout=5s
//	    http.retries=3
//	data.password: changed (hidden, #4e1f → #9c20)
//	spec.initContainers: order migrate, seed → seed, migrate
//
// Line numbers refer to the new text or, if lines were only removed, to the old one; "after 9" marks removed lines. Values are
// quoted if they would read as another type. Long values are not cut.
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
		case Reorder:
			t.order(path, c.From, c.To)
		default:
			t.whole = c.Whole
			t.replaced(path, c.From, c.To)
		}
	}
	return t.lines
}

type texter struct {
	o     TextOptions
	whole bool // the change represents more than can be listed
	lines []Line
}

func (t *texter) head(kind LineKind, path, format string, args ...any) {
	t.lines = append(t.lines, Line{kind, path + ": " + fmt.Sprintf(format, args...)})
}

// hunked adds the lines that changed, with context.
func (t *texter) hunked(regions []region, a, b []string) {
	context := max(t.o.Context, 0)
	if t.o.MaxLines < 0 {
		lines, _ := hunks(regions, a, b, context, math.MaxInt)
		t.block(lines, 0)
		return
	}
	t.block(fitting(regions, a, b, context, t.o.MaxLines))
}

// block adds lines below a path, up to the bound, and notes how many are omitted, including left.
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

// one formats an added or removed value.
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

// texts compares two strings, at least one of which has several lines.
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

// structures compares other values as YAML.
func (t *texter) structures(path string, from, to any) {
	a, b := YAML(from), YAML(to)
	if slices.Equal(a, b) { // redacted values with the same first digits
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

// maxInline is the length in characters up to which a list is shown on one line.
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

// splitLines also reports whether the last line ends with a line break.
func splitLines(s string) (lines []string, end bool) {
	if s == "" {
		return nil, false
	}
	s, end = strings.CutSuffix(s, "\n")
	return strings.Split(s, "\n"), end
}

// bodyLine formats a line of a value. Blanks at the end of a changed line are escaped: they may be the only change.
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
