package informer

import (
	"sync/atomic"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

const defaultBudget = 32 << 20

// Lag is what a consumer has yet to take.
type Lag struct {
	// Objects are those that changed, in mode Latest; in mode Every, and for feeds, the changes.
	Objects int `json:"objects"`
	// Bytes are those of versions that are kept only for the consumer, at most.
	Bytes int64 `json:"bytes"`
	// Oldest is when the first of them happened; zero where there is none.
	Oldest time.Time `json:"oldest,omitzero"`
}

// consumer is a queue with a name: a Subscription's or a feed's.
type consumer struct {
	source *Source
	name   string
	every  bool
	shared *codec // what its changes are decoded to once for all; nil: they are not
	queue  *store.Queue

	stopped atomic.Bool // what was taken and not handed on is dropped, too

	// got has, of each object whose last version could not be decoded, the one that Handlers got before that, if
	// any. It is Handle's, which may be called again.
	got map[Key]*compact.Version
}

// consume adds a consumer to every stream.
func (s *Source) consume(name string, shared *codec, o store.QueueOptions) (*consumer, error) {
	if o.Budget <= 0 {
		o.Budget = defaultBudget
	}
	c := &consumer{source: s, name: name, every: !o.Latest, shared: shared, queue: store.NewQueue(len(s.streams), o), got: map[Key]*compact.Version{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	s.consumers[c] = struct{}{}
	if shared != nil {
		s.sharing.add(shared, 1, s.hot)
	}
	for _, st := range s.streams {
		st.store.Subscribe(c.queue, time.Now())
	}
	return c, nil
}

func (s *Source) forget(c *consumer) {
	s.mu.Lock()
	_, open := s.consumers[c]
	delete(s.consumers, c)
	s.mu.Unlock()
	if open && c.shared != nil {
		s.sharing.add(c.shared, -1, s.hot)
	}
	for _, st := range s.streams {
		st.store.Unsubscribe(c.queue)
	}
}

// end drops what the consumer has yet to get.
func (c *consumer) end() {
	c.stopped.Store(true)
	c.queue.Close()
}

func (c *consumer) stop() {
	c.end()
	c.source.forget(c)
}

func (c *consumer) lag() Lag {
	l := c.queue.Lag()
	return Lag{Objects: l.Objects, Bytes: l.Bytes, Oldest: l.Oldest}
}

func (c *consumer) mode() string {
	if c.every {
		return "every"
	}
	return "latest"
}
