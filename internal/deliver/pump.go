// Package deliver delivers the journal's changes to sinks, at least once and in order per object.
//
// A Pump serves one sink: it reads its store from the sink's cursor, filters, shapes, sends, and moves the
// cursor after the acknowledgement. After a crash between the two, uncommitted changes are sent again under the
// same ids. Sinks cannot affect each other: their pumps share only the store.
package deliver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Pump delivers to one sink.
//
//	Repeats          After an error, only what the sink has not acknowledged is sent again; after a crash also
//	                 what was acknowledged after the cursor.
//	Ordering         By sequence number, so in order per object; also for changes repeated after a crash, an
//	                 error or Rewind. Replayed dead letters arrive when they are replayed.
//	What may be      Nothing, except changes that the filter excludes, snapshots that were not requested,
//	skipped          quiet changes, and dead letters: changes refused by the sink, skipped by an order,
//	                 or set aside by Retry.GiveUp.
//	Later            Messages that a sink.Holder holds are done when it delivers them: the cursor stays before
//	                 them. After a crash, Rewind, Pause, a replay or the end they are sent again.
//	Slow consumers   Block only their own pump, which holds one batch in memory; the rest stays in the store.
//	Ownership        The pump closes its sink when Run ends.
//	After close      A pump runs once. Status, Pause and Resume work before and after; sending does not.
type Pump struct {
	o Options

	ending context.Context // ends when Run is about to close the sink
	end    func()

	// sendSem holds a token while its owner reads, sends and commits. It guards the fields below.
	sendSem   chan struct{}
	prepared  bool
	closed    bool
	read      int64     // everything up to it was read: wanted items are done, or held by the sink
	ahead     ahead     // the items after read
	held      hold      // messages that the sink delivers later
	cursor    int64     // everything up to it is done
	committed int64     // the cursor in the store
	written   time.Time // when it was stored
	repeats   int64     // everything up to it is sent again because a user requested it
	sent      bool      // since the last commit
	poison    poison
	short     short
	stuck     stuck
	stored    map[int64]bool // by sequence number: those after read that the sink has acknowledged
	alone     bool           // the next batch has one message, because none of the last one was accepted
	filterLog filterLog
	trace     trace

	mu     sync.Mutex // guards the fields below
	paused bool
	woken  bool   // the state changed since the last nap
	rouse  func() // ends the current nap, or nil
	abort  func() // ends the sink's current call, or nil
	status Status
}

// poison is the message that the sink refuses permanently, and how often it did.
type poison struct {
	id       string
	attempts int
}

// short is the message that was too long for the sink, and its permitted length.
type short struct {
	id    string
	bytes int
}

// closeTime bounds the closing of a sink.
const closeTime = 5 * time.Second

// New returns a pump; it does not use sink or store yet.
func New(o Options) (*Pump, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("prepare sink %s: %w", o.Name, err)
	}
	p := &Pump{o: o.withDefaults(), sendSem: make(chan struct{}, 1), paused: o.Paused}
	p.trace.o = &p.o
	p.held.sink, _ = o.Sink.(sink.Holder)
	p.ending, p.end = context.WithCancel(context.Background())
	p.status = Status{Name: o.Name, Sink: o.Sink.String()}
	return p, nil
}

// Prepare decides where the sink starts, and stores that. The recorder calls it first, so that a new sink that
// starts now misses nothing; otherwise Run does.
func (p *Pump) Prepare(ctx context.Context) error {
	if err := p.take(ctx); err != nil {
		return err
	}
	defer p.pass()
	return p.prepare(ctx)
}

func (p *Pump) prepare(ctx context.Context) error {
	if p.prepared {
		return nil
	}
	seq, ok, err := p.o.Store.Cursor(ctx, p.o.Name)
	if err != nil {
		return fmt.Errorf("read cursor: %w", err)
	}
	if p.repeats, err = p.o.Store.Repeats(ctx, p.o.Name); err != nil {
		return fmt.Errorf("read repeats: %w", err)
	}
	if !ok {
		if p.o.From == Now {
			if seq, err = p.o.Store.Last(ctx); err != nil {
				return fmt.Errorf("read the journal's end: %w", err)
			}
		}
		if err := p.commit(ctx, seq); err != nil {
			return err
		}
	}
	p.move(seq)
	p.committed, p.written, p.prepared = seq, time.Now(), true
	return nil
}

