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

// maxBatch is the largest number of deltas combined in one batch.
const maxBatch = 256

// QueueOptions tune a Queue. The zero value keeps every version, with a budget of 0.
type QueueOptions struct {
	// Latest delivers the difference between what the consumer knows and the current state, whenever it takes a
	// batch: versions replaced meanwhile are skipped, without a Gap.
	Latest bool
	// SkipInitial treats the initial state as known to the consumer: later changes are deltas against it.
	SkipInitial bool
	// SkipLoaded does the same only for a state that is loaded while the queue exists.
	SkipLoaded bool
	// AwaitSynced withholds a loaded state until it has caught up. The consumer then starts with the current state.
	AwaitSynced bool
	// Strict ends the queue with ErrBehind, after its contents, instead of folding when the budget is exceeded. A
	// single batch is queued whatever its size.
	Strict bool
	// Budget is, without Latest, the limit of queued versions in bytes. Beyond it, the queue works as with Latest,
	// after a Gap, until the consumer has caught up.
	Budget int64
}

// Queue holds the changes of one or several stores that one consumer has yet to take.
type Queue struct {
	opts QueueOptions
	max  int           // deltas per batch; a recreated object's second one may exceed it
	wake chan struct{} // gets a token when there is something to take

	mu       sync.Mutex
	waiting  bool // the consumer waits
	closed   bool
	behind   bool     // it ends because of Strict
	ending   bool     // it accepts nothing further
	batches  []queued // empty while folding
	bytes    int64    // of batches
	deltas   int      // in batches
	folding  bool     // always, with Latest
	folds    []fold   // by stream; delivered before the batches
	nextFold int      // the stream whose fold is taken next
	page     page     // holds the deltas of the consumer's current batch
}

// queued is a batch that was not taken yet.
type queued struct {
	Batch
	at   time.Time // of its first change
	size int64
}

// Lag is how far a consumer is behind.
type Lag struct {
	// Objects is the number of objects that differ from what the consumer knows or, if every version is queued, the
	// number of versions.
	Objects int
	// Bytes estimates the memory that only the queue keeps: replaced versions and its own records.
	Bytes int64
	// Oldest is the time of the first change that was not taken; zero if all were.
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

// Next waits for the next batch. Its deltas may only be read, until the next call. Only one goroutine may call it. It
// returns ErrClosed, ErrBehind or ctx's error.
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

// Close ends the queue and drops its contents.
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

// Finish ends the queue once its contents are taken. Later changes are not queued.
func (q *Queue) Finish() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ending = true
	q.signal()
}

// Lag returns how far the consumer is behind.
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
	default: // left from a wait that the consumer gave up
	}
}

// push adds a batch that is shared with other queues. The writer calls it, so it must be quick and must not wait.
func (q *Queue) push(b *Batch, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.ending {
		return
	}
	if q.opts.SkipInitial && b.firstList {
		if b.Gap == nil && b.Phase == Listing {
			return // nothing to deliver before the list's end
		}
		rest := *b
		rest.Deltas = nil
		b = &rest
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
	mine.Deltas = slices.Clip(b.Deltas) // other queues share the array
	q.batches = append(q.batches, queued{mine, at, size})
}

// size returns the batch's memory while it is queued, in bytes.
func (b *Batch) size() int64 {
	size := int64(perDelta)
	for i := range b.Deltas {
		size += b.Deltas[i].size()
	}
	return size
}

// extend appends the next batch to one that was not taken yet, if readers cannot notice.
func (b *Batch) extend(next *Batch, limit int) bool {
	if b.Stream != next.Stream || b.Epoch != next.Epoch || b.Phase == Listing || b.Phase != next.Phase ||
		next.Gap != nil || len(b.Deltas)+len(next.Deltas) > limit {
		return false
	}
	b.Version, b.Served, b.Current = next.Version, next.Served, next.Current
	b.Deltas = append(b.Deltas, next.Deltas...)
	return true
}

// startFolding moves everything queued into the folds.
func (q *Queue) startFolding() {
	q.folding = true
	for i := range q.batches {
		b := &q.batches[i]
		q.folds[b.Stream].add(&b.Batch, b.at)
	}
	q.batches, q.bytes, q.deltas = nil, 0, 0
}

// start queues a store's current state for a new consumer. The caller holds the store's commitMu, so this must be
// quick.
func (q *Queue) start(s *Store, at time.Time, loaded bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.ending {
		return
	}
	defer q.signal()
	b := s.batch()
	f := &q.folds[s.id]
	if !q.opts.SkipInitial && !(loaded && q.opts.SkipLoaded) && s.table.objects > 0 {
		f.initial = newInitial(&s.table, at)
	}
	f.add(&b, at)
}

// take removes the next batch, if any.
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
		if q.closed { // closed while it sorted
			continue
		}
		if !q.ending {
			q.waiting = true
			return Batch{}, false, nil
		}
		q.close()
	}
}

// next removes the next batch: from the folds in rotation, then from the queued batches, which are later. Once the
// folds are empty, every version is queued again.
func (q *Queue) next() (Batch, bool) {
	for range q.folds {
		i := q.nextFold
		q.nextFold = (q.nextFold + 1) % len(q.folds)
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
		f.delivered(&b)
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
		q.batches = nil // release the array
	}
	q.folds[b.Stream].delivered(&b)
	return b, true
}
