package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
)

// The widths of kubectl's columns for events, where they suffice.
const (
	eventTypeWidth   = 7
	eventReasonWidth = 18
	eventObjectWidth = 34
)

func isEvent(r change.Resource) bool {
	return r.Resource == "events" && (r.Group == "" || r.Group == "events.k8s.io")
}

// event prints an event of the cluster as kubectl get events does: when it was last seen, its type,
// reason, object and message. Events that expire are not news.
func (t *Text) event(c change.Change) {
	if c.After == nil {
		t.counts.Quiet++
		return
	}
	t.counts.Shown++
	kind := text(c.After, "type")
	object := fields(c.After, "involvedObject")
	if object == nil {
		object = fields(c.After, "regarding")
	}
	message := strings.TrimSpace(text(c.After, "message") + text(c.After, "note"))
	parts := []string{
		t.clock(lastSeen(c)),
		pad(escape(kind), eventTypeWidth),
		pad(escape(text(c.After, "reason")), eventReasonWidth),
		pad(escape(strings.ToLower(text(object, "kind"))+"/"+text(object, "name")), eventObjectWidth),
		escape(message),
	}
	if t.o.Namespaces {
		t.widest = max(t.widest, width(escape(c.Namespace)))
		parts[0] += "  " + pad(escape(c.Namespace), t.widest)
	}
	line := strings.TrimRight(strings.Join(parts, "  "), " ")
	if n := occurrences(c.After); n > 1 {
		line += fmt.Sprintf("  (%d times)", n)
	}
	if t.o.Width > 0 {
		line = cut(line, t.o.Width)
	}
	t.line(t.style(severityStyles[c.Severity()], line))
}

// lastSeen is the newest time that an event has; its fields differ between the two groups and their
// reporters.
func lastSeen(c change.Change) time.Time {
	var last time.Time
	for _, path := range [][]string{
		{"series", "lastObservedTime"}, {"lastTimestamp"}, {"deprecatedLastTimestamp"}, {"eventTime"},
	} {
		if at := when(c.After, path...); at.After(last) {
			last = at
		}
	}
	if last.IsZero() {
		return c.At
	}
	return last
}

func occurrences(obj map[string]any) int64 {
	return max(count(obj, "series", "count"), count(obj, "count"), count(obj, "deprecatedCount"))
}
