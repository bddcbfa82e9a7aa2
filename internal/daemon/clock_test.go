package daemon

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/internal/journal"
)

// TestClockTick simulates wall clocks. Each step is a tick of a minute, repeated.
func TestClockTick(t *testing.T) {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	type step struct {
		why   string
		ticks int
		off   time.Duration // of the wall clock, from the elapsed time
		want  time.Duration // of the time to remove changes by
		jump  bool
	}
	for _, tc := range []struct {
		why   string
		age   time.Duration
		kept  time.Duration // since the clock was stored
		steps []step
	}{
		{"a clock that is right", 30 * day, 0, []step{{"for days", 5000, 0, 0, false}}},
		{"small steps are taken over at once", 30 * day, 0, []step{{"a suspended laptop", 1, 14 * time.Hour, 14 * time.Hour, false}, {"again", 1, 30 * time.Hour, 30 * time.Hour, false}}},
		{"a year ahead, put right in time", 30 * day, 0, []step{{"right", 3, 0, 0, false}, {"wrong", 1439, year, 0, true}, {"right", 1, 0, 0, false}, {"wrong again", 1439, year, 0, true}}},
		{"a year ahead, for good", 30 * day, 0, []step{{"held", 1439, year, 0, true}, {"believed", 1, year, year, false}}},
		{"a jump after a jump starts over", 30 * day, 0, []step{{"a week", 1400, 7 * day, 0, true}, {"a year", 1440, year, 0, true}, {"believed", 1, year, year, false}}},
		{"a year behind", 30 * day, 0, []step{{"removes less", 600, -year, -year, true}, {"put right", 1, 0, 0, false}}},
		{"no battery: 1970 until the network is there", 30 * day, 0, []step{{"1970", 5, -56 * year, -56 * year, true}, {"put right", 1, 0, 0, false}}},
		{"switched off for a month", 30 * day, 30 * day, []step{{"held", 1439, 0, -30 * day, true}, {"believed", 1, 0, 0, false}}},
		{"switched off for a night", 30 * day, 14 * time.Hour, []step{{"believed", 1, 0, 0, false}}},
		{"changes kept for an hour are held for one", time.Hour, 0, []step{{"held", 59, day, 0, true}, {"believed", 1, day, day, false}}},
		{"and never for less than some ticks", time.Minute, 0, []step{{"held", 9, day, 0, true}, {"believed", 1, day, day, false}}},
	} {
		c := &clock{Clock: journal.Clock{At: start.Add(-tc.kept)}, age: tc.age}
		at := start
		for _, s := range tc.steps {
			for i := range s.ticks {
				at = at.Add(retainEvery)
				got := c.tick(at.Add(s.off), retainEvery)
				if want := at.Add(s.want); !got.Equal(want) || (c.jump != 0) != s.jump {
					t.Fatalf("%s: %s, tick %d: %v, jump %v; want %v", tc.why, s.why, i, got, c.jump, want)
				}
				c = &clock{Clock: c.Clock, age: c.age, jump: c.jump} // everything that a tick needs is in here
			}
		}
	}
}

// TestClockRestarts: a daemon that is restarted repeatedly accepts a jump, too, and no earlier.
func TestClockRestarts(t *testing.T) {
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	kept := journal.Clock{At: start}
	believed := 0
	for restart := 1; believed == 0 && restart < 1000; restart++ {
		c := &clock{Clock: kept, age: 30 * 24 * time.Hour}
		for range 10 {
			if got := c.tick(start.AddDate(1, 0, 0), retainEvery); got.Sub(start) > 48*time.Hour {
				believed = restart
				break
			}
		}
		kept = c.Clock
	}
	if believed != 144 {
		t.Errorf("believed after %d restarts, each after ten minutes; want 144", believed)
	}
}

// TestClockJumps: a clock that jumps a year ahead, while the daemon runs or not, removes only old changes.
func TestClockJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir := newRig(t), t.TempDir()
		var jump atomic.Int64
		const year = 365 * 24 * time.Hour
		o := Options{Retention: journal.Retention{Age: 2 * time.Hour}}
		o.wall = func() time.Time { return time.Now().Add(time.Duration(jump.Load())).Round(0) }
		r.put("a", "1")
		d := r.daemon(dir, o)
		r.put("a", "2")
		check := func(why string, first, jumped, hold int64) {
			t.Helper()
			if j := d.status().Journal; j.First != first || j.ClockJump != jumped || j.ClockHold != hold {
				t.Errorf("%s: first %d, jump %d, held for %d; want %d, %d, %d\n%s", why, j.First, j.ClockJump, j.ClockHold, first, jumped, hold, d.log.String())
			}
		}
		d.pass(5 * time.Minute)
		check("a clock that is right", 1, 0, 0)
		jump.Store(int64(year))
		d.pass(20 * time.Minute)
		check("a year ahead", 1, int64(year/time.Second), 6000)
		if n := strings.Count(d.log.String(), "the clock has jumped"); n != 1 {
			t.Errorf("said %d times:\n%s", n, d.log.String())
		}
		jump.Store(0)
		d.pass(time.Minute)
		check("put right", 1, 0, 0)
		d.stop()

		jump.Store(int64(year))
		d = r.daemon(dir, o)
		d.pass(10 * time.Minute)
		check("ahead from the start", 1, int64(year/time.Second), 6600)
		d.stop()
		d = r.daemon(dir, o)
		d.pass(10 * time.Minute)
		check("and after another one", 1, int64(year/time.Second), 6000)
		d.stop()
	})
}
