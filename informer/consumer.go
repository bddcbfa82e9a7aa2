package informer

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

const defaultBudget = 32 << 20

// Lag is the size of a subscriber's queue.
type Lag struct {
	// Objects counts changed objects in mode Latest; in mode Every, and for feeds, changes.
	Objects int `json:"objects"`
	// Bytes is an upper bound of the bytes of versions that are kept only for the subscriber.
	Bytes int64 `json:"bytes"`
	// Oldest is the time of the oldest queued change; zero if the queue is empty.
	Oldest time.Time `json:"oldest,omitzero"`
}

// consumer is the named queue of a Subscription or a feed.
type consumer struct {
	source *Source
	name   string
	every  bool
	shared *codec // decodes its changes once for all subscribers; nil: not shared
	queue  *store.Queue

	stopped atomic.Bool // also drops changes that were taken and not delivered

	// got maps each object whose last version could not be decoded to the version that Handlers received before, if
	// any. It belongs to Handle and outlives one call of it.
	got map[Key]*compact.Version
}

// consume adds a consumer to every stream.
func (s *Source) consume(name string, shared *codec, o store.QueueOptions) (*consumer, error) {
	switch {
	case name == "":
		return nil, errors.New("subscribe: a subscriber needs a name, for status and metrics")
	case o.Budget < 0:
		return nil, fmt.Errorf("subscribe %s: the budget is negative: %d bytes", name, o.Budget)
	case o.Budget == 0:
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

// end drops undelivered changes.
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
