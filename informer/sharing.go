package informer

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// sharedRoom is what the first subscription to shared objects of a type adds to the room for decoded
// objects, in bytes: subscribers stand some hundreds of changes apart, and one that finds its object
// gone decodes it, which sets it back further.
const sharedRoom = 24 << 20

// sharing counts the subscriptions to shared objects, by the type that they are decoded to: what
// comes in is decoded once for all of them.
type sharing struct {
	mu     sync.Mutex
	counts map[*codec]int
	list   atomic.Pointer[[]*codec]
}

// replaced lets go of what a version was decoded to, at once or once those who share it have had time to ask for it.
func (s *Source) replaced(v *compact.Version) {
	if len(s.sharing.types()) > 0 {
		s.hot.Retire(v)
	} else {
		s.hot.Drop(v)
	}
}

// types are those that somebody shares.
func (s *sharing) types() []*codec {
	if list := s.list.Load(); list != nil {
		return *list
	}
	return nil
}

// add counts one more, or with -1 one less.
func (s *sharing) add(c *codec, n int, hot *compact.Hot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[*codec]int{}
	}
	before := len(s.counts)
	if s.counts[c] += n; s.counts[c] == 0 {
		delete(s.counts, c)
	}
	if len(s.counts) == before {
		return
	}
	hot.Grow(int64(len(s.counts)-before) * sharedRoom)
	list := slices.Collect(maps.Keys(s.counts))
	s.list.Store(&list)
}
