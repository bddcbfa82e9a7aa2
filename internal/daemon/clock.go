package daemon

import (
	"context"
	"time"

	"github.com/tattler-dev/tattler/internal/journal"
)

const (
	// maxDoubt is for how long a jump of the clock has to last until changes are removed by it.
	maxDoubt = 24 * time.Hour
	// minDoubt holds where changes are kept for less.
	minDoubt = 10 * retainEvery
)

// clock is the time by which changes are too old. A wall clock that jumps a year ahead would make all of them so
// at once; one that lay behind at the start does the same when it is put right. So the clock goes on with the
// monotonic time, across restarts with what the journal kept, and takes over a jump only after it has lasted for
// a day, or for as long as changes are kept: by then the changes from before the jump are too old in any case.
// A machine that was suspended or switched off looks the same, and only keeps its changes for longer.
type clock struct {
	journal.Clock
	age  time.Duration // how long changes are kept
	jump time.Duration // how far the wall clock is ahead, or behind if negative; 0: not more than is believed
}

// tick moves the clock to where the wall clock is, or by what has elapsed, and returns what is removed by: the
// earlier of the two.
func (c *clock) tick(wall time.Time, elapsed time.Duration) time.Time {
	if c.At.IsZero() {
		c.At = wall
	}
	c.At = c.At.Add(elapsed)
	last := c.jump
	switch c.jump = wall.Sub(c.At); {
	case c.jump.Abs() <= c.tolerance():
		c.At, c.Diverged, c.jump = wall, 0, 0
	case last != 0 && (c.jump-last).Abs() > c.tolerance():
		c.Diverged = 0 // another jump
	default:
		if c.Diverged += elapsed; c.Diverged >= c.doubt() {
			c.At, c.Diverged, c.jump = wall, 0, 0
		}
	}
	if wall.Before(c.At) {
		return wall
	}
	return c.At
}

// tolerance is what is believed at once. It costs a tenth of the history at most.
func (c *clock) tolerance() time.Duration { return max(c.age/10, retainEvery) }

// doubt is for how long a jump has to last.
func (c *clock) doubt() time.Duration { return min(max(c.age, minDoubt), maxDoubt) }

// now is the time to remove changes by, and logs where that is not what the wall clock shows.
func (r *retainer) now(ctx context.Context, elapsed time.Duration) (time.Time, error) {
	was := r.jump
	at := r.tick(r.o.wall(), elapsed)
	left := r.doubt() - r.Diverged
	switch {
	case r.jump != 0 && was == 0:
		r.o.Log.Warn("the clock has jumped, or the daemon was away for long: changes are removed by age as if it had not, until that has lasted",
			"jump", r.jump.Round(time.Second), "for", left.Round(time.Second))
	case r.jump == 0 && was != 0:
		r.o.Log.Info("changes are removed by what the clock shows again", "clock", r.At)
	}
	r.state.judges(r.jump, left)
	return at, r.journal.SetClock(ctx, r.Clock)
}
