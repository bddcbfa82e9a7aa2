package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// The minimum widths of columns for events, as kubectl has them.
const (
	eventTypeWidth   = 7
	eventReasonWidth = 18
	eventObjectWidth = 34
)

func isEvent(r change.Kind) bool {
	return r.Resource == "events" && (r.Group == "" || r.Group == "events.k8s.io")
}

// event handles an event of the cluster. It joins the pending line of its object, or is printed like kubectl get events:
// when it was last seen, its type, reason, object and message. The deletion of an expired event is quiet.
func (t *Text) event(c change.Change) {
	if c.After == nil {
		t.counts.Quiet++
		return
	}
	if t.join(c) {
		return
	}
	t.counts.Shown++
	r := eventRow(t.row(c, signUpdated), c)
	r.at, r.until = lastSeen(c), time.Time{}
	if t.o.Each != nil {
		t.begin(r)
		return
	}
	kind, object, message := jsonmap.Text(c.After, "type"), about(c.After), messageOf(c.After)
	at := t.clock(lastSeen(c))
	if t.o.Clusters {
		t.broadest = max(t.broadest, width(escape(r.cluster)))
		at += "  " + pad(escape(r.cluster), t.broadest)
	}
	if t.o.Namespaces {
		t.widest = max(t.widest, width(escape(c.Namespace)))
		at += "  " + pad(escape(c.Namespace), t.widest)
	}
	parts := []string{at, escape(kind), escape(jsonmap.Text(c.After, "reason")), escape(nameOf(object)), escape(message)}
	columns := slices.Clone(parts)
	for i, w := range []int{0, eventTypeWidth, eventReasonWidth, eventObjectWidth} {
		columns[i] = pad(parts[i], w)
	}
	line := func(parts []string) string {
		return joined(strings.TrimRight(strings.Join(parts, "  "), " "), "  ", repeated(c.After))
	}
	said := line(columns)
	if w := t.o.Width; w > 0 && width(said) > w {
		said = cut(line(parts), w) // rather than the message
	}
	t.muted = !t.wanted(c.Severity())
	t.announce(r)
	t.line(t.style(severityStyles[c.Severity()], said))
}

// about returns an event's reference to its object.
func about(obj map[string]any) map[string]any {
	if object := jsonmap.Object(obj, "involvedObject"); object != nil {
		return object
	}
	return jsonmap.Object(obj, "regarding")
}

// messageOf returns an event's message. The two groups have different fields for it.
func messageOf(obj map[string]any) string {
	return strings.TrimSpace(jsonmap.Text(obj, "message") + jsonmap.Text(obj, "note"))
}

// lastSeen returns an event's newest time, or else when the change was seen.
func lastSeen(c change.Change) time.Time {
	if last := lastOf(c.After); !last.IsZero() {
		return last
	}
	return c.At
}

// lastOf returns an event's newest time. The fields differ between the two groups and their reporters.
func lastOf(obj map[string]any) time.Time {
	var last time.Time
	for _, path := range [][]string{
		{"series", "lastObservedTime"}, {"lastTimestamp"}, {"deprecatedLastTimestamp"}, {"eventTime"},
	} {
		if at := jsonmap.Time(obj, path...); at.After(last) {
			last = at
		}
	}
	return last
}

// firstTimeOf returns when an event first happened.
func firstTimeOf(obj map[string]any) time.Time {
	var first time.Time
	for _, path := range [][]string{{"firstTimestamp"}, {"deprecatedFirstTimestamp"}, {"eventTime"}} {
		if at := jsonmap.Time(obj, path...); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// repeated returns "(12 times in 3 min)"; empty for an event that happened once. Without both times, there is no duration.
func repeated(obj map[string]any) string {
	n := occurrences(obj)
	if n <= 1 {
		return ""
	}
	over := ""
	if first, last := firstTimeOf(obj), lastOf(obj); !first.IsZero() && last.Sub(first) >= time.Second {
		over = " in " + Duration(last.Sub(first))
	}
	return fmt.Sprintf("(%d times%s)", n, over)
}

func occurrences(obj map[string]any) int64 {
	return max(count(obj, "series", "count"), count(obj, "count"), count(obj, "deprecatedCount"))
}

// eventRow returns the row of an event, under the name of its object.
func eventRow(r row, c change.Change) row {
	obj := c.After
	if obj == nil {
		obj = c.Before
	}
	if object := about(obj); object != nil {
		r.sign, r.name = signFolded, nameOf(object)
	}
	r.manager, r.info = "", "event "+jsonmap.Text(obj, "reason")
	if c.After == nil {
		r.info += " expired"
		return r
	}
	r.info = joined(joined(r.info, ": ", messageOf(obj)), " ", repeated(obj))
	return r
}

// nameOf returns the name of a reference's object, such as pod/web-1.
func nameOf(reference map[string]any) string {
	return strings.ToLower(jsonmap.Text(reference, "kind")) + "/" + jsonmap.Text(reference, "name")
}