// Run delivers until ctx ends. Then it continues for a bounded time with what the store holds by then, unless
// the sink is paused or fails, and closes the sink. It returns nil, or why the sink did not close. All earlier
// failures are retried, and are in Status.
func (p *Pump) Run(ctx context.Context) error {
	work, stop := p.outlive(ctx)
	defer stop()
	failures := p.follow(ctx, work)
	if failures == 0 && !p.isPaused() {
		p.drain(work)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	p.end()
	if err := p.take(closing); err != nil { // a replay that does not end
		return err
	}
	defer p.pass()
	p.drop()
	p.closed = true
	p.report(func(s *Status) { s.State = Stopped })
	if err := p.o.Sink.Close(closing); err != nil {
		return fmt.Errorf("close sink %s: %w", p.o.Name, err)
	}
	return nil
}

// outlive returns a context that ends when a drain after ctx must end.
func (p *Pump) outlive(ctx context.Context) (context.Context, func()) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(p.o.Drain, cancel)
		context.AfterFunc(work, func() { t.Stop() })
	})
	return work, func() { stop(); cancel() }
}

// follow delivers until ctx ends. It returns the number of consecutive failures by then.
func (p *Pump) follow(ctx, work context.Context) (failures int) {
	blind := false // waiting for the store failed; that the sink works does not end this failure
	for ctx.Err() == nil {
		if p.isPaused() {
			p.rest(ctx)
			continue
		}
		r := p.once(work)
		if r.err != nil && work.Err() != nil {
			return failures + 1 // cut off by the end, which is not the sink's failure
		}
		if r.err == nil && !r.more {
			if !blind {
				p.settled(&failures)
			}
			r.err = p.await(ctx)
			blind = r.err != nil
		}
		if r.setAside { // logged already, and not a recovery
			failures = 0
		}
		if r.err == nil {
			p.settled(&failures)
			continue
		}
		if r.acked > 0 {
			failures = 0
		}
		failures++
		wait := p.o.Retry.backoff(failures, r.err)
		p.failed(r.err, failures, wait)
		p.nap(ctx, wait)
	}
	return failures
}

// rest waits while the pump is paused, until it is woken. It drops held messages; they are sent again later.
func (p *Pump) rest(ctx context.Context) {
	if p.take(ctx) != nil {
		return
	}
	p.drop()
	p.pass()
	p.report(func(s *Status) { s.State = Paused })
	p.nap(ctx, 0)
}

// await returns when there may be something to deliver or to do.
func (p *Pump) await(ctx context.Context) error {
	if p.take(ctx) != nil {
		return nil //nolint:nilerr // the end is not a failure
	}
	read, uncommitted := p.read, p.cursor != p.committed
	due, held := p.due()
	p.pass()
	longest := time.Duration(0)
	if uncommitted {
		longest = commitEvery
	}
	if held {
		left := max(time.Until(due), 1)
		if longest == 0 || left < longest {
			longest = left
		}
	}
	return p.until(ctx, longest, func(ctx context.Context) error { return p.o.Store.Wait(ctx, read) })
}

// nap waits until the pump is woken, ctx ends, or d (if not 0) has passed.
func (p *Pump) nap(ctx context.Context, d time.Duration) {
	_ = p.until(ctx, d, func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
}

// until is a nap that also ends when wait returns; it returns wait's error.
func (p *Pump) until(ctx context.Context, d time.Duration, wait func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if d > 0 {
		defer time.AfterFunc(d, cancel).Stop()
	}
	p.mu.Lock()
	if p.woken {
		cancel()
	}
	p.woken, p.rouse = false, cancel
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.rouse = nil
		p.mu.Unlock()
	}()
	if err := wait(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("wait for changes: %w", err)
	}
	return nil
}

// wake ends the current nap, or else the next one.
func (p *Pump) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.woken = true
	if p.rouse != nil {
		p.rouse()
	}
}

// drain delivers what the store holds now. It ends at the first error: the cursor is kept. It also ends when a
// sink holds messages for later.
func (p *Pump) drain(work context.Context) {
	last, err := p.o.Store.Last(work)
	for err == nil && work.Err() == nil {
		r := p.once(work)
		err = r.err
		if !r.more || r.held || r.read >= last {
			break
		}
	}
	if err == nil && p.take(work) == nil {
		p.drop()
		err = p.flush(work, true)
		p.pass()
	}
	if err != nil {
		p.failed(err, 1, 0)
	}
}

// Pause stops delivering after the current batch. The daemon preserves it across restarts.
func (p *Pump) Pause() { p.setPaused(true) }

// Resume continues delivering. It also ends the wait after an error.
func (p *Pump) Resume() { p.setPaused(false) }

func (p *Pump) setPaused(paused bool) {
	p.mu.Lock()
	p.paused = paused
	p.mu.Unlock()
	p.wake()
}

func (p *Pump) isPaused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paused
}

// ErrStopped is returned by methods that would send after Run has ended.
var ErrStopped = errors.New("the sink is stopped")

func (p *Pump) take(ctx context.Context) error {
	select {
	case p.sendSem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *Pump) pass() { <-p.sendSem }
