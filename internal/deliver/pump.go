// Package deliver brings what the journal holds to the sinks: at least once, in order per object.
//
// A Pump serves one sink: it reads its store from the sink's cursor, filters, shapes, sends, and moves
// the cursor after the acknowledgement. A crash between the two sends again what was not committed,
// under the same ids. One sink's trouble is its own: pumps share nothing but the store.
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
//	Ordering         By sequence number, so in order per object; of what a crash, an error or Rewind has
//	                 sent again, too. Replayed dead letters come when they are replayed.
//	What may be      Nothing but what the filter leaves out, snapshots that nobody asked for, quiet changes,
//	skipped          and what has become a dead letter, by the sink's refusal, an order to skip it, or
//	                 Retry.GiveUp.
//	Later            What a sink.Holder has taken in and not told is done with when it is told: the cursor stays
//	                 before it. A crash, Rewind, Pause, a replay or the end has it sent again, later.
//	Slow consumers   Hold back their own pump, which holds one batch in memory; the rest waits in the store.
//	Ownership        The pump closes its sink when Run ends.
//	After close      A pump runs once. Status, Pause and Resume work before and after; what sends does not.
type Pump struct {
	o Options

	ending context.Context // ends when Run is about to close the sink
	end    func()

	// turn holds a token while its owner reads, sends and commits. It guards the fields below.
	turn      chan struct{}
	prepared  bool
	closed    bool
	read      int64     // all up to it was looked at: what is wanted of it is done, or held by the sink
	ahead     ahead     // what follows
	held      hold      // what the sink tells later
	cursor    int64     // all up to it is done
	committed int64     // what the store has of that
	written   time.Time // when it got that
	repeats   int64     // all up to it is sent again because somebody asked for it
	sent      bool      // something was, since the last commit
	poison    poison
	short     short
	stuck     stuck
	alone     bool // the next batch is of one message: of the last one none was taken
	filterLog filterLog

	mu     sync.Mutex // guards the fields below
	paused bool
	woken  bool   // the state changed since the last nap
	rouse  func() // ends the nap that is being taken; nil if none is
	abort  func() // ends the call of the sink that is under way; nil if none is
	status Status
}

// poison is the message that the sink refuses for good, and how often it did.
type poison struct {
	id       string
	attempts int
}

// short is the message that was too long for the sink, and how long it may be.
type short struct {
	id    string
	bytes int
}

// closeTime bounds the closing of a sink.
const closeTime = 5 * time.Second

// New makes a pump; it touches neither sink nor store.
func New(o Options) (*Pump, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("prepare sink %s: %w", o.Name, err)
	}
	p := &Pump{o: o.withDefaults(), turn: make(chan struct{}, 1), paused: o.Paused}
	p.held.sink, _ = o.Sink.(sink.Holder)
	p.ending, p.end = context.WithCancel(context.Background())
	p.status = Status{Name: o.Name, Sink: o.Sink.String()}
	return p, nil
}

// Prepare settles where the sink starts, and has the store keep it. Who records into the store calls it
// first, so that a new sink that starts now misses nothing; else Run does.
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

// Run delivers until ctx ends. Then it goes on, for a bounded time, with what the store holds by then,
// unless the sink is paused or fails; closes the sink; and returns nil, or why the sink did not close.
// Whatever fails before is tried again, and is in Status.
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

// outlive is a context that ends as long after ctx as a drain may last.
func (p *Pump) outlive(ctx context.Context) (context.Context, func()) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(p.o.Drain, cancel)
		context.AfterFunc(work, func() { t.Stop() })
	})
	return work, func() { stop(); cancel() }
}

// follow delivers until ctx ends. It returns how often in a row it has failed by then.
func (p *Pump) follow(ctx, work context.Context) (failures int) {
	blind := false // the store could not be waited for: that the sink works does not end this failure
	for ctx.Err() == nil {
		if p.isPaused() {
			p.rest(ctx)
			continue
		}
		r := p.once(work)
		if r.err != nil && work.Err() != nil {
			return failures + 1 // cut off by the end, which is no failure of the sink's
		}
		if r.err == nil && !r.more {
			if !blind {
				p.settled(&failures)
			}
			r.err = p.await(ctx)
			blind = r.err != nil
		}
		if r.buried { // which was logged, and is no recovery
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

// rest is what a paused pump does, until something is asked of it. What the sink holds is told later: it is
// sent again then.
func (p *Pump) rest(ctx context.Context) {
	if p.take(ctx) != nil {
		return
	}
	p.drop()
	p.pass()
	p.report(func(s *Status) { s.State = Paused })
	p.nap(ctx, 0)
}

// await returns when there may be something to deliver, or to do.
func (p *Pump) await(ctx context.Context) error {
	if p.take(ctx) != nil {
		return nil //nolint:nilerr // the end is no failure
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

// nap waits until something is asked of the pump, ctx ends, or the time (if it is not 0) is up.
func (p *Pump) nap(ctx context.Context, d time.Duration) {
	_ = p.until(ctx, d, func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
}

// until is a nap that ends as well when what else there is to wait for, whose error it returns, has come.
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

// wake ends the nap that is being taken, or else the next one.
func (p *Pump) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.woken = true
	if p.rouse != nil {
		p.rouse()
	}
}

// drain delivers what the store holds now. The first error ends it: the cursor remembers. So does what a sink
// holds to send later.
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

// Pause stops delivering after the batch that is on its way. The daemon keeps it over a restart.
func (p *Pump) Pause() { p.setPaused(true) }

// Resume delivers again. It also ends the wait after an error.
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

// ErrStopped is returned by what would send after Run has ended.
var ErrStopped = errors.New("the sink is stopped")

func (p *Pump) take(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *Pump) pass() { <-p.turn }
