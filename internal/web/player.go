package web

import (
	"fmt"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
)

// player folds changes to lines, as tattler log does.
type player struct {
	text  *render.Text
	order render.Order
	line  func(render.Line)
	now   time.Time // of the playback; it never goes back
}

// lag is the longest delay between a change's time and its arrival through the journal. Folded lines wait that much longer,
// so that they are complete.
const lag = 500 * time.Millisecond

func newPlayer(f *filter, line func(render.Line)) *player {
	p := &player{line: line}
	p.text = render.New(render.Options{
		Each: func(l render.Line) { p.line(l) }, Terminal: true, Location: time.UTC, Today: func() time.Time { return p.now },
		Namespaces: true, Flat: f.flat, Clusters: len(f.clusters) > 0, Cluster: f.own,
	})
	return p
}

func (p *player) change(c change.Change) error {
	return p.show(slices.Concat(p.order.Due(c.At), p.order.Add(c.At, c)))
}

// damaged shows that a change cannot be read.
func (p *player) damaged(e *journal.Entry, err error) {
	p.line(render.Line{At: e.At, Sign: "!", Name: fmt.Sprintf("change %s (%s) cannot be shown: %v", e.ID, e.Op, err), Changes: []int64{e.Seq}})
}

// until shows what is due.
func (p *player) until(at time.Time) error {
	if err := p.show(p.order.Due(at)); err != nil {
		return err
	}
	return p.advance(at.Add(-lag))
}

// flush shows the rest, as of a time.
func (p *player) flush(at time.Time) error {
	if err := p.show(p.order.Rest()); err != nil {
		return err
	}
	if err := p.advance(at); err != nil {
		return err
	}
	return p.text.Flush(p.now)
}

func (p *player) show(changes []change.Change) error {
	for _, c := range changes {
		if err := p.advance(c.At); err != nil {
			return err
		}
		if err := p.text.Change(p.now, c); err != nil {
			return err
		}
	}
	return nil
}

// advance moves the playback's time.
func (p *player) advance(to time.Time) error {
	for due, ok := p.text.Next(); ok && !due.After(to); due, ok = p.text.Next() {
		if due.After(p.now) {
			p.now = due
		}
		if err := p.text.Tick(p.now); err != nil {
			return err
		}
	}
	if to.After(p.now) {
		p.now = to
	}
	return nil
}
