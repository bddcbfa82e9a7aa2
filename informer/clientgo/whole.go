package clientgo

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// often is how many times a program reads everything, in objects read, within a while, before all
	// is kept decoded for it.
	often = 2
	// while is how long it stays so without such a read.
	while = 10 * time.Minute
)

// room is what all informers of an engine may keep decoded because it is read whole and often.
type room struct {
	budget int64
	used   atomic.Int64
}

// scans tells how often a table is read whole. Nil is one where that does not matter.
type scans struct {
	room *room

	mu     sync.Mutex
	since  time.Time // when it began to count
	read   int       // objects
	latest time.Time // when they were read last

	taken atomic.Int64 // of the room; nothing is taken while the table is packed
}

// scanned notes that a program has read so many objects of the table at once, and tells whether it
// does that so often that all should be kept decoded.
func (t *table) scanned(n int) bool {
	if t.scans == nil || n == 0 {
		return false
	}
	t.mu.RLock()
	objects, live := len(t.list), t.live != nil
	t.mu.RUnlock()
	s := t.scans
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.since) > while {
		s.since, s.read = now, 0
	}
	s.read += n
	if s.read >= objects {
		s.latest = now
	}
	return !live && s.read >= often*objects
}

// grow notes that what is kept decoded weighs more, or less.
func (s *scans) grow(bytes int64) {
	if s != nil {
		s.taken.Add(bytes)
		s.room.used.Add(bytes)
	}
}

// overdrawn tells whether a table takes part in there being more than there is room for.
func (s *scans) overdrawn() bool {
	return s != nil && s.taken.Load() > 0 && s.room.used.Load() > s.room.budget
}

// idle tells whether the table was not read whole for a while.
func (s *scans) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.latest) > while
}

// keepWhole keeps every object decoded from now on, if there is room, and returns them; nil is that there
// is none.
func (t *table) keepWhole() []any {
	t.writing.Lock()
	defer t.writing.Unlock()
	if t.live != nil { // somebody else was quicker
		return t.all()
	}
	var weight int64
	for _, e := range t.list { // nobody else writes
		weight += e.item.weight
	}
	if t.scans.room.used.Add(weight) > t.scans.room.budget {
		t.scans.room.used.Add(-weight)
		return nil
	}
	t.scans.taken.Add(weight)
	items := make([]*item, len(t.list))
	for i, e := range t.list {
		items[i] = e.item
	}
	live := t.scan(items)
	if len(live) < len(items) { // some cannot be decoded: places would not be the list's
		t.scans.room.used.Add(-t.scans.taken.Swap(0))
		return live
	}
	t.mu.Lock()
	t.live = live
	t.mu.Unlock()
	time.AfterFunc(while, t.reconsider)
	objs := make([]any, len(live))
	copy(objs, live)
	return objs
}

// reconsider lets go of what is kept decoded once nobody reads it any more.
func (t *table) reconsider() {
	t.mu.RLock()
	live := t.live != nil
	t.mu.RUnlock()
	switch {
	case !live:
	case t.scans.idle():
		t.writing.Lock()
		defer t.writing.Unlock()
		t.keepNone()
	default:
		time.AfterFunc(while, t.reconsider)
	}
}

// keepNone goes back to what is packed. The caller holds writing.
func (t *table) keepNone() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live = nil
	t.scans.room.used.Add(-t.scans.taken.Swap(0))
	t.scans.mu.Lock()
	defer t.scans.mu.Unlock()
	t.scans.since, t.scans.read = time.Time{}, 0
}
