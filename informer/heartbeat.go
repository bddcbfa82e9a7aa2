package informer

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/reflector"
)

// A watch without events looks like one whose connection stalls, or whose process stands still: what it then delivers
// may be old. So the cluster sends a small request at intervals. Every answer, whatever its status, proves that the
// connection works. If none has come for stallAfter intervals, events are refused; once one
// comes, the watches of before are opened anew. They find out, as after any outage, which of their events are late.

// stallAfter is how many intervals without an answer make a stall.
const stallAfter = 3

// heartbeat sends the requests. Its zero value, for a cluster without heartbeats, never finds a stall.
type heartbeat struct {
	every    time.Duration
	answered atomic.Pointer[time.Time] // when the last answer came; nil before the first
}

// elapsed returns the time between two moments. The monotonic clock stands still while a machine sleeps, and the wall
// clock can be set, so the longer one counts.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// stalled reports whether an event that comes now on a watch that was requested at a time may have been sent long ago.
func (h *heartbeat) stalled(asked time.Time) bool {
	if h.every == 0 {
		return false
	}
	if last := h.answered.Load(); last != nil && last.After(asked) {
		asked = *last
	}
	return elapsed(asked, time.Now()) > stallAfter*h.every
}

// beat sends heartbeats until ctx ends.
func (c *Cluster) beat(ctx context.Context) {
	h := &c.heartbeat
	paused := false
	for {
		if c.ping(ctx) == nil {
			c.answer(time.Now(), paused)
			paused = false
		}
		slept := time.Now()
		select {
		case <-ctx.Done():
			return
		case <-time.After(h.every):
		}
		paused = paused || elapsed(slept, time.Now()) > stallAfter*h.every
	}
}

func (c *Cluster) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stallAfter*c.heartbeat.every)
	defer cancel()
	err := c.client.Ping(ctx)
	return cmp.Or(ctx.Err(), err) // the body of a refusal may be missing
}

// answer notes an answer. It ends a stall only after the watches of before have ended:
// until then their events are refused.
func (c *Cluster) answer(now time.Time, paused bool) {
	last := c.heartbeat.answered.Load()
	defer c.heartbeat.answered.Store(&now)
	if last == nil || elapsed(*last, now) <= stallAfter*c.heartbeat.every {
		return
	}
	c.reflectors(func(_ *stream, r *reflector.Reflector) { r.Interrupt(reflector.ErrStalled) })
	if f := c.opts.Hooks.Stalled; f != nil {
		f(*last, now, paused)
	}
}
