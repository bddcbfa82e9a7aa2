package informer

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Options tune a Cluster. The zero value is usable.
type Options struct{}

// Cluster talks to one API server.
type Cluster struct{}

// NewCluster prepares the connection; it does not talk to the server.
func NewCluster(cfg *rest.Config, o Options) (*Cluster, error) { return nil, nil }

// Run serves every source until ctx ends; it returns when its goroutines are gone.
func (c *Cluster) Run(ctx context.Context) error { return nil }

// Source opens a source; it starts with Run, or at once where Run is under way.
func (c *Cluster) Source(gvr schema.GroupVersionResource, o SourceOptions) (*Source, error) {
	return nil, nil
}

// Source keeps the objects of one resource under one selection.
type Source struct{}

// Feed opens a feed: first the current state, then every change.
func (s *Source) Feed(name string, o FeedOptions) (*Feed, error) { return nil, nil }

// Status describes the source's streams.
func (s *Source) Status() []Status { return nil }

// Close ends the source's streams and feeds.
func (s *Source) Close() {}

// FeedOptions tune a Feed.
type FeedOptions struct {
	// Budget bounds the bytes of queued versions; 0 means 32 MiB.
	Budget int64
}

// Feed hands a source's changes to one consumer.
type Feed struct{}

// Next waits for the next batch.
func (f *Feed) Next(ctx context.Context) (Batch, error) { return Batch{}, nil }

// Close ends the feed.
func (f *Feed) Close() {}

// Version is one version of an object, at rest. It is immutable.
type Version struct {
	ResourceVersion string
}

// IsZero tells an absent version.
func (v Version) IsZero() bool { return v.ResourceVersion == "" }

// JSON returns the object's JSON; the bytes are the caller's.
func (v Version) JSON() ([]byte, error) { return nil, nil }

// Object returns the decoded object; it is the caller's.
func (v Version) Object() (map[string]any, error) { return nil, nil }
