package deliver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/sink"
)

// A lagging sink yields: a pump calls runtime.Gosched after every change, so that a live sink waits for one change of
// each laggard, and not for the scheduler's 10 ms.
//
// A pump continues its reading where it stopped. The journal is read in pages, and a batch of large objects is a
// tenth of a page. So the reading stays open between batches, and is closed when the next batch begins elsewhere, or
// is not due soon.

// batch is what is sent at once.
type batch struct {
	items    []Item // of messages: without their events
	messages []sink.Message
	bytes    int
	scanned  int
	upTo     int64 // everything up to it was read
}

func (b *batch) full(most int) bool {
	return len(b.messages) >= most || b.bytes >= batchBytes || b.scanned >= batchScanned
}

// result is the outcome of a batch.
type result struct {
	read     int64 // everything up to it was read
	acked    int
	held     bool // the sink holds messages
	more     bool // there were items, so there may be more
	setAside bool // an error ended by setting the change aside
	err      error
}

// once delivers one batch and commits the cursor.
func (p *Pump) once(ctx context.Context) result {
	if err := p.take(ctx); err != nil {
		return result{err: err}
	}
	defer p.pass()
	r := p.deliver(ctx)
	if r.err != nil || p.ahead.at != p.read { // it may take long until that is read again
		p.ahead.close()
	}
	ctx, cancel := finishing(ctx)
	defer cancel()
	if err := p.flush(ctx, false); r.err == nil {
		r.err = err
	}
	r.read, r.held = p.read, p.held.count > 0
	return r
}

// finishing returns ctx or, once that has ended, a short context for recording the work done, which would
// otherwise be repeated.
func finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), closeTime)
}

func (p *Pump) deliver(ctx context.Context) result {
	if err := p.prepare(ctx); err != nil {
		return result{err: err}
	}
	if p.sent { // the last commit failed: anything sent now would be sent again after a crash
		if err := p.flush(ctx, true); err != nil {
			return result{err: err}
		}
	}
	if r, did := p.flushDue(ctx); did {
		return r
	}
	b, err := p.gather(ctx)
	if err != nil {
		return result{err: err}
	}
	if len(b.messages) == 0 {
		more := b.upTo > p.read
		p.move(b.upTo)
		return result{more: more}
	}
	acked, stored, err := p.send(ctx, b.messages)
	p.trace.sent(b.items, acked, err)
	p.alone = err != nil && acked == 0 // one message of the batch may be the cause
	p.took(&b, acked)
	p.keep(&b, acked, stored)
	if acked == len(b.messages) {
		p.move(b.upTo)
		return result{acked: acked, more: true}
	}
	p.move(b.items[acked].Seq - 1)
	if err == nil { // a slow sink
		return result{acked: acked, more: true}
	}
	if p.cut(b.messages[acked], err) {
		return result{acked: acked, more: true}
	}
	p.stick(taken{b.items[acked], b.messages[acked]}, err)
	if sink.BlamesMessage(err) {
		return p.refused(ctx, b.items[acked], b.messages[acked], acked, err)
	}
	return p.passing(ctx, acked, err)
}

// most returns the maximum number of messages in a batch. With those of p.stored, it bounds how far the sink gets ahead of the
// cursor.
func (p *Pump) most() int {
	if p.alone {
		return 1
	}
	return max(1, p.holdBudget()-len(p.stored))
}

// keep remembers the messages behind the first unacknowledged one that the receiver has stored, so that they are not sent again
// when that one is.
func (p *Pump) keep(b *batch, acked int, stored []string) {
	if len(stored) == 0 || p.held.sink != nil { // what a Holder holds is not delivered
		return
	}
	if p.stored == nil {
		p.stored = map[int64]bool{}
	}
	var items []Item
	for i := acked; i < len(b.messages); i++ {
		if slices.Contains(stored, b.messages[i].ID) {
			p.stored[b.items[i].Seq] = true
			items = append(items, b.items[i])
		}
	}
	p.trace.acknowledged(items)
	p.report(func(s *Status) { s.Delivered += int64(len(items)) })
}

// cut reports whether a message that is too long can be shortened; message does so when it builds it next.
func (p *Pump) cut(m sink.Message, err error) bool {
	var long *sink.TooLargeError
	if !errors.As(err, &long) {
		return false
	}
	limit := long.Limit
	if limit <= 0 || limit >= len(m.Body) { // the receiver counts bytes that we do not see, or gives no limit
		limit = len(m.Body) / 2
	}
	if limit < MinMaxBytes {
		limit = MinMaxBytes
	}
	if limit >= len(m.Body) || p.short.id == m.ID && p.short.bytes <= limit { // as short as possible
		return false
	}
	p.short = short{id: m.ID, bytes: limit}
	return true
}

// refused counts the attempts of a message that the sink will never accept; after the last it is set aside.
func (p *Pump) refused(ctx context.Context, item Item, m sink.Message, acked int, err error) result {
	if p.poison.id != m.ID {
		p.poison = poison{id: m.ID}
	}
	p.poison.attempts++
	if p.poison.attempts < p.o.Retry.Attempts {
		return result{acked: acked, err: err}
	}
	if err := p.setAside(ctx, item.Seq, m.Event, p.poison.attempts, err); err != nil {
		p.poison.attempts--
		return result{acked: acked, err: err}
	}
	p.poison = poison{}
	return result{acked: acked, more: true, setAside: true}
}

