package diff

import (
	"testing"
	"time"
)

// TestUnknown: the note about objects without an earlier state names the earliest time.
func TestUnknown(t *testing.T) {
	var u unknown
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	for _, d := range []time.Duration{time.Hour, time.Minute, 2 * time.Hour} {
		u.add(at.Add(d))
	}
	if u.n != 3 || !u.first.Equal(at.Add(time.Minute)) {
		t.Errorf("%d, the first at %s", u.n, u.first)
	}
}
