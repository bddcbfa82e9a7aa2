package daemon

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/tattler-dev/tattler/internal/deliver"
)

const (
	// prefetchFrom is how many changes a sink has to lag for them to be read ahead: a live one only waits for the next.
	prefetchFrom = 64
	// prefetchItems and prefetchBytes bound what is read ahead of what the pump has taken.
	prefetchItems = 64
	prefetchBytes = 1 << 20
)

// prefetch reads in a goroutine of its own, ahead of who takes the items: a change is decoded while others are sent. The
// goroutine ends before the loop over them does.
func prefetch(ctx context.Context, read func(context.Context) iter.Seq2[deliver.Item, error]) iter.Seq2[deliver.Item, error] {
	return func(yield func(deliver.Item, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		q := queue{items: make(chan result, prefetchItems), taken: make(chan struct{}, 1)}
		go q.fill(ctx, read(ctx))
		defer func() {
			cancel()
			for range q.items { // until the goroutine has ended
			}
		}()
		for r := range q.items {
			q.take(r)
			if !yield(r.item, r.err) {
				return
			}
		}
	}
}

// result is one that was read.
type result struct {
	item deliver.Item
	err  error
}

func (r result) bytes() int64 { return int64(r.item.Size) + 1<<10 }

// queue holds what was read ahead.
type queue struct {
	items chan result
	bytes atomic.Int64
	taken chan struct{} // something was, since fill looked
}

func (q *queue) fill(ctx context.Context, all iter.Seq2[deliver.Item, error]) {
	defer close(q.items)
	for item, err := range all {
		r := result{item, err}
		q.bytes.Add(r.bytes())
		select {
		case q.items <- r:
		case <-ctx.Done():
			return
		}
		for q.bytes.Load() > prefetchBytes {
			select {
			case <-q.taken:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (q *queue) take(r result) {
	q.bytes.Add(-r.bytes())
	select {
	case q.taken <- struct{}{}:
	default:
	}
}
