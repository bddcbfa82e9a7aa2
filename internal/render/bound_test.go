package render

import (
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// TestUpperBound: an upper bound is rounded up, to the units that Duration prints.
func TestUpperBound(t *testing.T) {
	for d, want := range map[time.Duration]string{
		300 * time.Millisecond: "1 s", 36 * time.Second: "36 s", 36729 * time.Millisecond: "37 s", 59001 * time.Millisecond: "1 min", 4 * time.Minute: "4 min",
		time.Hour - 1: "1 h", time.Hour + time.Second: "1 h 1 min", 24*time.Hour + time.Second: "1 d 1 h", 10*24*time.Hour + 1: "11 d",
	} {
		if got := UpperBound(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	var out strings.Builder
	text := New(Options{Out: &out})
	end := time.Unix(90, 0)
	c := change.Change{Meta: change.Meta{Op: event.Absent, Absence: &event.Absence{Reason: event.AbsenceStopped}, Since: end.Add(-36729 * time.Millisecond), At: end}}
	if err := text.Change(end, c); err != nil || !strings.Contains(out.String(), "tattler was not running for at most 37 s: ") {
		t.Errorf("%v: %s", err, out.String())
	}
}
