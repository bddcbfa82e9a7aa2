package daemon

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/tattler-dev/tattler/internal/deliver"
)

// Changes that were decoded and compared are kept on shelves, with their JSON, for other pumps. The largest shelf
// shrinks first, so a lagging sink does not evict what live sinks share.

// shelves hold the changes that pumps have read recently, so that sinks at similar positions share the work: a
// change is read, decoded and diffed once. Each pump fills its own shelf, and takes from all. When the limit is
// reached, the largest shelf shrinks: a lagging sink cannot push out the changes that others are about to read.
type shelves struct {
	limit int // bytes of all shelves

	mu    sync.Mutex
	all   []*shelf
	size  int
	items map[int64]*shared // by sequence number
}

func newShelves(limit int) *shelves {
	return &shelves{limit: limit, items: map[int64]*shared{}}
}

// shared is a change that was read or is being read.
type shared struct {
	done chan struct{} // closed once it is read
	item deliver.Item
	err  error
}

// bytes returns its approximate memory.
func (s *shared) bytes() int { return s.item.Size + 1<<10 }

// shelf is the shelf of one pump.
type shelf struct {
	of    *shelves
	order []int64 // in the order of reading
	size  int
}

// add adds another pump's shelf. Call it before any shelf is used.
func (s *shelves) add() *shelf {
	one := &shelf{of: s}
	s.all = append(s.all, one)
	return one
}

// item returns the change with a sequence number, reading it if no shelf has it.
func (s *shelf) item(ctx context.Context, seq int64, read func() (deliver.Item, error)) (deliver.Item, error) {
	if len(s.of.all) == 1 {
		return read()
	}
	is, mine := s.of.find(seq)
	if !mine {
		select {
		case <-is.done:
		case <-ctx.Done():
			return deliver.Item{}, context.Cause(ctx)
		}
		if is.err != nil { // it may be due to the other's context
			return read()
		}
		return is.item, nil
	}
	is.item, is.err = read()
	close(is.done)
	s.put(seq, is)
	return is.item, is.err
}

// find returns the change with a sequence number, and whether the caller must read it.
func (s *shelves) find(seq int64) (is *shared, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if is := s.items[seq]; is != nil {
		return is, false
	}
	is = &shared{done: make(chan struct{})}
	s.items[seq] = is
	return is, true
}

// put adds a change to the shelf.
func (s *shelf) put(seq int64, is *shared) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if is.err != nil {
		delete(s.of.items, seq)
		return
	}
	s.order = append(s.order, seq)
	s.grow(is.bytes())
	for s.of.size > s.of.limit {
		slices.MaxFunc(s.of.all, func(a, b *shelf) int { return cmp.Compare(a.size, b.size) }).shed()
	}
}

// shed removes the oldest change.
func (s *shelf) shed() {
	seq := s.order[0]
	s.order = s.order[1:]
	s.grow(-s.of.items[seq].bytes())
	delete(s.of.items, seq)
}

func (s *shelf) grow(by int) {
	s.size += by
	s.of.size += by
}
