package render

import (
	"bytes"
	"container/heap"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// Options tune a Text. Only Out is needed; the zero values of the rest print for a pipe.
type Options struct {
	Out io.Writer
	// Terminal prints times as 15:04:05; else they are RFC 3339.
	Terminal bool
	// Today is the present time, of which Terminal's times of other days get their date; nil: none does.
	Today func() time.Time
	Color bool
	// Width is the number of columns at which lines are cut; 0 means never.
	Width int
	// Namespaces adds a column of namespaces; it is as wide as the widest that was seen.
	Namespaces bool
	// Full prints created objects and the lines of long values whole.
	Full bool
	// Whole prints, below what came or went, the whole object: metadata, status and what is owned included.
	Whole bool
	// Flat prints each change instead of folding those of a status and of what belongs to a rollout.
	Flat bool
	// Noise shows quiet fields, too.
	Noise bool
	// Only are the paths that somebody asked for: of an object that comes or goes, these fields are printed, but for
	// those that Ignore covers.
	Only, Ignore []diff.Pattern
	// Severities are those of the lines to print; empty: all. Gaps, absences and notices are always printed.
	Severities []event.Severity
	// From is the beginning of the time that was asked for: a line about what was over before is not printed.
	From time.Time
	// Location is that of the printed times; nil means the local one.
	Location *time.Location
}

// Text prints changes. It is used by one goroutine.
//
//	Ordering         Lines are in the order of the changes, except that a folded line comes when its
//	                 object is calm. Of one object, no folded line comes before what it follows.
//	Times            A line has the time at which it happened, also a folded one, which comes later.
//	                 A folded line about what goes on has the time at which it is printed.
//	What may be      Nothing: each change has a line, is counted by a folded line, or is quiet and
//	skipped          in Counts.
//	Memory           One entry for each object that is not settled, and for each that printed in the
//	                 last minute; an object that goes takes its entry along.
//	Errors           The first error of Out is returned by every later call.
type Text struct {
	o       Options
	names   map[string]string // resource.group to the word that stands for it
	widest  int               // namespace so far
	objects map[objectKey]*object
	family  family
	due     dueHeap
	down    map[string]bool   // nodes that are not ready
	reports map[string]report // by the UID of the object, of the last moments
	seq     int
	counts  Counts
	muted   bool // the last line is not wanted, nor what would be below it
	buf     bytes.Buffer
	err     error
}

// Counts says what became of the changes that were handed over. Their sum is the number of them.
type Counts struct {
	// Shown have their own line.
	Shown int
	// Folded are those for which a line stands that tells how many they are.
	Folded int
	// Pending are folded, too, but their line is still to come; 0 after Flush.
	Pending int
	// Quiet changed only what the quiet rules name, or are events that expired.
	Quiet int
	// Away are gaps that one notice about the API server sums up.
	Away int
}

// New makes a Text.
func New(o Options) *Text {
	if o.Location == nil {
		o.Location = time.Local
	}
	return &Text{o: o, widest: namespaceWidth, names: map[string]string{}, objects: map[objectKey]*object{}, family: newFamily(), down: map[string]bool{}, reports: map[string]report{}}
}

// SetWidth changes Options.Width, as when somebody resizes the terminal.
func (t *Text) SetWidth(columns int) { t.o.Width = columns }

// Counts returns what became of the changes so far.
func (t *Text) Counts() Counts { return t.counts }

// Change takes a change. It prints it, or folds it with others of its object until Tick.
func (t *Text) Change(now time.Time, c change.Change) error {
	t.tick(now)
	t.node(c)
	t.family.see(c)
	switch {
	case c.Op == event.Gap:
		t.gap(c)
	case c.Op == event.Absent:
		t.absence(c)
	case isEvent(c.Resource) && !t.o.Whole:
		t.event(c)
	case t.helm(c):
	case c.Op == event.Updated:
		t.updated(now, c)
	case c.Op == event.Converted:
		t.converted(c)
	case c.Op == event.Created:
		t.created(c)
	case c.Op == event.Deleted, c.Op == event.Left:
		t.gone(now, c)
	default:
		t.appeared(c)
	}
	t.tick(now) // a change can end what its object waited for
	return t.write()
}

// node remembers which nodes are not ready: that explains their pods. Where nodes themselves are not among the changes,
// pods show it: the kubelet writes their Ready condition, and only for a node that is not ready does
// kube-controller-manager (k8s.io/kubernetes: pkg/controller/nodelifecycle).
func (t *Text) node(c change.Change) {
	switch kindOf(c.Resource) {
	case "Node":
		ready := conditionOf(c.After, "Ready")
		t.setDown(c.Name, ready.status != "" && ready.status != "True")
	case "Pod":
		if conditionOf(c.Before, "Ready").status == conditionOf(c.After, "Ready").status {
			return
		}
		for _, f := range c.Fields {
			if f.Path.String() == "status.conditions[type=Ready].status" && (f.To == "True" || f.Manager == "kube-controller-manager") {
				t.setDown(text(c.After, "spec", "nodeName"), f.To != "True")
			}
		}
	}
}

func (t *Text) setDown(node string, down bool) {
	if down {
		t.down[node] = true
	} else {
		delete(t.down, node)
	}
}

// Tick prints the folded lines that are due.
func (t *Text) Tick(now time.Time) error {
	t.tick(now)
	return t.write()
}

func (t *Text) tick(now time.Time) {
	for len(t.due) > 0 && !t.due[0].due.After(now) {
		t.expire(now, t.due[0])
	}
}

// Next returns when Tick has something to do; false means not before the next change.
func (t *Text) Next() (time.Time, bool) {
	if len(t.due) == 0 {
		return time.Time{}, false
	}
	return t.due[0].due, true
}

// Notice prints a line of the program's own.
func (t *Text) Notice(now time.Time, text string) error {
	t.tick(now)
	t.begin(row{at: now, sign: signNotice, name: text})
	return t.write()
}

// Forget drops what is folded of objects that did not change since a time: their lines would be about what was before.
func (t *Text) Forget(before time.Time) {
	for _, o := range t.objects {
		f := o.fold
		if f == nil || o.hot != nil || !f.changed().Before(before) {
			continue
		}
		t.uncount(f)
		f.rebase()
		t.schedule(o)
	}
}

// uncount has what is folded stand for no line to come.
func (t *Text) uncount(f *fold) {
	t.counts.Pending -= f.pending()
	t.counts.Folded += f.pending()
}

// Flush prints every folded line. It is for the end: objects are forgotten.
func (t *Text) Flush(now time.Time) error {
	t.tick(now)
	t.gatherAll()
	for len(t.due) > 0 {
		o := t.due[0]
		switch {
		case o.fold == nil || o.fold.pending() == 0:
		case o.fold.count == 0 && o.fold.told != "" && gistOf(o) == o.fold.told: // the last line says the same
			t.uncount(o.fold)
		case o.gone:
			t.printFold(now, o, o.ended)
		case o.fold.orphans:
			t.printFold(now, o, t.legacy(o))
		case o.replaced && !t.o.Noise:
			t.counts.Pending -= o.fold.count
			t.counts.Quiet += o.fold.count
		default:
			t.printFold(now, o, t.summary(t.happened(now, o), o))
		}
		if o.hot != nil {
			t.printHot(now, o)
		}
		heap.Remove(&t.due, 0)
	}
	clear(t.objects)
	t.family = newFamily()
	clear(t.reports)
	return t.write()
}

// begin prints the line of a row. What is printed next belongs to it.
func (t *Text) begin(r row) {
	t.muted = !t.wanted(r.severity) || later(later(r.at, r.until), r.last).Before(t.o.From)
	t.line(t.head(r))
}

// wanted reports whether a line of a severity is to be printed; one that has none always is.
func (t *Text) wanted(s event.Severity) bool {
	return len(t.o.Severities) == 0 || s == "" || slices.Contains(t.o.Severities, s)
}

// line prints a line, unless it belongs to one that is not wanted.
func (t *Text) line(s string) {
	if t.muted {
		return
	}
	t.buf.WriteString(s)
	t.buf.WriteByte('\n')
}

func (t *Text) write() error {
	if t.err == nil && t.buf.Len() > 0 {
		_, t.err = t.o.Out.Write(t.buf.Bytes())
	}
	t.buf.Reset()
	return t.err
}

// row begins the row of a change.
func (t *Text) row(c change.Change, sign string) row {
	r := row{sign: sign, namespace: c.Namespace, owned: c.Owner != nil, name: t.typeName(c.Resource) + "/" + c.Name, note: t.seen(c), severity: c.Severity()}
	if r.at, r.until = c.Span(); r.at.Equal(r.until) {
		r.until = time.Time{}
	}
	return r
}

// lateness is how much later than it happened a change may be seen without a word: managers' times have whole
// seconds, and clocks differ.
const lateness = 5 * time.Second

// seen says when a change was seen, if that is not when it happened, and whether a list derived it.
func (t *Text) seen(c change.Change) string {
	switch from, to := c.Span(); {
	case c.Net && !from.Equal(to):
		return "(net change)"
	case c.Net:
		return "(net change since " + t.clock(c.Since) + ", seen " + t.clock(c.At) + ")"
	case from.Equal(to) && c.At.Sub(from) > lateness && c.Op != event.Snapshot:
		return "(seen " + t.clock(c.At) + ")"
	}
	return ""
}

func notes(parts ...string) string {
	return strings.TrimSpace(strings.Join(parts, " "))
}

// details prints fields below a head.
func (t *Text) details(changes []diff.Change) {
	o := diff.TextOptions{}
	if t.o.Full {
		o.MaxLines = -1
	}
	for _, c := range changes {
		lines := diff.Text([]diff.Change{c}, o)
		if room := t.o.Width - detailIndent; t.o.Width > 0 && len(lines) == 1 && width(lines[0].Text) > room {
			lines = stack(c, lines[0], room)
		}
		if t.o.Width > 0 {
			showDifference(lines, t.o.Width-detailIndent)
		}
		for _, l := range lines {
			t.line(t.detail(lineStyles[l.Kind], l.Text))
		}
	}
}

// showDifference shortens lines that are wider than the room, and that take each other's place, where they begin alike:
// else what differs would be cut off.
func showDifference(lines []diff.Line, room int) {
	const mark = len("  - ")
	for i := 0; i < len(lines); {
		removed := run(lines[i:], diff.RemoveLine)
		added := run(lines[i+removed:], diff.AddLine)
		for n := range min(removed, added) {
			from, to := &lines[i+n].Text, &lines[i+removed+n].Text
			if max(width(*from), width(*to)) <= room || min(len(*from), len(*to)) < mark {
				continue
			}
			if alike := common((*from)[mark:], (*to)[mark:]); alike > 0 {
				*from, *to = (*from)[:mark]+"…"+(*from)[mark+alike:], (*to)[:mark]+"…"+(*to)[mark+alike:]
			}
		}
		i += max(1, removed+added)
	}
}

// run is how many lines of a kind come first.
func run(lines []diff.Line, kind diff.LineKind) int {
	n := slices.IndexFunc(lines, func(l diff.Line) bool { return l.Kind != kind })
	if n < 0 {
		return len(lines)
	}
	return n
}

// stack lays out a change that is wider than the room: its path, then the values below each other, cut
// where they begin alike, so that what differs is seen.
func stack(c diff.Change, whole diff.Line, room int) []diff.Line {
	const mark = 4 // "  - "
	path := elide(c.Path.String(), room-1) + ":"
	_, hidden := diff.Hidden(c.To)
	if from, to := diff.Scalar(c.From), diff.Scalar(c.To); c.Op == diff.Replace && !hidden && isScalar(c.From) && isScalar(c.To) {
		if alike := common(from, to); alike > 0 && max(width(from), width(to)) > room-mark {
			from, to = "…"+from[alike:], "…"+to[alike:]
		}
		return []diff.Line{
			{Kind: diff.PlainLine, Text: path},
			{Kind: diff.RemoveLine, Text: "  - " + from},
			{Kind: diff.AddLine, Text: "  + " + to},
		}
	}
	value := strings.TrimPrefix(whole.Text, c.Path.String()+":")
	return []diff.Line{{Kind: diff.PlainLine, Text: path}, {Kind: whole.Kind, Text: "   " + value}}
}

func isScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any, nil:
		return false
	}
	return true
}

// common is where two texts begin to differ, less some of what is before it, in bytes; 0 where leaving
// that out would save nothing.
func common(a, b string) int {
	const keep = 12 // of what is alike, to recognise the place
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	if n -= keep; n <= 1 {
		return 0
	}
	for n > 0 && !utf8.RuneStart(a[n]) {
		n--
	}
	return n
}

// elide cuts out of the middle of a path: its beginning says whose field it is, its end which.
func elide(path string, w int) string {
	if width(path) <= w || w < 8 {
		return path
	}
	runes := []rune(path)
	head := w / 3
	tail := w - 1 - head
	return string(runes[:head]) + "…" + string(runes[len(runes)-tail:])
}

var lineStyles = map[diff.LineKind]style{diff.AddLine: green, diff.RemoveLine: red, diff.NoteLine: dim}
