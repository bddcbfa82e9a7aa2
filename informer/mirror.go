package informer

import (
	"context"
	"fmt"
)

// Replica is a user's store that Informer.Mirror keeps up to date: a map, a table, a search index. One goroutine calls
// it. An error ends Mirror.
type Replica[T Object] interface {
	// Reset empties the store. Mirror calls it first.
	Reset(ctx context.Context) error
	// Put adds or replaces an object. The replica may keep and modify it, unless the view is Shared.
	Put(ctx context.Context, key Key, obj T) error
	// Delete removes an object.
	Delete(ctx context.Context, key Key) error
	// Version is called when the store holds the stream's state at a resource version: a good time to commit. It is
	// not called while the initial state or a list is being delivered.
	Version(ctx context.Context, stream Stream, resourceVersion string) error
}

// Mirror keeps dst up to date until ctx ends, the source is closed (ErrClosed) or dst fails. A version that cannot be
// decoded is counted (Status.DecodeErrors), and dst keeps the object's previous one.
func (i *Informer[T]) Mirror(ctx context.Context, name string, dst Replica[T]) error {
	s, err := i.Subscribe(name, SubscribeOptions{})
	if err != nil {
		return err
	}
	defer s.Stop()
	if err := dst.Reset(ctx); err != nil {
		return fmt.Errorf("mirror %s: reset: %w", name, err)
	}
	for {
		if err := s.refill(ctx); err != nil {
			return err
		}
		for c := s.take(); c != nil; c = s.take() {
			if err := s.ended(ctx); err != nil {
				return err
			}
			if err := c.mirror(ctx, dst); err != nil {
				return fmt.Errorf("mirror %s: %s/%s: %w", name, c.Key.Namespace, c.Key.Name, err)
			}
		}
		if s.batch.Version == "" {
			continue
		}
		id := i.source.streams[s.batch.Stream].id
		if err := dst.Version(ctx, id, s.batch.Version); err != nil {
			return fmt.Errorf("mirror %s: version %s: %w", name, s.batch.Version, err)
		}
	}
}

func (c *Change[T]) mirror(ctx context.Context, dst Replica[T]) error {
	if c.newV == nil {
		return dst.Delete(ctx, c.Key)
	}
	obj, err := c.New()
	if err != nil {
		return nil //nolint:nilerr // it is counted, and reported by Hooks.DecodeError
	}
	return dst.Put(ctx, c.Key, obj)
}
