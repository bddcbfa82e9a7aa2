package daemon

import (
	"context"
	"sync"

	"github.com/tattler-dev/tattler/internal/deliver"
)

// shelves hold the changes that pumps have read last, so that sinks which follow each other closely share the work: a
// change is read, decoded and compared once. Each pump fills a shelf of its own, and takes from all: one that lags
// pushes out nothing that others are about to read.
type shelves struct {
	limit int // bytes of each; 0 shares nothing

	mu    sync.Mutex
	items map[int64]*shared // by sequence number
}

// shared is a change that was read, or is being read.
type shared struct {
	done chan struct{} // closed once it was
	item deliver.Item
	err  error
}

// shelf is that of one pump.
type shelf struct {
	all   *shelves
	order []int64 // what it holds, as it was read
	size  int
}

// itemBytes is what an item takes beside its objects.
const itemBytes = 1 << 10

func (s *shelves) add() *shelf { return &shelf{all: s} }

// item returns the change with a sequence number, which is read if no shelf has it.
func (s *shelf) item(ctx context.Context, seq int64, read func() (deliver.Item, error)) (deliver.Item, error) {
	if s.all.limit == 0 {
		return read()
	}
	s.all.mu.Lock()
	if is := s.all.items[seq]; is != nil {
		s.all.mu.Unlock()
		select {
		case <-is.done:
		case <-ctx.Done():
			return deliver.Item{}, context.Cause(ctx)
		}
		if is.err != nil { // that of another context, or passing
			return read()
		}
		return is.item, nil
	}
	is := &shared{done: make(chan struct{})}
	s.all.items[seq] = is
	s.all.mu.Unlock()
	is.item, is.err = read()
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	close(is.done)
	if is.err != nil {
		delete(s.all.items, seq)
		return is.item, is.err
	}
	s.order = append(s.order, seq)
	s.size += is.item.Size + itemBytes
	for s.size > s.all.limit {
		s.size -= s.all.items[s.order[0]].item.Size + itemBytes
		delete(s.all.items, s.order[0])
		s.order = s.order[1:]
	}
	return is.item, nil
}
