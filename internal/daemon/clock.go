package daemon

import (
	"context"
	"time"

	"github.com/tattler-dev/tattler/internal/journal"
)

const (
	// maxHold is how long a jump of the clock must last before changes are removed by it.
	maxHold = 24 * time.Hour
	// minHold applies if changes are kept for less.
	minHold = 10 * retainEvery
)

// clock is the time for removing old changes. A wall clock that jumps a year ahead would make all changes too
// old at once, as would one that was behind at the start and is corrected. So this clock advances with
// monotonic time, is kept in the journal across restarts, and accepts a jump only after it has lasted for a
// day, or for as long as changes are kept: by then the changes from before the jump are too old in any case. A
// machine that was suspended or switched off looks the same; its changes are only kept for longer.
type clock struct {
	journal.Clock
	age  time.Duration // how long changes are kept
	jump time.Duration // how far the wall clock is ahead, or behind if negative; 0: within the tolerance
}

// tick advances the clock to the wall clock, or by the elapsed time, and returns the time to remove changes by:
// the earlier of the two.
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
		if c.Diverged += elapsed; c.Diverged >= c.hold() {
			c.At, c.Diverged, c.jump = wall, 0, 0
		}
	}
	if wall.Before(c.At) {
		return wall
	}
	return c.At
}

// tolerance is the difference that is accepted at once. It costs a tenth of the history at most.
func (c *clock) tolerance() time.Duration { return max(c.age/10, retainEvery) }

// hold is how long a jump must last.
func (c *clock) hold() time.Duration { return min(max(c.age, minHold), maxHold) }

// now returns the time to remove changes by, and logs when that differs from the wall clock.
func (r *retainer) now(ctx context.Context, elapsed time.Duration) (time.Time, error) {
	was := r.jump
	at := r.tick(r.o.wall(), elapsed)
	left := r.hold() - r.Diverged
	switch {
	case r.jump != 0 && was == 0:
		r.o.Log.Warn("the clock has jumped, or the daemon was stopped for long: age retention ignores the jump until it has lasted long enough",
			"jump", r.jump.Round(time.Second), "for", left.Round(time.Second))
	case r.jump == 0 && was != 0:
		r.o.Log.Info("age retention follows the clock again", "clock", r.At)
	}
	r.overall.judges(r.jump, left)
	return at, r.journal.SetClock(ctx, r.Clock)
}
