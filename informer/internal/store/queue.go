package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// ErrClosed is returned by Next of a closed queue.
var ErrClosed = errors.New("store: queue closed")

// ErrBehind is returned by Next of a Strict queue that exceeded its budget.
var ErrBehind = errors.New("store: queue exceeded its budget")

// maxBatch is how many deltas are put together in one batch.
const maxBatch = 256

// QueueOptions tune a Queue. The zero value keeps every version, without room for any.
type QueueOptions struct {
	// Latest hands on the difference between what the consumer knows and what is, whenever it takes:
	// versions that were replaced meanwhile are skipped, without a Gap.
	Latest bool
	// SkipInitial starts the consumer with the initial state as if it knew that: later changes are
	// told against it.
	SkipInitial bool
	// SkipLoaded does the same for a state that is loaded while the queue is there, and for no other.
	SkipLoaded bool
	// AwaitSynced keeps a state that was loaded from the consumer until it has caught up: the consumer
	// starts with what it is then.
	AwaitSynced bool
	// Strict ends the queue with ErrBehind where it would fold because of its budget, behind what it
	// holds. One batch is held whatever its size.
	Strict bool
	// Budget is, without Latest, how many bytes of versions may be queued; beyond, the queue does as
	// Latest does, behind a Gap, until the consumer has caught up.
	Budget int64
}

// Queue holds what one consumer has yet to see of one or several stores.
type Queue struct {
	opts QueueOptions
	max  int           // deltas in a batch; a recreated object's second one may be on top
	wake chan struct{} // gets a token when there is something to take again

	mu      sync.Mutex
	waiting bool // the consumer found nothing to take
	closed  bool
	behind  bool     // why it ends: see Strict
	ending  bool     // nothing more is taken in
	batches []queued // empty while folding
	bytes   int64    // of batches
	deltas  int      // in batches
	folding bool     // always, with Latest
	folds   []fold   // by stream: what comes before the batches
	turn    int      // the stream whose fold is taken next
	page    page     // has the deltas of the batch that the consumer has
}

// queued is a batch that nobody took yet.
type queued struct {
	Batch
	at   time.Time // of its first change
	size int64
}

// Lag is how far a consumer is behind.
type Lag struct {
	// Objects is how many objects differ from what the consumer knows; where every version is
	// queued, how many versions.
	Objects int
	// Bytes is about what the queue keeps in memory that nobody else needs: versions that were
	// replaced, and its own records.
	Bytes int64
	// Oldest is when the first change happened that was not taken; zero where there is none.
	Oldest time.Time
}

// NewQueue returns a queue for the stores 0 to streams-1.
func NewQueue(streams int, o QueueOptions) *Queue {
	q := &Queue{
		opts:    o,
		max:     maxBatch,
		wake:    make(chan struct{}, 1),
		folding: o.Latest,
		folds:   make([]fold, streams),
	}
	for i := range q.folds {
		q.folds[i].silent = o.Latest
	}
	return q
}

// Next waits for the next batch, whose deltas may be read, and no more, until the next call. It
// serves one goroutine. Its errors are ErrClosed, ErrBehind and those of ctx.
func (q *Queue) Next(ctx context.Context) (Batch, error) {
	for {
		if b, ok, err := q.take(); ok || err != nil {
			return b, err
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return Batch{}, ctx.Err()
		}
	}
}

// Close ends the queue and drops what it holds.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.close()
}

func (q *Queue) close() {
	if q.closed {
		return
	}
	q.closed = true
	q.batches, q.folds, q.bytes, q.deltas = nil, nil, 0, 0
	q.signal()
}

// Finish ends the queue once what it holds is taken; what happens from now on is not told.
func (q *Queue) Finish() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ending = true
	q.signal()
}

// Lag tells how far the consumer is behind.
func (q *Queue) Lag() Lag {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := Lag{Objects: q.deltas, Bytes: q.bytes}
	if i := slices.IndexFunc(q.batches, func(b queued) bool { return len(b.Deltas) > 0 }); i >= 0 {
		l.Oldest = q.batches[i].at
	}
	for i := range q.folds {
		q.folds[i].lag(&l)
	}
	return l
}

// signal wakes the consumer if it waits. The caller holds mu.
func (q *Queue) signal() {
	if !q.waiting {
		return
	}
	q.waiting = false
	select {
	case q.wake <- struct{}{}:
	default: // from a time when the consumer gave up waiting
	}
}

