package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// ErrClosed is returned by Next of a closed queue.
var ErrClosed = errors.New("store: queue closed")

// maxBatch is how many deltas are put together in one batch.
const maxBatch = 256

// Queue holds what one consumer has yet to see of one or several stores. Below its budget it keeps
// every batch; above it, it folds them into the difference between what the consumer knows and what
// is now, until the consumer has caught up.
type Queue struct {
	budget int64
	wake   chan struct{} // holds a token while there may be something to take
	done   chan struct{}

	mu      sync.Mutex
	closed  bool
	batches []Batch // in order; empty while folding
	bytes   int64   // of batches
	folding bool
	folds   []fold // by stream
	turn    int    // the stream whose fold is taken next
}

// NewQueue returns a queue for the stores 0 to streams-1. Budget is in bytes.
func NewQueue(streams int, budget int64) *Queue {
	return &Queue{
		budget: budget,
		wake:   make(chan struct{}, 1),
		done:   make(chan struct{}),
		folds:  make([]fold, streams),
	}
}

// Next waits for the next batch. It serves one goroutine.
func (q *Queue) Next(ctx context.Context) (Batch, error) {
	for {
		if b, ok, err := q.take(); ok || err != nil {
			return b, err
		}
		select {
		case <-q.wake:
		case <-q.done:
		case <-ctx.Done():
			return Batch{}, ctx.Err()
		}
	}
}

// Close ends the queue and drops what it holds.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	q.batches, q.folds, q.bytes = nil, nil, 0
	close(q.done)
}

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// push adds a batch. The writer calls it, so it must be quick and must not wait.
func (q *Queue) push(b Batch, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	defer q.signal()
	size := int64(perDelta)
	for i := range b.Deltas {
		size += b.Deltas[i].size()
	}
	if !q.folding && q.bytes+size > q.budget {
		q.startFolding(at)
	}
	if q.folding {
		q.folds[b.Stream].add(&b, at)
		return
	}
	if n := len(q.batches); n > 0 && q.batches[n-1].extend(&b) {
		q.bytes += size
		return
	}
	b.Deltas = b.Deltas[:len(b.Deltas):len(b.Deltas)] // other queues have the same array
	q.batches = append(q.batches, b)
	q.bytes += size
}

// extend adds what follows to a batch that nobody took yet, where no reader could tell.
func (b *Batch) extend(next *Batch) bool {
	if b.Stream != next.Stream || b.Epoch != next.Epoch || b.Phase != Live || next.Phase != Live ||
		next.Gap != nil || len(b.Deltas)+len(next.Deltas) > maxBatch {
		return false
	}
	b.Version = next.Version
	b.Deltas = append(b.Deltas, next.Deltas...)
	return true
}

// startFolding moves everything that is queued into the folds.
func (q *Queue) startFolding(at time.Time) {
	q.folding = true
	for i := range q.batches {
		b := &q.batches[i]
		q.folds[b.Stream].add(b, at)
	}
	q.batches, q.bytes = nil, 0
}

// start queues the state of a store that the consumer knows nothing of yet.
func (q *Queue) start(stream int, h head, entries map[Key]*entry, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	defer q.signal()
	if !q.folding {
		q.startFolding(at)
	}
	f := &q.folds[stream]
	b := Batch{Stream: stream, Epoch: h.epoch, Phase: h.phase, Version: h.version}
	if h.phase != Live {
		b.Version = ""
	}
	f.add(&b, at)
	for _, k := range slices.SortedFunc(maps.Keys(entries), compareKeys) { // as a list is sorted
		e := entries[k]
		f.fold(&Delta{Op: Added, Key: k, UID: e.uid, New: e.Version, Initial: true, At: at})
	}
}

// take removes the next batch, if there is one.
func (q *Queue) take() (Batch, bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return Batch{}, false, ErrClosed
	}
	if q.folding {
		return q.takeFolded()
	}
	if len(q.batches) == 0 {
		return Batch{}, false, nil
	}
	b := q.batches[0]
	q.batches[0] = Batch{}
	q.batches = q.batches[1:]
	q.bytes -= perDelta
	for i := range b.Deltas {
		q.bytes -= b.Deltas[i].size()
	}
	if len(q.batches) == 0 {
		q.batches, q.bytes = nil, 0
	}
	q.folds[b.Stream].saw(&b)
	return b, true, nil
}

// takeFolded takes from the folds in turn. Once all are empty, every version is queued again.
func (q *Queue) takeFolded() (Batch, bool, error) {
	for range q.folds {
		i := q.turn
		q.turn = (q.turn + 1) % len(q.folds)
		f := &q.folds[i]
		if !f.pending {
			continue
		}
		b := f.take(i)
		f.saw(&b)
		return b, true, nil
	}
	q.folding = false
	return Batch{}, false, nil
}
