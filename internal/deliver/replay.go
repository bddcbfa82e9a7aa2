package deliver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Done returns the sequence number up to which the sink is done, once the current batch is recorded.
func (p *Pump) Done(ctx context.Context) (int64, error) {
	if err := p.take(ctx); err != nil {
		return 0, err
	}
	defer p.pass()
	return p.cursor, nil
}

// Rewind moves the cursor to a sequence number, backwards or forwards: everything after it is delivered
// (again), in order and under the same ids. The range always extends to now: otherwise a receiver that does not
// remember ids would end with an old state. It also works while paused.
func (p *Pump) Rewind(ctx context.Context, seq int64) error {
	if err := p.take(ctx); err != nil {
		return err
	}
	defer p.pass()
	switch {
	case p.closed:
		return ErrStopped
	case seq < 0:
		return fmt.Errorf("rewind: %d is not a sequence number", seq)
	}
	last, err := p.o.Store.Last(ctx)
	if err != nil {
		return fmt.Errorf("read the journal's end: %w", err)
	}
	if seq > last { // otherwise later changes would be skipped
		return fmt.Errorf("rewind: the journal ends at %d, before %d", last, seq)
	}
	if err := p.prepare(ctx); err != nil {
		return err
	}
	p.drop()
	if err := p.flush(ctx, true); err != nil { // Repeats is the cursor's position
		return err
	}
	if seq < p.cursor {
		if err := p.o.Store.Rewind(ctx, p.o.Name, seq); err != nil {
			return fmt.Errorf("write cursor: %w", err)
		}
		p.repeats = max(p.repeats, p.cursor)
		p.committed, p.written, p.sent = seq, time.Now(), false
	} else if err := p.commit(ctx, seq); err != nil {
		return err
	}
	p.prepared, p.poison, p.held.until, p.stored = true, poison{}, 0, nil
	p.trace.reset()
	p.unstick()
	p.move(seq)
	p.wake()
	return nil
}

// ReplayDead sends dead letters once more, those with the ids or all, also while paused. Accepted ones are no
// longer dead letters; refused ones stay, with the new reason. It returns the number accepted. It stops at an
// error that does not concern a single letter, and at a letter whose change is no longer kept; that letter and
// those after it stay.
func (p *Pump) ReplayDead(ctx context.Context, ids ...string) (taken int, err error) {
	var letters []DeadLetter
	for d, err := range p.o.Store.DeadLetters(ctx, p.o.Name) {
		if err != nil {
			return 0, fmt.Errorf("read dead letters: %w", err)
		}
		if len(ids) == 0 || slices.Contains(ids, d.ID) {
			letters = append(letters, d)
		}
	}
	for _, id := range ids {
		if !slices.ContainsFunc(letters, func(d DeadLetter) bool { return d.ID == id }) {
			return 0, fmt.Errorf("replay %s: sink %s has no such dead letter", id, p.o.Name)
		}
	}
	for _, d := range letters {
		ok, err := p.replay(ctx, d)
		if err != nil {
			return taken, fmt.Errorf("replay %s: %w", d.ID, err)
		}
		if ok {
			taken++
		}
	}
	return taken, nil
}

func (p *Pump) replay(ctx context.Context, d DeadLetter) (taken bool, err error) {
	if err := p.take(ctx); err != nil {
		return false, err
	}
	defer p.pass()
	if p.closed {
		return false, ErrStopped
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ending, cancel)()
	began := time.Now()
	attempts, err := p.again(ctx, d)
	if err == nil || sink.BlamesMessage(err) {
		p.trace.replayed(began, &d, attempts, err)
	}
	switch {
	case sink.BlamesMessage(err):
		d.Reason, d.Attempts = err.Error(), d.Attempts+1
		return false, p.o.Store.SetAside(ctx, d)
	case err != nil:
		return false, err
	}
	p.report(func(s *Status) { s.Delivered++ })
	ctx, done := finishing(ctx)
	defer done()
	return true, p.o.Store.DropDeadLetter(ctx, d)
}

// again sends a dead letter's message, shortening it as long as the sink finds it too long. It returns the number of attempts.
func (p *Pump) again(ctx context.Context, d DeadLetter) (attempts int, err error) {
	for {
		m, err := p.deadMessage(ctx, d)
		if err != nil {
			return attempts, err
		}
		attempts++
		if err = p.single(ctx, m); !p.cut(m, err) {
			return attempts, err
		}
	}
}

// deadMessage builds the message of a dead letter. The filter accepted it, or failed on it, before it was set
// aside.
func (p *Pump) deadMessage(ctx context.Context, d DeadLetter) (sink.Message, error) {
	for item, err := range p.o.Store.Read(ctx, d.Seq-1) {
		if err != nil {
			return sink.Message{}, fmt.Errorf("read journal: %w", err)
		}
		if item.Seq != d.Seq || item.Change == nil {
			break
		}
		item, _, _ = p.o.judge(item)
		m, err := p.message(item)
		m.Again = true
		if err != nil {
			err = &sink.PermanentError{Err: err}
		}
		return m, err
	}
	return sink.Message{}, errors.New("the journal no longer has the change")
}