// push adds a batch, which it shares with other queues. The writer calls it, so it must be quick and
// must not wait.
func (q *Queue) push(b *Batch, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.ending {
		return
	}
	if q.opts.SkipInitial && b.forming {
		if b.Gap == nil && b.Phase == Listing {
			return // there is nothing to tell before the list's end
		}
		told := *b
		told.Deltas = nil
		b = &told
	}
	defer q.signal()
	if q.folding {
		q.folds[b.Stream].add(b, at)
		return
	}
	size := b.size()
	switch over := q.bytes+size > q.opts.Budget; {
	case over && !q.opts.Strict:
		q.startFolding()
		q.folds[b.Stream].add(b, at)
		return
	case over && len(q.batches) > 0:
		q.behind, q.ending = true, true
		return
	}
	q.bytes += size
	q.deltas += len(b.Deltas)
	if n := len(q.batches); n > 0 && q.batches[n-1].extend(b, q.max) {
		q.batches[n-1].size += size
		return
	}
	mine := *b
	mine.Deltas = slices.Clip(b.Deltas) // other queues have the same array
	q.batches = append(q.batches, queued{mine, at, size})
}

// size is what the batch costs while it is queued, in bytes.
func (b *Batch) size() int64 {
	size := int64(perDelta)
	for i := range b.Deltas {
		size += b.Deltas[i].size()
	}
	return size
}

// extend adds what follows to a batch that nobody took yet, where no reader could tell.
func (b *Batch) extend(next *Batch, limit int) bool {
	if b.Stream != next.Stream || b.Epoch != next.Epoch || b.Phase == Listing || b.Phase != next.Phase ||
		next.Gap != nil || len(b.Deltas)+len(next.Deltas) > limit {
		return false
	}
	b.Version, b.Served = next.Version, next.Served
	b.Deltas = append(b.Deltas, next.Deltas...)
	return true
}

// startFolding moves everything that is queued into the folds.
func (q *Queue) startFolding() {
	q.folding = true
	for i := range q.batches {
		b := &q.batches[i]
		q.folds[b.Stream].add(&b.Batch, b.at)
	}
	q.batches, q.bytes, q.deltas = nil, 0, 0
}

// start queues the state of a store that the consumer knows nothing of yet. The caller holds the
// store's turn, so this must be quick.
func (q *Queue) start(s *Store, at time.Time, loaded bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.ending {
		return
	}
	defer q.signal()
	b := Batch{Stream: s.id, Epoch: s.head.epoch, Phase: s.head.phase, Version: s.resumable(), Served: s.head.served}
	f := &q.folds[s.id]
	if !q.opts.SkipInitial && !(loaded && q.opts.SkipLoaded) && s.table.objects > 0 {
		f.initial = newInitial(&s.table, at)
	}
	f.add(&b, at)
}

// take removes the next batch, if there is one.
func (q *Queue) take() (Batch, bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.page.clear()
	for {
		switch {
		case q.closed && q.behind:
			return Batch{}, false, ErrBehind
		case q.closed:
			return Batch{}, false, ErrClosed
		}
		b, ok := q.next()
		if ok {
			return b, true, nil
		}
		if q.closed { // while it sorted
			continue
		}
		if !q.ending {
			q.waiting = true
			return Batch{}, false, nil
		}
		q.close()
	}
}

// next removes the next batch: of what is folded, in turn, then of what is queued, since that came
// later. Once the folds are empty, every version is queued again.
func (q *Queue) next() (Batch, bool) {
	for range q.folds {
		i := q.turn
		q.turn = (q.turn + 1) % len(q.folds)
		f := &q.folds[i]
		if !f.pending {
			continue
		}
		if f.initial != nil {
			f.initial.sort(q.max, &q.mu)
			if q.closed {
				return Batch{}, false
			}
		}
		b := f.take(i, q.max, &q.page)
		f.saw(&b)
		return b, true
	}
	q.folding = q.opts.Latest
	return q.nextQueued()
}

func (q *Queue) nextQueued() (Batch, bool) {
	if len(q.batches) == 0 {
		return Batch{}, false
	}
	b, size := q.batches[0].Batch, q.batches[0].size
	q.batches[0] = queued{}
	q.batches = q.batches[1:]
	q.bytes -= size
	q.deltas -= len(b.Deltas)
	if len(q.batches) == 0 {
		q.batches = nil // its array
	}
	q.folds[b.Stream].saw(&b)
	return b, true
}
