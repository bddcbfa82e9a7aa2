package deliver

import (
	"context"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// hold tracks the messages that a sink has accepted for later delivery. While there are any, the cursor stays
// before them, and the pump reads on.
type hold struct {
	sink  sink.Holder // nil: the sink delivers at once
	count int         // messages held
	first taken       // the first of them

	// most limits the held messages up to a sequence number, after held messages were refused together, to find
	// the one that is the cause: half of them, then twice as many after each success. 0: the sink's own limit.
	most  int
	until int64
}

// taken is the part of an accepted message that a dead letter needs.
type taken struct {
	item Item
	m    sink.Message
}

// took records that the sink has acknowledged messages of a batch: delivered or held.
func (p *Pump) took(b *batch, acked int) {
	switch {
	case acked == 0:
	case p.held.sink == nil || p.held.sink.Due().IsZero():
		p.flushed(p.held.count + acked)
		p.trace.acknowledged(b.items[:acked])
	default:
		if p.held.count == 0 { // unwanted items before the first held message are done
			p.move(b.items[0].Seq - 1)
			m := b.messages[0]
			p.held.first = taken{item: b.items[0], m: sink.Message{ID: m.ID, Event: m.Event}}
		}
		p.held.count += acked
		p.trace.hold(b.items[:acked])
		p.report(func(s *Status) { s.Held = int64(p.held.count) })
	}
}

// flushed records that held messages were delivered, and none is held now.
func (p *Pump) flushed(count int) {
	p.held.count, p.held.first, p.sent = 0, taken{}, true
	p.report(func(s *Status) { s.Delivered += int64(count); s.Held = 0 })
}

// drop discards the read-ahead, and the messages that a Holder holds: they are read again from the cursor.
func (p *Pump) drop() {
	p.ahead.close()
	if p.held.sink == nil {
		return
	}
	p.held.sink.Drop()
	p.trace.release()
	if p.held.count == 0 {
		return
	}
	p.held.count, p.held.first, p.read = 0, taken{}, p.cursor
	p.report(func(s *Status) { s.Held = 0 })
	p.wake() // the waiting goroutine waits for the next message
}

// due returns when held messages must be delivered; false if none are held.
func (p *Pump) due() (at time.Time, ok bool) {
	if p.held.count == 0 {
		return at, false
	}
	if p.held.most > 0 && (p.held.count >= p.held.most || p.read >= p.held.until) {
		return time.Now(), true
	}
	return p.held.sink.Due(), true
}

// flushDue flushes held messages if that is due. It returns false if there was nothing to do.
func (p *Pump) flushDue(ctx context.Context) (r result, did bool) {
	if at, ok := p.due(); !ok || time.Now().Before(at) {
		return result{}, false
	}
	count, err := p.held.count, p.flushHeld(ctx)
	if err != nil {
		p.trace.notFlushed(err)
	}
	switch {
	case err == nil:
		p.flushed(count)
		p.trace.acknowledged(nil)
		p.held.most *= 2
		p.move(p.read)
		return result{acked: count, more: true}, true
	case !sink.BlamesMessage(err):
		p.stick(p.held.first, err)
		return p.passing(ctx, 0, err), true
	case count > 1:
		p.halve(count)
		return result{more: true}, true
	}
	only, upTo := p.held.first, p.read
	p.stick(only, err)
	r = p.refused(ctx, only.item, only.m, 0, err)
	if r.err == nil { // set aside: it is no longer held
		p.held.sink.Drop()
		p.trace.release()
		p.held.count, p.held.first = 0, taken{}
		p.report(func(s *Status) { s.Held = 0 })
		p.held.most *= 2
		p.move(upTo)
	}
	return r, true
}

// flushHeld calls Flush once.
func (p *Pump) flushHeld(ctx context.Context) error {
	p.report(func(s *Status) { s.Attempts++ })
	telling, cancel := p.sending(ctx)
	defer cancel()
	return p.held.sink.Flush(telling)
}

// halve limits the next flushes to half of the messages that were refused together.
func (p *Pump) halve(count int) {
	p.held.until = max(p.held.until, p.read)
	p.held.most = count / 2
	p.drop()
}

// holdBudget returns how many more messages a Holder may accept before it must deliver them.
func (p *Pump) holdBudget() int {
	if p.held.most == 0 {
		return batchMessages
	}
	return max(1, min(batchMessages, p.held.most-p.held.count))
}

// single sends a message by itself; a Holder delivers it at once, without what it held.
func (p *Pump) single(ctx context.Context, m sink.Message) error {
	p.drop()
	_, _, err := p.send(ctx, []sink.Message{m})
	if p.held.sink == nil {
		return err
	}
	defer p.held.sink.Drop()
	if err != nil || p.held.sink.Due().IsZero() {
		return err
	}
	return p.flushHeld(ctx)
}
