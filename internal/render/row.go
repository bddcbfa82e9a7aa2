package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tattler-dev/tattler/event"
)

// The columns of a line, from 0, on a terminal without a namespace column. A longer cell pushes the next one to two spaces
// behind it.
const (
	infoColumn    = 42
	managerColumn = 68
	noteColumn    = 80
	detailIndent  = 13
	ownedIndent   = 2
)

// namespaceWidth is the minimum width of the namespace column: "default" fits.
const namespaceWidth = 7

// The signs of a line; doc.go explains them.
const (
	signCreated  = "+"
	signSnapshot = "="
	signDeleted  = "-"
	signUpdated  = "~"
	signEntered  = ">"
	signLeft     = "<"
	signFolded   = "·"
	signNotice   = "!"
)

// row is the first line about one object.
type row struct {
	at        time.Time
	until     time.Time // the end, if at begins an interval
	last      time.Time // when the last folded change was seen
	sign      string
	cluster   string
	namespace string
	owned     bool
	name      string // type/name, or a whole notice
	info      string // what happened
	manager   string
	count     string // in parentheses: the number of changes in the line
	hint      string // the flag that shows them, or why they are folded
	note      string // in parentheses: more, such as when the change was seen
	remark    string // Options.Remark
	severity  event.Severity
	changes   numbers // of the changes that the line covers
	object    Object  // what the line is about; zero for a notice
}

// cell is a piece of a line that starts at a column or later.
type cell struct {
	text   string
	column int
	style  style
}

// head lays out a row. On a narrow terminal the cells move together, then the hint and the count are dropped, and the
// description is cut last. Notices are never cut: they are few, and say what to do.
func (t *Text) head(r row) string {
	clock := t.clock(r.at)
	if !r.until.IsZero() {
		clock = t.span(r.at, r.until)
	}
	prefix := clock + " " + r.sign + " "
	shift := width(clock) - len("15:04:05")
	if t.o.Clusters && r.sign != signNotice {
		t.broadest = max(t.broadest, width(escape(r.cluster)))
		prefix += pad(escape(r.cluster), t.broadest) + "  "
		shift += t.broadest + 2
	}
	if t.o.Namespaces && r.sign != signNotice {
		t.widest = max(t.widest, width(escape(r.namespace)))
		prefix += pad(escape(r.namespace), t.widest) + "  "
		shift += t.widest + 2
	}
	if r.owned {
		prefix += strings.Repeat(" ", ownedIndent)
	}
	limit := t.o.Width
	if r.sign == signNotice {
		limit = 0
	}
	cells := t.cells(r, shift)
	shorten := []func(){func() { r.hint = "" }, func() { r.count = "" }}
	if r.severity == event.Failure { // the cause matters more than when it was seen
		shorten = append(shorten, func() { r.note = "" }, func() { r.remark = "" })
	}
	for _, less := range shorten {
		if limit == 0 || r.info == "" || lineWidth(prefix, closedUp(cells)) <= limit {
			break
		}
		less()
		cells = t.cells(r, shift)
	}
	if limit > 0 {
		squeeze(limit, prefix, cells, r.info != "")
	}
	return t.paint(limit, prefix, clock, r, cells)
}

// cells returns the columns of a row.
func (t *Text) cells(r row, shift int) []cell {
	cells := []cell{{escape(r.name), 0, t.signStyle(r.sign)}}
	if t.o.Nameless {
		shift -= infoColumn - detailIndent
		if s, ok := severityStyles[r.severity]; ok {
			cells[0].style = s
		}
	}
	count := r.count
	switch {
	case r.hint != "" && count == "":
		count = "(" + r.hint + ")"
	case r.hint != "":
		count = strings.TrimSuffix(count, ")") + "; " + r.hint + ")"
	}
	for _, c := range []cell{
		{r.info, infoColumn, severityStyles[r.severity]}, {r.manager, managerColumn, cyan}, {notes(count, r.note, inParentheses(r.remark)), noteColumn, dim},
	} {
		if c.text != "" {
			c.text = escape(c.text)
			c.column += shift
			cells = append(cells, c)
		}
	}
	return cells
}

func inParentheses(text string) string {
	if text == "" {
		return ""
	}
	return "(" + text + ")"
}

// closedUp returns the cells, two spaces apart.
func closedUp(cells []cell) []cell {
	cells = slices.Clone(cells)
	for i := range cells {
		cells[i].column = 0
	}
	return cells
}

var severityStyles = map[event.Severity]style{event.Failure: red, event.Warning: yellow, event.Recovery: green}

// squeeze moves cells together and cuts the description.
func squeeze(limit int, prefix string, cells []cell, hasInfo bool) {
	for i := len(cells) - 1; i > 0 && lineWidth(prefix, cells) > limit; i-- {
		cells[i].column = 0
	}
	const readable = 12
	over := lineWidth(prefix, cells) - limit
	if over <= 0 || !hasInfo {
		return
	}
	if w := width(cells[1].text); w-over >= readable {
		cells[1].text = cut(cells[1].text, w-over)
	}
}

