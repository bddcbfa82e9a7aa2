package informer

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/internal/raw"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// Package feed, and nothing outside this library, opens feeds.
var _ = raw.Grant(raw.Access[*Cluster, *Source, SourceOptions]{Open: openFeed, Join: (*Source).joinFeed})

// openFeed opens a source with a feed.
func openFeed(c *Cluster, gvr schema.GroupVersionResource, o SourceOptions, f raw.Options) (*Source, raw.Feed, error) {
	s, err := newSource(c, gvr, o, f)
	if err != nil {
		return nil, nil, err
	}
	opened, err := s.joinFeed(f)
	if err != nil {
		return nil, nil, err
	}
	if err := c.register(s); err != nil {
		return nil, nil, err
	}
	return s, opened, nil
}

// joinFeed adds a feed to the source.
func (s *Source) joinFeed(f raw.Options) (raw.Feed, error) {
	c, err := s.consume(f.Name, nil, store.QueueOptions{Budget: f.Budget, Strict: f.Strict, SkipLoaded: f.Restore != nil})
	if err != nil {
		return nil, err
	}
	return rawFeed{c}, nil
}

// rawFeed implements raw.Feed.
type rawFeed struct{ consumer *consumer }

func (f rawFeed) Next(ctx context.Context) (store.Batch, error) {
	b, err := f.consumer.queue.Next(ctx)
	source := f.consumer.source
	switch {
	case errors.Is(err, store.ErrClosed):
		return b, ErrClosed
	case errors.Is(err, store.ErrBehind):
		source.forget(f.consumer)
		return b, err
	case err != nil:
		return b, err
	}
	source.hooks().lag(source.gvr, f.consumer)
	return b, nil
}

func (f rawFeed) Lag() store.Lag { return f.consumer.queue.Lag() }

func (f rawFeed) Close() { f.consumer.stop() }

// Retry makes the source request this version of the API group from now on, unless it is empty or a view has a Go
// type, which belongs to one version.
func (f rawFeed) Retry(version string) {
	s := f.consumer.source
	if s.running() == nil {
		return
	}
	if s.hasTypedView() {
		version = ""
	}
	for _, st := range s.streams {
		st.retry(version)
	}
}

func (f rawFeed) Retire() {
	for _, st := range f.consumer.source.streams {
		st.retire()
	}
}

func (f rawFeed) Hurry() {
	if f.consumer.source.running() == nil {
		return
	}
	for _, st := range f.consumer.source.streams {
		st.hurry()
	}
}
