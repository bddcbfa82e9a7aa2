package informer

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// sharedBudget is how much the first shared subscription of a type adds to the budget for decoded objects, in bytes.
// Subscribers are a few hundred changes apart; one that finds its object evicted must decode it again and falls further
// behind.
const sharedBudget = 24 << 20

// sharing counts the shared subscriptions by type: each incoming version is decoded once for all of them.
type sharing struct {
	mu     sync.Mutex
	counts map[*codec]int
	list   atomic.Pointer[[]*codec]
}

// replaced evicts the decoded objects of a replaced version: at once or, if there are shared subscriptions, after they have
// had time to read them.
func (s *Source) replaced(v *compact.Version) {
	if len(s.sharing.types()) > 0 {
		s.hot.Retire(v)
	} else {
		s.hot.Drop(v)
	}
}

// types returns the types with shared subscriptions.
func (s *sharing) types() []*codec {
	if list := s.list.Load(); list != nil {
		return *list
	}
	return nil
}

// add adds n, 1 or -1, to a type's count.
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
	hot.Grow(int64(len(s.counts)-before) * sharedBudget)
	list := slices.Collect(maps.Keys(s.counts))
	s.list.Store(&list)
}