// paint joins and colours the cells, and cuts the line at the limit.
func (t *Text) paint(limit int, prefix, clock string, r row, cells []cell) string {
	var b strings.Builder
	b.WriteString(t.style(dim, clock))
	b.WriteString(" " + t.style(t.signStyle(r.sign), r.sign))
	b.WriteString(prefix[len(clock)+1+len(r.sign):])
	at := width(prefix)
	for i, c := range cells {
		if i > 0 {
			gap := max(2, c.column-at)
			at += gap
			b.WriteString(strings.Repeat(" ", gap))
		}
		if limit > 0 && at+width(c.text) > limit {
			b.WriteString(t.style(c.style, cut(c.text, limit-at)))
			break
		}
		at += width(c.text)
		b.WriteString(t.style(c.style, c.text))
	}
	return strings.TrimRight(b.String(), " ")
}

func lineWidth(prefix string, cells []cell) int {
	at := width(prefix)
	for i, c := range cells {
		if i > 0 {
			at += max(2, c.column-at)
		}
		at += width(c.text)
	}
	return at
}

// detail returns a line below a head.
func (t *Text) detail(s style, text string) string {
	text = strings.Repeat(" ", detailIndent) + escape(text)
	if t.o.Width > 0 {
		text = cutLong(text, t.o.Width)
	}
	return t.style(s, text)
}

// minCutNote is the number of cut columns from which a line says how many are cut.
const minCutNote = 1000

// cutLong cuts a line, and says how much of a long line is cut.
func cutLong(s string, w int) string {
	total := width(s)
	left, mark := total-w, ""
	if left < minCutNote {
		return cut(s, w)
	}
	for range 2 { // the mark itself takes columns, which can add a digit to the number
		mark = fmt.Sprintf("… %d more characters", left)
		left = total - (w - width(mark))
	}
	kept := w - width(mark)
	if kept < detailIndent {
		return cut(s, w)
	}
	return strings.TrimSuffix(cut(s, kept+1), "…") + fmt.Sprintf("… %d more characters", left)
}

// clock formats the time of a line: short on a terminal, RFC 3339 elsewhere.
func (t *Text) clock(at time.Time) string {
	at = at.In(t.o.Location)
	switch {
	case !t.o.Terminal:
		return at.Format(time.RFC3339)
	case t.o.Today != nil && at.Format(time.DateOnly) != t.o.Today().In(t.o.Location).Format(time.DateOnly):
		return at.Format(time.DateTime)
	}
	return at.Format(time.TimeOnly)
}

// span formats an interval, like clock. The end has a date only if it is on another day.
func (t *Text) span(from, to time.Time) string {
	if !t.o.Terminal {
		return t.clock(from) + "/" + t.clock(to) // ISO 8601
	}
	end := t.clock(to)
	if from, to := from.In(t.o.Location), to.In(t.o.Location); from.Format(time.DateOnly) == to.Format(time.DateOnly) {
		end = to.Format(time.TimeOnly)
	}
	return t.clock(from) + "–" + end
}

// style is a terminal's "select graphic rendition" sequence, ECMA-48 section 8.3.117.
type style string

const (
	plain  style = ""
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

func (t *Text) style(s style, text string) string {
	if !t.o.Color || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

func (t *Text) signStyle(sign string) style {
	switch sign {
	case signCreated, signEntered:
		return green
	case signDeleted, signNotice, signLeft:
		return red
	case signUpdated:
		return yellow
	}
	return dim
}

// escape writes unprintable characters as in a Go string: control characters, line breaks, invalid UTF-8, and format
// characters such as those that reorder text. Tabs become spaces.
func escape(s string) string {
	clean := utf8.ValidString(s)
	for _, r := range s {
		clean = clean && unicode.IsPrint(r)
	}
	if clean {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[0]), 16))
		case r == '\t':
			b.WriteString("    ")
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		}
		s = s[n:]
	}
	return b.String()
}

// width returns the number of columns of a text. Emoji and wide East Asian scripts (the entirely wide blocks of Unicode's
// EastAsianWidth.txt) take two columns, combining marks none.
func width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60,
		r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1f64f, r >= 0x1f680 && r <= 0x1faff,
		r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// cut shortens a text to a width, with an ellipsis in the last column.
func cut(s string, w int) string {
	if width(s) <= w {
		return s
	}
	if w <= 0 {
		return ""
	}
	at := 0
	for i, r := range s {
		if at+runeWidth(r) > w-1 {
			return s[:i] + "…"
		}
		at += runeWidth(r)
	}
	return s
}

func pad(s string, w int) string {
	return s + strings.Repeat(" ", max(0, w-width(s)))
}
