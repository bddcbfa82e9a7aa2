package journal

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// TestClock: the clock survives a restart; without one, the newest change dates it.
func TestClock(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	check := func(why string, want Clock) {
		t.Helper()
		if got, err := j.Clock(ctx); err != nil || !got.At.Equal(want.At) || got.Diverged != want.Diverged {
			t.Errorf("%s: %+v, %v; want %+v", why, got, err, want)
		}
	}
	check("an empty journal", Clock{})
	add(t, j, pod(event.Created, 1), pod(event.Updated, 5))
	check("what was seen last", Clock{At: epoch.Add(5 * time.Second)})
	kept := Clock{At: epoch.Add(time.Hour), Diverged: 3 * time.Minute}
	must(t, j.SetClock(ctx, Clock{At: epoch}), j.SetClock(ctx, kept), j.Close())
	j = open(t, path)
	check("what was kept", kept)
	must(t, j.db.exec("UPDATE meta SET value = 'noon' WHERE key = 'clock'"))
	check("before any other", Clock{At: epoch.Add(5 * time.Second)})
}
