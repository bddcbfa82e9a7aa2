// Package raw is package feed's view of a source of package informer. Code outside the library cannot open feeds in this form:
// informer has no exported function for it, and gives its own functions to this package.
package raw

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/internal/checkpoint"
	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// Access opens feeds. C is *informer.Cluster, S *informer.Source and O informer.SourceOptions, which this package cannot name.
type Access[C, S, O any] struct {
	// Open opens a source with a feed.
	Open func(c C, gvr schema.GroupVersionResource, o O, f Options) (S, Feed, error)
	// Join adds a feed to a source.
	Join func(s S, f Options) (Feed, error)
}

// granted is the Access that package informer has given.
var granted any

// Grant keeps the Access of package informer, while that is initialized.
func Grant[C, S, O any](a Access[C, S, O]) struct{} {
	granted = a
	return struct{}{}
}

// Granted returns the Access of package informer, for its importers.
func Granted[C, S, O any]() Access[C, S, O] {
	a, _ := granted.(Access[C, S, O])
	return a
}

// Options configure a feed.
type Options struct {
	Name string
	// Budget bounds the bytes of queued versions; 0 means the default of subscriptions. With Strict, the feed
	// ends with store.ErrBehind instead of exceeding it.
	Budget int64
	Strict bool
	// Restore returns the state that a stream had in an earlier run, or nil. pack packs its objects. Restore
	// and SumKey apply to the source, so only a feed with its own source can have them.
	Restore func(ctx context.Context, namespace string, pack Pack) (*checkpoint.State, error)
	// SumKey keys the checksums of contents.
	SumKey []byte
}

// Pack makes a version of an object's JSON.
type Pack func(uid, resourceVersion string, sum uint64, json []byte) *compact.Version

// Feed is a source's feed.
type Feed interface {
	// Next waits for the next batch, whose deltas are valid until the next call. Its errors are
	// informer.ErrClosed, store.ErrBehind and the context's.
	Next(ctx context.Context) (store.Batch, error)
	Lag() store.Lag
	// Close ends the feed, not its source.
	Close()
	// Retry and Retire restart and discard the source's parked streams.
	Retry(version string)
	Retire()
	// Hurry ends the waits of refused streams.
	Hurry()
}
