package journal

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// TestGaps: a repeated gap is a duplicate. If the version at its end is unknown, as during a list, gaps after the same version
// are distinguished by when they began.
func TestGaps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	gap := func(from, to string, since, seen time.Duration) Row {
		r := pod(event.Gap, 1)
		r.Name, r.UID, r.ResourceVersion, r.Owner, r.Before, r.After = "", "", "", nil, nil, nil
		r.Gap = &event.GapInfo{From: from, To: to, Reason: "a list was interrupted"}
		r.At = epoch.Add(seen)
		r.Time = r.At
		if since > 0 {
			r.Since = epoch.Add(since)
		}
		return r
	}
	for _, tc := range []struct {
		why       string
		row       Row
		duplicate int
	}{
		{"a gap", gap("7", "", time.Second, time.Minute), 0},
		{"the same, seen later", gap("7", "", time.Second, time.Hour), 1},
		{"the same to the millisecond, the stored precision", gap("7", "", time.Second+time.Microsecond, time.Hour), 1},
		{"a gap that began later, with nothing recorded since", gap("7", "", 2*time.Second, time.Minute), 0},
		{"its beginning is unknown", gap("7", "", 0, time.Minute), 0},
		{"its beginning is unknown, seen later", gap("7", "", 0, time.Hour), 1},
		{"its end is known", gap("7", "9", time.Second, time.Minute), 0},
		{"with both versions known, the time does not count", gap("7", "9", 2*time.Second, time.Minute), 1},
	} {
		if got := add(t, j, tc.row); got.Duplicates != tc.duplicate || got.Rows != 1-tc.duplicate {
			t.Errorf("%s: %+v", tc.why, got)
		}
	}
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	ids := map[string]bool{}
	for e, err := range r.Rows(t.Context(), Query{}) {
		must(t, err)
		ids[e.ID] = true
		if found, err := r.ByID(t.Context(), e.ID); err != nil || found.Seq != e.Seq {
			t.Errorf("%s is change %d, not %d: %v", e.ID, found.Seq, e.Seq, err)
		}
	}
	if len(ids) != 4 {
		t.Errorf("%d ids of 4 gaps", len(ids))
	}
}
