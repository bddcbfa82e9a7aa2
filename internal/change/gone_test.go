package change

import (
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// TestGone: an object deleted while no daemon ran existed when it was last written.
func TestGone(t *testing.T) {
	at := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	object := func(created, written time.Time) map[string]any {
		return map[string]any{"metadata": map[string]any{
			"creationTimestamp": created.Format(time.RFC3339),
			"managedFields":     []any{map[string]any{"manager": "kubectl", "operation": "Update", "time": written.Format(time.RFC3339)}},
		}}
	}
	for _, tc := range []struct {
		name                          string
		since, created, written, want time.Time
	}{
		{"before it was watched", at.Add(-time.Minute), at.Add(-time.Hour), at.Add(-time.Hour), at.Add(-time.Minute)},
		{"created meanwhile", at.Add(-time.Minute), at.Add(-20 * time.Second), at.Add(-20 * time.Second), at.Add(-20 * time.Second)},
		{"written meanwhile", at.Add(-time.Minute), at.Add(-time.Hour), at.Add(-10 * time.Second), at.Add(-10 * time.Second)},
		{"by a clock that is ahead", at.Add(-time.Minute), at.Add(-time.Hour), at.Add(time.Minute), at.Add(-time.Minute)},
		{"seen as it happened", time.Time{}, at.Add(-time.Hour), at.Add(-time.Hour), time.Time{}},
	} {
		c := Change{Meta: Meta{Op: event.Deleted, At: at, Since: tc.since}}
		(&Builder{}).Build(&c, object(tc.created, tc.written), nil, nil)
		if !c.Since.Equal(tc.want) || !c.Time.Equal(at) {
			t.Errorf("%s: it went between %v and %v, want from %v", tc.name, c.Since, c.Time, tc.want)
		}
	}
}
