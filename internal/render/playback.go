package render

import (
	"slices"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
)

// Lag is the maximum delay between a change's time and its arrival through the journal. Folded lines of a Playback wait
// that much longer, so that they are complete.
const Lag = 500 * time.Millisecond

// setBack is how far a change must be before the playback's time for the clock of the daemon to count as set back.
const setBack = time.Minute

// Playback passes recorded changes to a Text at the times at which they were seen, so that folded lines are due as they
// were when they were recorded. It follows a journal that grows, even if the daemon's clock is ahead of this machine's, or
// is set back: no line waits until the time of a change from the future. It is not safe for concurrent use.
type Playback struct {
	Text *Text
	// Before is called before the time advances; nil does nothing.
	Before func()

	order Order
	now   time.Time // of the playback. It never goes back while folded lines wait, although kinds are not seen in order
	seen  time.Time // when the newest change was seen
	wall  time.Time // of the last Until
	// present is the wall clock's time as the daemon's clock shows it.
	present time.Time
}

// Now returns the playback's time.
func (p *Playback) Now() time.Time { return p.now }

// Change shows a change, or holds it for a moment.
func (p *Playback) Change(c change.Change) error {
	if p.present.Sub(p.wall) >= setBack && p.present.Sub(c.At) >= setBack {
		if err := p.restart(); err != nil {
			return err
		}
	}
	p.seen = later(p.seen, c.At)
	return p.show(slices.Concat(p.order.Due(c.At), p.order.Add(c.At, c)))
}

// restart begins again after the daemon's clock was set back, so that later changes fold.
func (p *Playback) restart() error {
	if err := p.Flush(p.now); err != nil {
		return err
	}
	p.now, p.seen, p.present = time.Time{}, time.Time{}, p.wall
	return nil
}

// Notice shows a message of the program.
func (p *Playback) Notice(at time.Time, text string) error {
	if err := p.show(p.order.Rest()); err != nil {
		return err
	}
	if err := p.advance(at); err != nil {
		return err
	}
	return p.Text.Notice(p.now, text)
}

// Until shows what is due, by the wall clock.
func (p *Playback) Until(wall time.Time) error {
	if elapsed := wall.Sub(p.wall); elapsed > 0 && !p.wall.IsZero() {
		p.present = p.present.Add(elapsed)
	}
	p.wall = wall
	p.present = later(p.present, later(wall, p.seen))
	if err := p.show(p.order.Due(p.present)); err != nil {
		return err
	}
	return p.advance(p.present.Add(-Lag))
}

// Flush shows everything, as of a time.
func (p *Playback) Flush(at time.Time) error {
	if err := p.Settle(at); err != nil {
		return err
	}
	return p.Text.Flush(p.now)
}

// Settle shows the held changes, and the folded lines that are due at a time.
func (p *Playback) Settle(at time.Time) error {
	if err := p.show(p.order.Rest()); err != nil {
		return err
	}
	return p.advance(at)
}

// Held returns the number of the oldest change that waits for its line; 0 without one.
func (p *Playback) Held() int64 {
	held := p.Text.held()
	for _, h := range p.order.waiting {
		held = lowest(held, h.Seq)
	}
	return held
}

func (p *Playback) show(changes []change.Change) error {
	for _, c := range changes {
		if err := p.advance(c.At); err != nil {
			return err
		}
		if err := p.Text.Change(p.now, c); err != nil {
			return err
		}
	}
	return nil
}

// advance moves the playback's time, and prints folded lines that become due.
func (p *Playback) advance(to time.Time) error {
	if p.Before != nil {
		p.Before()
	}
	for due, ok := p.Text.Next(); ok && !due.After(to); due, ok = p.Text.Next() {
		p.now = later(p.now, due)
		if err := p.Text.Tick(p.now); err != nil {
			return err
		}
	}
	p.now = later(p.now, to)
	return nil
}

// held returns the number of the oldest change that is folded into a line that is not printed yet; 0 without one.
func (t *Text) held() (held int64) {
	for _, o := range t.objects {
		if o.hot != nil && o.hot.count > 0 {
			held = o.hot.changes.oldest(held)
		}
		if o.fold != nil && o.fold.count > 0 {
			held = o.fold.changes.oldest(held)
		}
		if o.fold != nil && o.fold.members.count > 0 {
			held = o.fold.members.changes.oldest(held)
		}
	}
	return held
}

// oldest returns the lowest of the numbers and of another one, of which 0 does not count.
func (n numbers) oldest(other int64) int64 {
	for _, seq := range n {
		other = lowest(other, seq)
	}
	return other
}

// lowest returns the lower of two numbers, of which 0 does not count.
func lowest(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
