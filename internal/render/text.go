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
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// Options configure a Text. Only Out or Each is required; the zero values of the rest print for a pipe.
type Options struct {
	Out io.Writer
	// Terminal prints times as 15:04:05 instead of RFC 3339.
	Terminal bool
	// Today returns the present time: with Terminal, times of other days include their date. With nil, none do.
	Today func() time.Time
	Color bool
	// Width is the number of columns at which lines are cut; 0 means never.
	Width int
	// Namespaces adds a column of namespaces, as wide as the longest one so far.
	Namespaces bool
	// Clusters adds a column of clusters, as wide as the longest one so far. Cluster is the name of the cluster of kinds that
	// name none.
	Clusters bool
	Cluster  string
	// Full prints all lines of created objects and of long values.
	Full bool
	// Whole prints the whole object below its creation or deletion, including metadata and status, and also for owned objects.
	Whole bool
	// Flat prints each change instead of folding status changes and the changes of a rollout.
	Flat bool
	// Stories leaves out routine changes, and what others change of an object's state: Story prints what they come to. Like
	// Flat, it prints each other change.
	Stories bool
	// StoryIDs names the id of a story instead of the flag --flat, for a command that can show it by that.
	StoryIDs bool
	// Noise also shows quiet fields.
	Noise bool
	// Only are the requested paths: their fields are printed for an object that appears or disappears, except those that
	// Ignore covers.
	//
	// With Only or Ignore, the caller should set Flat: a summary of the remaining changes would name a wrong state.
	Only, Ignore []diff.Pattern
	// Severities selects the lines to print; empty means all. Gaps, absences and notices are always printed.
	Severities []event.Severity
	// Location is the time zone of printed times; nil means the local one.
	Location *time.Location
	// Each, if set, receives each line as data, and nothing is written to Out. Details below lines are left out: an update
	// names its first field instead.
	Each func(Line)
	// Head, if set, receives each line as data before it is written. Each Write to Out is then one line with its details.
	Head func(Line)
	// Watching says that the changes are printed as they are seen: the lines of objects that existed before leave out when
	// that was.
	Watching bool
	// Remark, if set, returns a remark for the lines about an object; empty for none.
	Remark func(Object) string
	// Nameless leaves out the names of objects, for a caller that prints them above their lines.
	Nameless bool
}

// Text prints changes. It is not safe for concurrent use.
//
//	Ordering         Lines are in the order of the changes, except that a folded line follows when its
//	                 object has not changed for a while. Lines about one object are in order.
//	Times            A line has the time at which its change happened. So has a folded line, which is
//	                 printed later. A folded line about a continuing transition has the present time.
//	What may be      Nothing: each change has a line, is counted in a folded line, or is quiet and
//	skipped          counted in Counts.
//	Memory           One entry for each object in transition, and for each with a line in the last
//	                 minute. A deletion removes the object's entry.
//	Errors           The first error of Out is returned by every later call.
type Text struct {
	o        Options
	names    map[string]string // resource.group to its printed name
	widest   int               // namespace so far, in columns
	broadest int               // cluster so far, in columns
	objects  map[objectKey]*object
	family   family
	due      dueHeap
	down     map[string]map[string]bool // nodes that are not ready, by cluster
	reports  map[string]report          // recent ones, by the UID of the object
	seq      int
	counts   Counts
	muted    bool // the last line was filtered out, and so are its details
	buf      bytes.Buffer
	err      error
}

// Counts counts the changes by what was printed for them. The sum is the number of all changes.
type Counts struct {
	// Shown changes have their own line.
	Shown int
	// Folded changes are part of a line that counts them.
	Folded int
	// Pending changes are folded into a line that is not printed yet; 0 after Flush.
	Pending int
	// Quiet changes affect only quiet fields, or are events that expired.
	Quiet int
	// Away counts gaps that are part of one notice about the API server.
	Away int
}

// New returns a Text.
func New(o Options) *Text {
	if o.Location == nil {
		o.Location = time.Local
	}
	o.Flat = o.Flat || o.Stories
	return &Text{o: o, widest: namespaceWidth, names: map[string]string{}, objects: map[objectKey]*object{}, family: newFamily(), down: map[string]map[string]bool{}, reports: map[string]report{}}
}

