package clientgo

import (
	"slices"
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
	// roomy is the part of the room, in eighths, that all of it must fit into before it is kept: what comes
	// and goes at the very edge is not decoded again and again.
	roomy = 7
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
	ended  bool

	timer *time.Timer  // asks whether it is still read; made once. Guarded by the table's writing
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
	return !live && !s.ended && s.read >= often*objects
}

// anew counts from nothing.
func (s *scans) anew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since, s.read = time.Time{}, 0
}

// end lets nothing be kept any more.
func (s *scans) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

func (s *scans) isEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// askLater asks once more in a while.
func (s *scans) askLater(ask func()) {
	if s.timer == nil {
		s.timer = time.AfterFunc(while, ask)
		return
	}
	s.timer.Reset(while)
}

// fit takes so much of the room, if that leaves some.
func (s *scans) fit(weight int64) bool {
	if s.room.used.Add(weight) > s.room.budget/8*roomy {
		s.room.used.Add(-weight)
		return false
	}
	s.taken.Add(weight)
	return true
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
	if t.scans.isEnded() {
		return nil
	}
	var weight int64
	items, fit := make([]*item, len(t.list)), true
	for i, e := range t.list { // nobody else writes
		items[i] = e.item
		weight += e.item.weight
		fit = fit && !e.item.misfit.Load() // else places would not be the list's
	}
	if !fit || !t.scans.fit(weight) {
		t.scans.anew() // until there may be room
		return nil
	}
	live := t.scan(items)
	if len(live) < len(items) {
		t.scans.room.used.Add(-t.scans.taken.Swap(0))
		t.scans.anew()
		return live
	}
	t.mu.Lock()
	t.live = live
	t.mu.Unlock()
	t.scans.askLater(t.reconsider)
	return slices.Clone(live)
}

// reconsider lets go of what is kept decoded once nobody reads it any more.
func (t *table) reconsider() {
	t.writing.Lock()
	defer t.writing.Unlock()
	switch {
	case t.live == nil: // nobody else writes
	case t.scans.idle():
		t.keepNone()
	default:
		t.scans.askLater(t.reconsider)
	}
}

// keepNone goes back to what is packed. The caller holds writing.
func (t *table) keepNone() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live = nil
	t.scans.room.used.Add(-t.scans.taken.Swap(0))
	if t.scans.timer != nil {
		t.scans.timer.Stop()
	}
	t.scans.anew()
}