// send calls Send once and checks the sink's contract: its results must be consistent. Fewer messages than
// sent, without an error, come from a sink that was too slow for one call. stored are the ids of a *sink.PartialError.
func (p *Pump) send(ctx context.Context, ms []sink.Message) (acked int, stored []string, err error) {
	p.report(func(s *Status) { s.Attempts++ })
	sending, cancel := p.sending(ctx)
	defer cancel()
	acked, err = p.o.Sink.Send(sending, ms)
	switch stored = sink.Stored(err); {
	case acked < 0 || acked > len(ms):
		// Not wrapped: it is unknown which message the sink means, so none is the cause.
		return 0, nil, fmt.Errorf("sink acknowledged %d of %d messages (%s)", acked, len(ms), fmt.Sprint(err))
	case acked == len(ms):
		return acked, nil, nil
	case err == nil:
		return acked, nil, fmt.Errorf("sink acknowledged %d of %d messages without an error", acked, len(ms))
	case acked > 0 && sending.Err() != nil && ctx.Err() == nil:
		return acked, stored, nil
	}
	return acked, stored, err
}

// yieldEvery is how long a lagging pump reads before it yields the processor to others; each yield costs a
// system call or two.
const yieldEvery = 500 * time.Microsecond

// gather reads the next batch. Changes that cannot be read are set aside here once they are first.
func (p *Pump) gather(ctx context.Context) (batch, error) {
	b, yielded := batch{upTo: p.read}, time.Now()
	p.ahead.from(ctx, p.o.Store, p.read)
	for !b.full(p.most()) {
		item, ok, err := p.ahead.next()
		if err == nil && ok && item.Change == nil {
			err = item.Err
		}
		if err != nil && len(b.messages) > 0 { // send what was read before
			p.ahead.close()
			return b, nil
		}
		if err != nil {
			return b, fmt.Errorf("read journal: %w", err)
		}
		if !ok {
			break
		}
		if b.scanned++; time.Since(yielded) > yieldEvery {
			runtime.Gosched()
			yielded = time.Now()
		}
		if item, wanted := p.wants(item); wanted && !p.stored[item.Seq] {
			m, reason := p.message(item)
			switch {
			case reason == nil:
				p.trace.take(item.Seq, &m)
				b.messages = append(b.messages, m)
				b.items = append(b.items, Item{Seq: item.Seq})
				b.bytes += max(len(m.Body), item.Size)
			case len(b.messages) > 0: // handled once the cursor can move past it
				return b, nil
			default:
				if err := p.setAside(ctx, item.Seq, item.Event(), 0, reason); err != nil {
					return b, err
				}
			}
		}
		b.upTo = item.Seq
	}
	return b, nil
}

// message builds an item's message, or returns why it must be set aside at once.
func (p *Pump) message(item Item) (sink.Message, error) {
	if item.Err != nil {
		return sink.Message{}, item.Err
	}
	limit := p.o.MaxBytes
	if item.Event().ID == p.short.id && (limit == 0 || p.short.bytes < limit) {
		limit = p.short.bytes
	}
	m, err := p.o.message(item, limit)
	m.Again = item.Seq <= p.repeats
	return m, err
}

// setAside makes a dead letter of the first pending change and moves past it. The letter and the cursor are
// written together.
func (p *Pump) setAside(ctx context.Context, seq int64, e *event.Event, attempts int, reason error) error {
	d := DeadLetter{
		Sink: p.o.Name, Seq: seq, ID: e.ID, Subject: e.Subject,
		Reason: reason.Error(), Attempts: attempts, At: time.Now(),
	}
	cursor := seq
	if p.held.count > 0 && p.held.first.item.Seq != seq { // other changes come before it
		cursor = p.cursor
	}
	if err := p.o.Store.Skip(ctx, d, cursor); err != nil {
		return fmt.Errorf("set aside dead letter: %w", err)
	}
	p.committed, p.written = cursor, time.Now()
	p.trace.setAside(seq, &d, reason)
	p.move(seq)
	p.report(func(s *Status) { s.Dead++ })
	p.o.Log.Warn("change set aside as a dead letter", "sink", p.o.Name, "id", d.ID, "reason", d.Reason)
	return nil
}

// move advances to a sequence number, and the cursor with it unless the sink holds earlier messages; flush
// writes the cursor.
func (p *Pump) move(to int64) {
	p.read = to
	maps.DeleteFunc(p.stored, func(seq int64, _ bool) bool { return seq <= to })
	if p.held.count > 0 {
		return
	}
	p.cursor = to
	p.trace.moved(to)
	if to >= p.stuck.item.Seq {
		p.unstick()
	}
	if to >= p.held.until {
		p.held.most, p.held.until = 0, 0
	}
	p.report(func(s *Status) { s.Cursor = to })
}

// flush writes the cursor if something was sent, if it is due, or if now is set.
func (p *Pump) flush(ctx context.Context, now bool) error {
	if !p.prepared || p.cursor == p.committed {
		p.sent = false
		return nil
	}
	if !now && !p.sent && time.Since(p.written) < commitEvery {
		return nil
	}
	return p.commit(ctx, p.cursor)
}

func (p *Pump) commit(ctx context.Context, seq int64) error {
	if err := p.o.Store.SetCursor(ctx, p.o.Name, seq); err != nil {
		return fmt.Errorf("write cursor: %w", err)
	}
	p.committed, p.written, p.sent = seq, time.Now(), false
	return nil
}