// SetWidth changes Options.Width, as when the terminal is resized.
func (t *Text) SetWidth(columns int) { t.o.Width = columns }

// Counts returns the counts so far.
func (t *Text) Counts() Counts { return t.counts }

// Change prints a change, or folds it with others of its object until Tick.
func (t *Text) Change(now time.Time, c change.Change) error {
	t.tick(now)
	t.node(c)
	t.family.see(c)
	switch {
	case t.o.Stories && c.Routine:
		t.counts.Folded++
	case c.Op == event.Gap:
		t.gap(c)
	case c.Op == event.Absent:
		t.absence(c)
	case isEvent(c.Kind) && !t.o.Whole:
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
	t.tick(now) // a change can make an object due
	return t.write()
}

// node records which nodes are not ready, which explains their pods. If nodes are not watched, pods show it: the kubelet
// writes their Ready condition, and kube-controller-manager does so only for a node that is not ready (k8s.io/kubernetes:
// pkg/controller/nodelifecycle).
func (t *Text) node(c change.Change) {
	switch c.Kind.GroupKind() {
	case "Node":
		ready := conditionOf(c.After, "Ready")
		t.setDown(c.Kind.Cluster, c.Name, ready.status != "" && ready.status != "True")
	case "Pod":
		if conditionOf(c.Before, "Ready").status == conditionOf(c.After, "Ready").status {
			return
		}
		for _, f := range c.Fields {
			if f.Path.String() == "status.conditions[type=Ready].status" && (f.To == "True" || f.Manager == "kube-controller-manager") {
				t.setDown(c.Kind.Cluster, jsonmap.Text(c.After, "spec", "nodeName"), f.To != "True")
			}
		}
	}
}

func (t *Text) setDown(cluster, node string, down bool) {
	if t.down[cluster] == nil {
		t.down[cluster] = map[string]bool{}
	}
	if down {
		t.down[cluster][node] = true
	} else {
		delete(t.down[cluster], node)
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

// Next returns when Tick has something to print; false if only after another change.
func (t *Text) Next() (time.Time, bool) {
	if len(t.due) == 0 {
		return time.Time{}, false
	}
	return t.due[0].due, true
}

// Notice prints a message of the program.
func (t *Text) Notice(now time.Time, text string) error {
	t.tick(now)
	t.begin(row{at: now, sign: signNotice, name: text})
	return t.write()
}

// uncount moves a fold's changes from Pending to Folded.
func (t *Text) uncount(f *fold) {
	t.counts.Pending -= f.pending()
	t.counts.Folded += f.pending()
}

// Flush prints every pending line, and forgets all objects. It is for the end.
func (t *Text) Flush(now time.Time) error {
	t.tick(now)
	t.absorbAllMembers()
	for len(t.due) > 0 {
		o := t.due[0]
		switch {
		case o.fold == nil || o.fold.pending() == 0:
		case o.fold.count == 0 && o.fold.lastState != "" && gistOf(o) == o.fold.lastState: // the last line says the same
			t.uncount(o.fold)
		case o.gone:
			t.printFold(now, o, o.ended)
		case o.fold.orphans:
			t.printFold(now, o, t.orphanSummary(o))
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

// begin prints the line of a row. The following lines belong to it.
func (t *Text) begin(r row) {
	t.muted = !t.wanted(r.severity)
	t.remark(&r)
	if t.o.Each != nil {
		t.emit(r)
		return
	}
	t.announce(r)
	t.line(t.head(r))
}

// wanted reports whether a line of a severity is printed. A line without a severity always is.
func (t *Text) wanted(s event.Severity) bool {
	return len(t.o.Severities) == 0 || s == "" || slices.Contains(t.o.Severities, s)
}

// line prints a line, unless it belongs to one that was filtered out.
func (t *Text) line(s string) {
	if t.muted || t.o.Each != nil {
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

// row returns the row of a change, without a description.
func (t *Text) row(c change.Change, sign string) row {
	r := row{sign: sign, cluster: c.Kind.ClusterOr(t.o.Cluster), namespace: c.Namespace, owned: c.Owner != nil, name: t.typeName(c.Kind, c.Names) + "/" + c.Name, note: t.seen(c), severity: c.Severity(), object: objectOf(c)}
	r.changes.add(c.Seq)
	r.span(c)
	return r
}

// span sets the time of a row: when the change happened, or the interval in which it did.
func (r *row) span(c change.Change) {
	if r.at, r.until = c.Span(); r.at.Equal(r.until) {
		r.until = time.Time{}
	}
}

// lateness is the delay from which a line mentions when a change was seen: managers' times are in whole seconds, and clocks
// differ.
const lateness = 5 * time.Second

// seen describes when a change was seen, if it happened earlier, and whether it was derived from a list.
func (t *Text) seen(c change.Change) string {
	switch from, to := c.Span(); {
	case c.Net && !from.Equal(to):
		return "(net change)"
	case c.Net:
		return "(net change since " + t.clock(c.Since) + ", seen " + t.clock(c.At) + ")"
	case from.Equal(to) && c.At.Sub(from) > lateness && (c.Op != event.Snapshot || !t.o.Watching):
		return "(seen " + t.clock(c.At) + ")"
	}
	return ""
}

func notes(parts ...string) string {
	return strings.TrimSpace(strings.Join(parts, " "))
}

// details prints fields below a head.
func (t *Text) details(changes []diff.Change) {
	if t.o.Each != nil {
		return
	}
	o := diff.TextOptions{}
	if t.o.Full {
		o.MaxLines = -1
	}
	for _, c := range changes {
		lines := diff.Text([]diff.Change{c}, o)
		if columns := t.o.Width - detailIndent; t.o.Width > 0 && len(lines) == 1 && width(lines[0].Text) > columns {
			lines = stack(c, lines[0], columns)
		}
		if t.o.Width > 0 {
			showDifference(lines, t.o.Width-detailIndent)
		}
		for _, l := range lines {
			t.line(t.detail(lineStyles[l.Kind], l.Text))
		}
	}
}

// showDifference shortens the common beginning of a removed and an added line that are wider than the given columns: otherwise
// their difference would be cut off.
func showDifference(lines []diff.Line, columns int) {
	const mark = len("  - ")
	for i := 0; i < len(lines); {
		removed := runLength(lines[i:], diff.RemoveLine)
		added := runLength(lines[i+removed:], diff.AddLine)
		for n := range min(removed, added) {
			from, to := &lines[i+n].Text, &lines[i+removed+n].Text
			if max(width(*from), width(*to)) <= columns || min(len(*from), len(*to)) < mark {
				continue
			}
			if alike := common((*from)[mark:], (*to)[mark:]); alike > 0 {
				*from, *to = (*from)[:mark]+"…"+(*from)[mark+alike:], (*to)[:mark]+"…"+(*to)[mark+alike:]
			}
		}
		i += max(1, removed+added)
	}
}

// runLength returns the number of leading lines of a kind.
func runLength(lines []diff.Line, kind diff.LineKind) int {
	n := slices.IndexFunc(lines, func(l diff.Line) bool { return l.Kind != kind })
	if n < 0 {
		return len(lines)
	}
	return n
}

// stack lays out a change that is wider than the given columns: its path, then the values below each other without their
// common beginning, so that the difference is visible.
func stack(c diff.Change, whole diff.Line, columns int) []diff.Line {
	const mark = 4 // "  - "
	path := elide(c.Path.String(), columns-1) + ":"
	_, hidden := diff.Hidden(c.To)
	if from, to := diff.Scalar(c.From), diff.Scalar(c.To); c.Op == diff.Replace && !hidden && isScalar(c.From) && isScalar(c.To) {
		if alike := common(from, to); alike > 0 && max(width(from), width(to)) > columns-mark {
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

// common returns the length in bytes of the common beginning of two texts that can be left out: all but its end. It is 0 if
// that would save nothing.
func common(a, b string) int {
	const keep = 12 // bytes of the common beginning that stay, for orientation
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

// elide cuts the middle out of a path: its beginning and its end say most.
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
