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

// An object whose lines come more than hotLines times within hotWindow has one every hotEvery, with
// the net changes of that time below it.
const (
	hotLines  = 10
	hotWindow = time.Minute
	hotEvery  = 10 * time.Second
	// hotDetails is how many net changes are printed of each line.
	hotDetails = 10
	// hotRests is after how many times hotEvery without a change the object prints as others again.
	hotRests = 2
)

// hot is the state of an object that prints too often.
type hot struct {
	count    int
	net      netChanges
	managers []string
	text     string         // the state, where it is what changed last
	severity event.Severity // the worst since the last line
	since    time.Time      // of the last line
	first    moment         // of the first change that is counted
	last     moment         // of the last one
	caught   caught         // when the last one happened, if it was seen later
	rests    int            // times hotEvery without a change
	window   time.Time      // start of the current hotWindow, in which there were seen changes
	seen     int
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
	o.hot = &hot{since: now, window: now, severity: event.Normal}
	o.prints = nil
	return false
}

// add takes a change that has no line of its own.
func (h *hot) add(c change.Change, fields []change.FieldChange) {
	h.fold(1, momentOf(c), caughtUp(c), "")
	if s := c.Severity(); badness(s) > badness(h.severity) {
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

// fold takes n folded changes of state, when the last one happened, and what they come to.
func (h *hot) fold(n int, last moment, late caught, text string) {
	if h.count == 0 {
		h.first = last
	}
	h.last, h.caught = last, late
	h.count += n
	h.seen += n
	h.text = text
}

// printHot prints the line of an object that prints too often. It no longer does after some rest, or
// a window with as few changes as may print.
func (t *Text) printHot(now time.Time, o *object) {
	h := o.hot
	if h.count > 0 {
		t.hotLine(now, o)
		h.rests = 0
	} else {
		h.rests++
	}
	h.count, h.since, h.net, h.managers, h.text, h.severity = 0, now, netChanges{}, nil, "", event.Normal
	over := now.Sub(h.window) >= hotWindow
	switch {
	case h.rests == hotRests, over && h.seen <= hotLines:
		o.hot = nil
	case over:
		h.window, h.seen = now, 0
	}
}

// hotLine says how often the object changed, and what that comes to.
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
	t.begin(t.seenLate(row{
		at: at, sign: signFolded, namespace: o.namespace, owned: o.owned,
		name: t.typeName(o.resource) + "/" + o.name, info: info,
		manager: strings.Join(h.managers, ", "), severity: h.severity,
		hint: fmt.Sprintf("folded: more than %d a minute", hotLines),
	}, h.caught))
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

// excerpt is the first of several changed fields, or a text.
type excerpt struct {
	text  string
	first *diff.Change
	more  int
}

// firstOf names the first field that is not quiet, else the first that tells more than that something
// was written.
func firstOf(fields []change.FieldChange) excerpt {
	var first *change.FieldChange
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
