package journal

import (
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// TestSpan: the columns hold the same interval as the change.
func TestSpan(t *testing.T) {
	at := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	ago := func(s int) time.Time { return at.Add(-time.Duration(s) * time.Second) }
	for _, tc := range []struct {
		why       string
		m         Meta
		from, end time.Time
	}{
		{"seen as it happened", Meta{Op: event.Deleted, Time: at}, at, at},
		{"the object says when", Meta{Op: event.Updated, Time: ago(20), Since: ago(60), Net: true}, ago(20), ago(20)},
		{"an interval", Meta{Op: event.Updated, Time: at, Since: ago(60), Net: true}, ago(60), at},
		{"a deletion before the successor's creation", Meta{Op: event.Deleted, Time: ago(20), Since: ago(60), Net: true}, ago(60), ago(20)},
		{"one that the server sent late", Meta{Op: event.Deleted, Time: ago(20), Since: ago(60)}, ago(60), ago(20)},
		{"it left when it was written", Meta{Op: event.Left, Time: ago(20), Since: ago(60), Net: true}, ago(20), ago(20)},
	} {
		tc.m.At, tc.m.Kind, tc.m.Name = at, Kind{Version: "v1", Resource: "pods", Kind: "Pod"}, "a"
		if from, end := tc.m.Span(); !from.Equal(tc.from) || !end.Equal(tc.end) {
			t.Errorf("%s: from %v to %v", tc.why, from, end)
		}
		r := timesOf(&tc.m)
		if from, end := r.span(); from != tc.from.UnixMilli() || end != tc.end.UnixMilli() {
			t.Errorf("%s: the columns say from %v to %v", tc.why, time.UnixMilli(from).UTC(), time.UnixMilli(end).UTC())
		}
		if s := Stored(tc.m); !s.Time.Equal(tc.m.Time) || !s.At.Equal(at) || !s.Since.Equal(tc.m.Since) {
			t.Errorf("%s: stored as %+v", tc.why, s)
		}
	}
}
