package informer

import (
	"context"
	"errors"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// Handlers are functions to call with changes. Nil ones are skipped.
//
// A version that cannot be decoded goes to OnError only: for the handlers, the object stays as they last
// received it. The next version that can be decoded is an update of that, or an addition if they never received
// the object. A deletion carries the object as last received; if they never received it, the deletion goes to
// OnError as well. So each object is added once, and deleted once if it was added.
type Handlers[T Object] struct {
	// OnAdd receives new objects; initial is true for the state with which the subscription starts.
	OnAdd    func(obj T, initial bool)
	OnUpdate func(old, obj T)
	// OnDelete receives the last known object.
	OnDelete func(last T)
	// OnSynced is called once, after the other functions have received the state with which the subscription starts: see
	// Subscription.Synced. If they have received it already, it is called at once.
	OnSynced func()
	// OnGap is called when versions are missing, in mode Every.
	OnGap func(Gap)
	// OnError is called for a version that cannot be decoded.
	OnError func(Key, error)
	// Resync, if positive, is how often OnUpdate is called with every object, as both old and new, although nothing
	// changed. The calls come between changes, never concurrently, and skip objects with an undelivered
	// change.
	Resync time.Duration
}

// handling is a call of Subscription.Handle.
type handling[T Object] struct {
	Handlers[T]
	got map[Key]*compact.Version // the consumer's map
}

// Handle calls h with every change, one at a time, until ctx ends or the subscription ends; it returns the error of Next,
// which says which of them: that of ctx, or ErrClosed. A second call continues where
// the first one stopped and assumes that the new handlers know what the old ones received. A function that panics does so
// in the caller's goroutine.
func (s *Subscription[T]) Handle(ctx context.Context, handlers Handlers[T]) error {
	h := handling[T]{handlers, s.consumer.got}
	next := time.Now().Add(h.Resync)
	if h.OnSynced != nil {
		if s.initialLeft == 0 {
			h.OnSynced()
		}
		s.onSynced = h.OnSynced
		defer func() { s.onSynced = nil }()
	}
	for {
		c, err := s.wait(ctx, h.Resync, next)
		switch {
		case err == nil:
			h.call(c)
		case ctx.Err() != nil || errors.Is(err, ErrClosed):
			return err
		default: // the resync is due
			s.resync(ctx, h.OnUpdate)
			next = time.Now().Add(h.Resync)
		}
	}
}

// wait is Next until the next resync is due.
func (s *Subscription[T]) wait(ctx context.Context, resync time.Duration, until time.Time) (*Change[T], error) {
	if resync <= 0 {
		return s.Next(ctx)
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	return s.Next(ctx)
}

func (h *handling[T]) call(c *Change[T]) {
	switch {
	case c.Op == Gapped:
		if h.OnGap != nil {
			h.OnGap(*c.Gap)
		}
		return
	case h.OnAdd == nil && h.OnUpdate == nil && h.OnDelete == nil:
		return
	}
	old, oldErr := c.Old()
	obj, err := c.New()
	if err != nil {
		if c.oldV != nil && oldErr == nil {
			h.got[c.Key] = c.oldV
		}
		h.report(c.Key, err)
		return
	}
	if v := h.got[c.Key]; oldErr != nil && v != nil {
		old, oldErr = c.decode(v, c.newV)
	}
	delete(h.got, c.Key)
	switch {
	case c.Op == Deleted && oldErr != nil:
		h.report(c.Key, oldErr)
	case c.Op == Deleted:
		if h.OnDelete != nil {
			h.OnDelete(old)
		}
	case c.Op == Added || oldErr != nil:
		if h.OnAdd != nil {
			h.OnAdd(obj, c.Initial)
		}
	case h.OnUpdate != nil:
		h.OnUpdate(old, obj)
	}
}

func (h *handling[T]) report(k Key, err error) {
	if h.OnError != nil {
		h.OnError(k, err)
	}
}

// resync calls onUpdate with every object of which the handlers have the current version.
func (s *Subscription[T]) resync(ctx context.Context, onUpdate func(old, obj T)) {
	if onUpdate == nil {
		return
	}
	whole := s.informer.source.beginScan(s.informer.shared)
	for _, st := range s.informer.source.streams {
		pending := s.pending(st)
		for _, item := range st.store.Delivered(s.consumer.queue) {
			if s.ended(ctx) != nil {
				return
			}
			if _, is := pending[item.Key]; is {
				continue
			}
			if obj, err := decode(s.informer, st, item, whole); err == nil {
				onUpdate(obj, obj)
			}
		}
	}
}

// pending returns the objects of a stream whose changes were taken from the queue and not delivered yet.
func (s *Subscription[T]) pending(st *stream) map[store.Key]struct{} {
	keys := map[store.Key]struct{}{}
	if st != s.informer.source.streams[s.batch.Stream] {
		return keys
	}
	for i := range s.batch.Deltas[s.next:] {
		keys[s.batch.Deltas[s.next+i].Key] = struct{}{}
	}
	return keys
}
