package informer

import (
	"context"
	"errors"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/store"
)

// Handlers are functions to call with changes. Those that are nil are not called.
type Handlers[T Object] struct {
	// OnAdd hears of new objects; initial is true for the state that the subscription starts with.
	OnAdd    func(obj T, initial bool)
	OnUpdate func(old, obj T)
	// OnDelete gets the last known object.
	OnDelete func(last T)
	// OnGap hears that versions are missing, in mode Every.
	OnGap func(Gap)
	// OnError hears of an object that cannot be decoded; no other function is called for it.
	OnError func(Key, error)
	// Resync, if positive, is how often OnUpdate is called with every object, as old and new, though
	// nothing changed. It calls between two changes, never beside them, and leaves out objects with a
	// change that is on its way to the handlers.
	Resync time.Duration
}

// Handle calls h with every change, one after the other, until ctx ends or the subscription is over.
// A function that panics does so in the caller's goroutine.
func (s *Subscription[T]) Handle(ctx context.Context, h Handlers[T]) {
	next := time.Now().Add(h.Resync)
	for {
		c, err := s.wait(ctx, h.Resync, next)
		switch {
		case err == nil:
			h.call(c)
		case ctx.Err() != nil || errors.Is(err, ErrClosed):
			return
		default: // it is time
			s.resync(ctx, h.OnUpdate)
			next = time.Now().Add(h.Resync)
		}
	}
}

// wait is Next up to the time of the next resync.
func (s *Subscription[T]) wait(ctx context.Context, resync time.Duration, until time.Time) (*Change[T], error) {
	if resync <= 0 {
		return s.Next(ctx)
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	return s.Next(ctx)
}

func (h *Handlers[T]) call(c *Change[T]) {
	if c.Op == Gapped {
		if h.OnGap != nil {
			h.OnGap(*c.Gap)
		}
		return
	}
	if c.Op == Added && h.OnAdd == nil || c.Op == Updated && h.OnUpdate == nil || c.Op == Deleted && h.OnDelete == nil {
		return
	}
	old, err := c.Old()
	obj, err2 := c.New()
	if err = errors.Join(err, err2); err != nil {
		if h.OnError != nil {
			h.OnError(c.Key, err)
		}
		return
	}
	switch c.Op {
	case Added:
		h.OnAdd(obj, c.Initial)
	case Updated:
		h.OnUpdate(old, obj)
	case Deleted:
		h.OnDelete(old)
	}
}

// resync calls onUpdate with every object that the handlers were told of as it is.
func (s *Subscription[T]) resync(ctx context.Context, onUpdate func(old, obj T)) {
	if onUpdate == nil {
		return
	}
	whole := s.informer.source.beginScan(s.informer.shared)
	for _, st := range s.informer.source.streams {
		coming := s.coming(st)
		for _, item := range st.store.Told(s.consumer.queue) {
			if s.over(ctx) != nil {
				return
			}
			if _, is := coming[item.Key]; is {
				continue
			}
			if obj, err := decode(s.informer, st, item, whole); err == nil {
				onUpdate(obj, obj)
			}
		}
	}
}

// coming are the objects of a stream whose changes were taken and not handed on yet.
func (s *Subscription[T]) coming(st *stream) map[store.Key]struct{} {
	keys := map[store.Key]struct{}{}
	if st != s.informer.source.streams[s.batch.Stream] {
		return keys
	}
	for i := range s.batch.Deltas[s.next:] {
		keys[s.batch.Deltas[s.next+i].Key] = struct{}{}
	}
	return keys
}
