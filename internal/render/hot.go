package render

import (
	"fmt"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/capture"
)

// An object whose lines come more than hotLines times within hotWindow has one every hotEvery.
const (
	hotLines  = 10
	hotWindow = time.Minute
	hotEvery  = 10 * time.Second
)

// hot is the state of an object that prints too often.
type hot struct {
	count  int
	last   excerpt
	since  time.Time // of the last line
	window time.Time // start of the current hotWindow, in which there were seen changes
	seen   int
}

// mayPrint tells whether an object may have another line now, and counts it. If not, the object is hot.
func (t *Text) mayPrint(now time.Time, o *object) bool {
	if o.hot != nil {
		return false
	}
	o.prints = slices.DeleteFunc(o.prints, func(at time.Time) bool { return !at.After(now.Add(-hotWindow)) })
	if len(o.prints) < hotLines {
		o.prints = append(o.prints, now)
		return true
	}
	o.hot = &hot{since: now, window: now}
	o.prints = nil
	return false
}

func (h *hot) add(n int, what excerpt) {
	h.count += n
	h.seen += n
	h.last = what
}

// printHot prints the line of an object that prints too often. It no longer does after a window with
// as few changes as may print.
func (t *Text) printHot(now time.Time, o *object) {
	h := o.hot
	if h.count > 0 {
		t.counts.Pending -= h.count
		t.counts.Folded += h.count
		t.line(t.head(row{
			at: now, sign: signFolded, namespace: o.namespace, owned: o.owned,
			name: t.typeName(o.resource) + "/" + o.name,
			info: fmt.Sprintf("changed %s in %s, last: %s", times(h.count), Duration(now.Sub(h.since)), h.last),
			note: fmt.Sprintf("(folded: more than %d a minute)", hotLines),
		}))
	}
	h.count, h.since = 0, now
	if now.Sub(h.window) < hotWindow {
		return
	}
	if h.seen <= hotLines {
		o.hot = nil
		return
	}
	h.window, h.seen = now, 0
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// excerpt is the first of several changed fields, or a text.
type excerpt struct {
	text  string
	first *diff.Change
	more  int
}

// firstOf names the first field that is not quiet, else the first that tells more than that something
// was written.
func firstOf(fields []capture.FieldChange) excerpt {
	var first *capture.FieldChange
	for i, f := range fields {
		if first == nil || first.Quiet && !f.Quiet || first.Quiet == f.Quiet && everyWrite(first.Path) && !everyWrite(f.Path) {
			first = &fields[i]
		}
	}
	if first == nil {
		return excerpt{}
	}
	return excerpt{first: &first.Change, more: len(fields) - 1}
}

// everyWrite tells the fields that the API server itself changes with every write.
func everyWrite(p diff.Path) bool {
	name := field(p, 1)
	return field(p, 0) == "metadata" && (name == "resourceVersion" || name == "generation" || name == "managedFields")
}

// String is one line: "spec.replicas: 3 → 5, 2 more".
func (e excerpt) String() string {
	if e.first == nil {
		return e.text
	}
	s := diff.Text([]diff.Change{*e.first}, diff.TextOptions{})[0].Text
	if e.more > 0 {
		s += fmt.Sprintf(", %d more", e.more)
	}
	return s
}
