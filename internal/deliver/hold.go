package deliver

import (
	"context"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// hold is what a sink that tells later has taken in. While there is something, the cursor stays before it,
// and the pump reads on from where it is.
type hold struct {
	sink  sink.Holder // nil: the sink tells at once
	count int         // messages taken in, and not told
	first taken       // the first of them

	// After what was held was refused for good, at most so many messages are held up to a sequence number, so
	// that the one that is to blame is found: half of them, and twice as many each time that they are taken.
	// 0: as many as the sink wants.
	most  int
	until int64
}

// taken is a message that was taken in, as far as a dead letter needs it.
type taken struct {
	item Item
	m    sink.Message
}

// took notes that the sink has acknowledged messages of a batch: it has told them, or tells later.
func (p *Pump) took(b *batch, acked int) {
	switch {
	case acked == 0:
	case p.held.sink == nil || p.held.sink.Due().IsZero():
		p.told(p.held.count + acked)
	default:
		if p.held.count == 0 { // what nobody wants, before the first that is held, is done
			p.move(b.items[0].Seq - 1)
			m := b.messages[0]
			p.held.first = taken{item: b.items[0], m: sink.Message{ID: m.ID, Event: m.Event}}
		}
		p.held.count += acked
		p.report(func(s *Status) { s.Held = int64(p.held.count) })
	}
}

// told notes that so many messages were told, and nothing is held any more.
func (p *Pump) told(count int) {
	p.held.count, p.held.first, p.sent = 0, taken{}, true
	p.report(func(s *Status) { s.Delivered += int64(count); s.Held = 0 })
}

// drop forgets what was read ahead, and has a Holder forget what it holds: it is read again, from the cursor on.
func (p *Pump) drop() {
	p.ahead.close()
	if p.held.sink == nil {
		return
	}
	p.held.sink.Drop()
	if p.held.count == 0 {
		return
	}
	p.held.count, p.held.first, p.read = 0, taken{}, p.cursor
	p.report(func(s *Status) { s.Held = 0 })
	p.wake() // who waits does so for what follows
}

// due is when what is held is to be told; false where nothing is held.
func (p *Pump) due() (at time.Time, ok bool) {
	if p.held.count == 0 {
		return at, false
	}
	if p.held.most > 0 && (p.held.count >= p.held.most || p.read >= p.held.until) {
		return time.Now(), true
	}
	return p.held.sink.Due(), true
}

// tell flushes what is held, where it is due. It returns false where there was nothing to do.
func (p *Pump) tell(ctx context.Context) (r result, did bool) {
	if at, ok := p.due(); !ok || time.Now().Before(at) {
		return result{}, false
	}
	count, err := p.held.count, p.flushHeld(ctx)
	switch {
	case err == nil:
		p.told(count)
		p.held.most *= 2
		p.move(p.read)
		return result{acked: count, more: true}, true
	case !isPermanent(err):
		p.stick(p.held.first, err)
		return p.passing(ctx, 0, err), true
	case count > 1:
		p.narrow(count)
		return result{more: true}, true
	}
	only, upTo := p.held.first, p.read
	p.stick(only, err)
	r = p.refused(ctx, only.item, only.m, 0, err)
	if r.err == nil { // a dead letter: it is not held any more
		p.held.sink.Drop()
		p.held.count, p.held.first = 0, taken{}
		p.report(func(s *Status) { s.Held = 0 })
		p.held.most *= 2
		p.move(upTo)
	}
	return r, true
}

// flushHeld flushes once.
func (p *Pump) flushHeld(ctx context.Context) error {
	p.report(func(s *Status) { s.Attempts++ })
	telling, cancel := p.sending(ctx)
	defer cancel()
	return p.held.sink.Flush(telling)
}

// narrow drops so many messages, which were refused together, and has half of them told at a time.
func (p *Pump) narrow(count int) {
	p.held.until = max(p.held.until, p.read)
	p.held.most = count / 2
	p.drop()
}

// room is how many messages a Holder may take in before it is to tell them.
func (p *Pump) room() int {
	if p.held.most == 0 {
		return batchMessages
	}
	return max(1, min(batchMessages, p.held.most-p.held.count))
}

// single sends a message by itself, and has a Holder tell it at once, without what it held.
func (p *Pump) single(ctx context.Context, m sink.Message) error {
	p.drop()
	_, err := p.send(ctx, []sink.Message{m})
	if p.held.sink == nil {
		return err
	}
	defer p.held.sink.Drop()
	if err != nil || p.held.sink.Due().IsZero() {
		return err
	}
	return p.flushHeld(ctx)
}
