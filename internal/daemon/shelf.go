package daemon

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/tattler-dev/tattler/internal/deliver"
)

// shelves hold the changes that were just recorded, or that pumps have read recently, with their JSON, so that sinks at
// similar positions share the work. A sink that keeps up takes what was captured: nothing is read, decoded or diffed again.
// A lagging one reads the journal. The recorder and each pump fill their own shelf, and pumps take from all. When the
// limit is reached, the largest shelf shrinks: a lagging sink cannot push out the changes that others are about to read.
type shelves struct {
	limit int // bytes of all shelves

	mu    sync.Mutex
	all   []*shelf // that of the recorder is the first
	size  int
	items map[int64]*shared // by sequence number
}

func newShelves(limit int) *shelves {
	s := &shelves{limit: limit, items: map[int64]*shared{}}
	s.add()
	return s
}

// shared is a change that was recorded, was read or is being read.
type shared struct {
	done  chan struct{}                // closed once it is read; nil if it was recorded
	build func() (deliver.Item, error) // of a recorded one; called when it is first needed
	item  deliver.Item
	err   error
	size  int // approximate memory, in bytes
}

// get waits until the change is read.
func (s *shared) get(ctx context.Context) (deliver.Item, error) {
	if s.done == nil {
		return s.build()
	}
	select {
	case <-s.done:
		return s.item, s.err
	case <-ctx.Done():
		return deliver.Item{}, context.Cause(ctx)
	}
}

// shelf is the shelf of one pump, or of the recorder.
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

// recorded adds a change that was just recorded. size is about the memory of what build returns, or more.
func (s *shelves) recorded(seq int64, size int, build func() (deliver.Item, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items[seq] != nil { // a pump was faster
		return
	}
	is := &shared{build: sync.OnceValues(build), size: size + 1<<10}
	s.items[seq] = is
	s.put(s.all[0], seq, is)
}

// ready returns a change that a shelf has.
func (s *shelf) ready(ctx context.Context, seq int64) (deliver.Item, bool) {
	s.of.mu.Lock()
	is := s.of.items[seq]
	s.of.mu.Unlock()
	if is == nil {
		return deliver.Item{}, false
	}
	it, err := is.get(ctx)
	return it, err == nil
}

// item returns the change with a sequence number, reading it if no shelf has it.
func (s *shelf) item(ctx context.Context, seq int64, read func() (deliver.Item, error)) (deliver.Item, error) {
	is, mine := s.of.find(seq, len(s.of.all) > 2)
	switch {
	case is == nil: // a single pump shares nothing
		return read()
	case !mine:
		it, err := is.get(ctx)
		if err != nil && ctx.Err() == nil { // it may be due to the other's context
			return read()
		}
		return it, err
	}
	is.item, is.err = read()
	is.size = is.item.Size + 1<<10
	close(is.done)
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if is.err != nil {
		delete(s.of.items, seq)
	} else {
		s.of.put(s, seq, is)
	}
	return is.item, is.err
}

// find returns the change with a sequence number, and whether the caller must read it. It returns nil if no shelf has it and
// it is not to be shared.
func (s *shelves) find(seq int64, share bool) (is *shared, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if is := s.items[seq]; is != nil || !share {
		return is, false
	}
	is = &shared{done: make(chan struct{})}
	s.items[seq] = is
	return is, true
}

// put adds a change to a shelf; s.mu is held.
func (s *shelves) put(on *shelf, seq int64, is *shared) {
	on.order = append(on.order, seq)
	on.grow(is.size)
	for s.size > s.limit {
		slices.MaxFunc(s.all, func(a, b *shelf) int { return cmp.Compare(a.size, b.size) }).shed()
	}
}

// shed removes the oldest change.
func (s *shelf) shed() {
	seq := s.order[0]
	s.order = s.order[1:]
	s.grow(-s.of.items[seq].size)
	delete(s.of.items, seq)
}

func (s *shelf) grow(by int) {
	s.size += by
	s.of.size += by
}
