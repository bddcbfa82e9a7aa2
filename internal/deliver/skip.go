package deliver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Stuck is the change that blocks the sink: the first that it has not accepted, after at least one error.
type Stuck struct {
	ID, Subject string
	// Since is the first error, Attempts the number of times it was sent, and Error the last error.
	Since    time.Time
	Attempts int
	Error    string
}

// stuck is the message of a Stuck; nil without one.
type stuck struct {
	taken
	since    time.Time
	attempts int
}

// ErrNotStuck is returned by Skip for a change that does not, or no longer, block the sink.
var ErrNotStuck = errors.New("the change does not block the sink")

// Skip sets aside the change that blocks the sink, if it has the id, and continues. It interrupts a current
// attempt.
func (p *Pump) Skip(ctx context.Context, id string) (Stuck, error) {
	s, err := p.interrupt(id)
	if err != nil {
		return s, err
	}
	if err := p.take(ctx); err != nil {
		return s, err
	}
	defer p.pass()
	switch {
	case p.closed:
		return s, ErrStopped
	case p.stuck.m.ID != id: // the sink has accepted it meanwhile
		return s, ErrNotStuck
	}
	if err := p.skip(ctx, errors.New("skipped: "+s.Error)); err != nil {
		return s, err
	}
	p.wake()
	return s, nil
}

// interrupt ends the current attempt, if the change with the id is stuck.
func (p *Pump) interrupt(id string) (Stuck, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.status.Stuck; s == nil || s.ID != id {
		return Stuck{}, ErrNotStuck
	}
	if p.abort != nil {
		p.abort()
	}
	return *p.status.Stuck, nil
}

// sending returns a context for one call of the sink, which Skip can end.
func (p *Pump) sending(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, p.o.SendTimeout)
	set := func(abort func()) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.abort = abort
	}
	set(cancel)
	return ctx, func() {
		set(nil)
		cancel()
	}
}

// stick records that the sink did not accept a message. Messages held by a Holder come before it.
func (p *Pump) stick(at taken, err error) {
	if p.held.count > 0 {
		at = p.held.first
	}
	if p.stuck.m.ID != at.m.ID {
		p.stuck = stuck{taken: taken{item: Item{Seq: at.item.Seq}, m: sink.Message{ID: at.m.ID, Event: at.m.Event}}, since: time.Now()}
	}
	p.stuck.attempts++
	s := &Stuck{ID: at.m.ID, Subject: at.m.Event.Subject, Since: p.stuck.since, Attempts: p.stuck.attempts, Error: err.Error()}
	p.report(func(status *Status) { status.Stuck = s })
}

// unstick records that nothing blocks the sink.
func (p *Pump) unstick() {
	if p.stuck.m.ID != "" {
		p.stuck = stuck{}
		p.report(func(s *Status) { s.Stuck = nil })
	}
}

// passing handles a temporary error: the message is retried, but not forever if the options limit that.
func (p *Pump) passing(ctx context.Context, acked int, err error) result {
	after := p.o.Retry.GiveUp
	if after == 0 || time.Since(p.stuck.since) < after {
		return result{acked: acked, err: err}
	}
	if err := p.skip(ctx, fmt.Errorf("set aside after %s: %w", after, err)); err != nil {
		return result{acked: acked, err: err}
	}
	return result{acked: acked, more: true, setAside: true}
}

// skip sets aside the stuck message. Messages held by a Holder are read again.
func (p *Pump) skip(ctx context.Context, reason error) error {
	s := p.stuck
	p.drop()
	return p.setAside(ctx, s.item.Seq, s.m.Event, s.attempts, reason)
}
