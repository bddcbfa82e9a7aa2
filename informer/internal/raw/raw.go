// Package raw is package feed's view of a source of package informer. Its types are parameters of informer's
// methods, so that code outside the library cannot call those.
package raw

import (
	"context"

	"github.com/tattler-dev/tattler/informer/internal/checkpoint"
	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

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
