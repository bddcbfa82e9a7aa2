// Package raw is what package feed sees of a source of package informer. Its types are parameters of
// informer's methods, so that nobody outside the library can call those.
package raw

import (
	"context"

	"github.com/tattler-dev/tattler/informer/internal/checkpoint"
	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// Options describe a feed.
type Options struct {
	Name string
	// Budget bounds the bytes of queued versions; 0 means the default of subscriptions. Strict ends the feed
	// with store.ErrBehind where it would exceed it.
	Budget int64
	Strict bool
	// Restore returns the state that a stream had in an earlier run, nil if it had none. Its objects are
	// packed with pack. Restore and SumKey are the source's, so only its own feed can have them.
	Restore func(ctx context.Context, namespace string, pack Pack) (*checkpoint.State, error)
	// SumKey keys the sums of contents.
	SumKey []byte
}

// Pack makes a version of an object's JSON.
type Pack func(uid, resourceVersion string, sum uint64, json []byte) *compact.Version

// Feed is a source's feed.
type Feed interface {
	// Next waits for the next batch, whose deltas are valid until the next call. Its errors are
	// informer.ErrClosed, store.ErrBehind and those of ctx.
	Next(ctx context.Context) (store.Batch, error)
	Lag() store.Lag
	// Close ends the feed, not its source.
	Close()
	// Retry and Retire wake up and empty the source's parked streams.
	Retry(version string)
	Retire()
}
