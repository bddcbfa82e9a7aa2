package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// An object with more than hotLines lines within hotWindow gets one line every hotEvery, with the net changes of that time
// below it.
const (
	hotLines  = 10
	hotWindow = time.Minute
	hotEvery  = 10 * time.Second
	// hotDetails bounds the net changes below each line.
	hotDetails = 10
	// hotIdle is the number of intervals of hotEvery without a change after which the object prints normally again.
	hotIdle = 2
)

// hot is the state of an object that changes too often for a line each.
type hot struct {
	count         int
	changes       numbers // of the counted changes
	net           netChanges
	managers      []string
	text          string         // the state, where it is what changed last
	severity      event.Severity // the worst since the last line
	since         time.Time      // of the last line
	first         moment         // of the first change that is counted
	last          moment         // of the last one
	lateSpan      lateSpan       // when the last one happened, if it was seen later
	idleIntervals int            // times hotEvery without a change
	window        time.Time      // start of the current hotWindow, in which there were seen changes
	seen          int
}

// mayPrint reports whether an object may have another line now, and counts it. If not, the object becomes hot.
func (t *Text) mayPrint(now time.Time, o *object) bool {
	if o.hot != nil {
		return false
	}
	o.prints = slices.DeleteFunc(o.prints, func(at time.Time) bool { return !at.After(now.Add(-hotWindow)) })
	if len(o.prints) < hotLines {
		o.prints = append(o.prints, now)
		return true
	}
	o.hot = &hot{since: now, window: now, severity: event.Normal}
	o.prints = nil
	return false
}

// add counts a change without its own line.
func (h *hot) add(c change.Change, fields []change.FieldChange) {
	h.fold(1, momentOf(c), lateSpanOf(c), "")
	h.changes.add(c.Seq)
	if s := c.Severity(); severityRank(s) > severityRank(h.severity) {
		h.severity = s
	}
	for _, f := range fields {
		h.net.add(f.Change)
	}
	for _, name := range strings.Split(managersOf(c, fields), ", ") {
		if !slices.Contains(h.managers, name) {
			h.managers = append(h.managers, name)
		}
	}
}

// fold counts n folded changes of state; last is when the last one happened, text is their net effect.
func (h *hot) fold(n int, last moment, late lateSpan, text string) {
	if h.count == 0 {
		h.first = last
	}
	h.last, h.lateSpan = last, late
	h.count += n
	h.seen += n
	h.text = text
}

// printHot prints the line of a hot object. The object cools down after some idle intervals, or after a window with few
// enough changes.
func (t *Text) printHot(now time.Time, o *object) {
	h := o.hot
	if h.count > 0 {
		t.hotLine(now, o)
		h.idleIntervals = 0
	} else {
		h.idleIntervals++
	}
	h.count, h.since, h.net, h.managers, h.text, h.severity, h.changes = 0, now, netChanges{}, nil, "", event.Normal, nil
	over := now.Sub(h.window) >= hotWindow
	switch {
	case h.idleIntervals == hotIdle, over && h.seen <= hotLines:
		o.hot = nil
	case over:
		h.window, h.seen = now, 0
	}
}

// hotLine prints how often the object changed, and the net effect.
func (t *Text) hotLine(now time.Time, o *object) {
	h := o.hot
	t.counts.Pending -= h.count
	t.counts.Folded += h.count
	info := "changed " + times(h.count)
	if h.count > 1 {
		info = joined(info, " ", took(h.first, h.last))
	}
	net := h.net.left()
	switch {
	case h.text != "":
		info += ": " + h.text
	case len(net) == 0:
		info += ", and back"
	}
	at := cmp.Or(h.last.server, h.last.seen, now)
	t.begin(t.withLateSpan(row{
		at: at, sign: signFolded, cluster: o.kind.ClusterOr(t.o.Cluster), namespace: o.namespace, owned: o.owned,
		name: t.typeName(o.kind, o.names) + "/" + o.name, info: info,
		manager: strings.Join(h.managers, ", "), severity: h.severity, changes: h.changes, object: o.identity(),
		hint: fmt.Sprintf("folded: more than %d a minute", hotLines),
	}, h.lateSpan))
	t.details(net[:min(len(net), hotDetails)])
	if more := len(net) - hotDetails; more > 0 || h.net.beyond {
		t.line(t.detail(dim, fmt.Sprintf("… %d more", max(more, 1))))
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// excerpt names the first of several changed fields, or is a text.
type excerpt struct {
	text  string
	first *diff.Change
	more  int
}

// firstOf names the first field that is not quiet, or else the first that not every write changes.
func firstOf(fields []change.FieldChange) excerpt {
	var first *change.FieldChange
	for i, f := range fields {
		if first == nil || first.Quiet && !f.Quiet || first.Quiet == f.Quiet && changesEveryWrite(first.Path) && !changesEveryWrite(f.Path) {
			first = &fields[i]
		}
	}
	if first == nil {
		return excerpt{}
	}
	return excerpt{first: &first.Change, more: len(fields) - 1}
}

// changesEveryWrite reports whether the API server itself changes a field with every write.
func changesEveryWrite(p diff.Path) bool {
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
