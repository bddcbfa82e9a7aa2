package feed

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/internal/raw"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// The consumer of a feed can be the checkpoint. Options.Restore starts a stream with the state that a consumer has
// kept, and the feed delivers only what differs from it. A Strict feed ends where others fold: its consumer opens it
// again with the state that it has kept, and so misses nothing while the server has the history. Package capture does
// so if Options.Kept is set.

// Options tune a feed and its source. The zero value is usable.
type Options struct {
	// SourceOptions configure the source. With Restore, Format must be JSON, and the source has no checkpoint.
	informer.SourceOptions
	// Budget limits the bytes of queued versions, in packed form; 0 means 32 MiB. A feed that exceeds it
	// receives net deltas and a Gap until it has caught up.
	Budget int64
	// Strict ends the feed with ErrBehind, after the queued batches, if it would exceed its budget: for a consumer
	// that can reopen it with its persisted state, and so misses nothing.
	Strict bool
	// Restore, if set, returns the state that a stream had in an earlier run, or nil; it is called once per stream. The
	// stream resumes from the state as from a checkpoint, and the feed delivers only the differences. While
	// Restore or its Objects fail, the stream waits and retries.
	Restore func(ctx context.Context, s informer.Stream) (*Restored, error)
	// SumKey, if set, keys the sums of objects' contents (Version.Sum). A consumer that persists sums should set it
	// if a Transform hides values: without a key, values could be guessed from a sum.
	SumKey []byte
}

// Feed delivers a source's changes to one consumer.
type Feed struct {
	name    string
	source  *informer.Source
	streams []informer.Stream // by their number in a store.Batch
	raw     raw.Feed
	owns    bool // Close closes the source
}

// access is how package informer opens feeds.
func access() raw.Access[*informer.Cluster, *informer.Source, informer.SourceOptions] {
	return raw.Granted[*informer.Cluster, *informer.Source, informer.SourceOptions]()
}

// Open opens a source with a feed: first the current state, then every change. The source starts with
// Cluster.Run, or at once if Run is under way. The name appears in status and metrics.
func Open(c *informer.Cluster, gvr schema.GroupVersionResource, name string, o Options) (*Feed, error) {
	s, f, err := access().Open(c, gvr, o.SourceOptions, raw.Options{
		Name: name, Budget: o.Budget, Strict: o.Strict, Restore: restores(gvr, o.Restore), SumKey: o.SumKey,
	})
	if err != nil {
		return nil, err
	}
	return newFeed(name, s, f, true), nil
}

// Join adds a feed to an open source: first its current state, then every change. The budget is as in Options.
func Join(s *informer.Source, name string, budget int64) (*Feed, error) {
	f, err := access().Join(s, raw.Options{Name: name, Budget: budget})
	if err != nil {
		return nil, err
	}
	return newFeed(name, s, f, false), nil
}

func newFeed(name string, s *informer.Source, f raw.Feed, owns bool) *Feed {
	out := &Feed{name: name, source: s, raw: f, owns: owns}
	for _, st := range s.Status() {
		out.streams = append(out.streams, st.Stream)
	}
	return out
}

// Name returns the name given to Open or Join.
func (f *Feed) Name() string { return f.name }

// Source returns the feed's source: for its status, to wait for it, and for views of it (informer.On).
func (f *Feed) Source() *informer.Source { return f.source }

// Next waits for the next batch, which belongs to the caller. It serves one goroutine at a time. Its errors are
// informer.ErrClosed, ErrBehind and those of ctx. Source.Status and SourceOptions.OnState report why a stream
// makes no progress.
func (f *Feed) Next(ctx context.Context) (Batch, error) {
	b, err := f.raw.Next(ctx)
	if errors.Is(err, store.ErrBehind) {
		return Batch{}, ErrBehind
	}
	if err != nil {
		return Batch{}, err
	}
	out := Batch{
		Stream:  f.streams[b.Stream],
		Epoch:   b.Epoch,
		Phase:   Phase(b.Phase),
		Version: b.Version,
		Served:  b.Served,
		Current: b.Current,
		Deltas:  make([]Delta, len(b.Deltas)),
	}
	if b.Gap != nil {
		g := informer.Gap(*b.Gap)
		out.Gap = &g
	}
	for i := range b.Deltas {
		out.Deltas[i] = delta(&b.Deltas[i])
	}
	return out, nil
}

// Lag returns how far behind the consumer is.
func (f *Feed) Lag() informer.Lag { return informer.Lag(f.raw.Lag()) }

// Retry restarts the source's Parked streams at once; otherwise they return within minutes of their kind. From
// then on they request this version of the API group; an object has the same resource version in each. An empty
// version keeps the current one, and so does any if a view has a Go type, which belongs to one version. A
// stream relists against its state, so that only real differences are delivered, after a Gap if it holds
// objects, since their changes were not seen meanwhile. Its Stream stays the same.
//
// Like Retire, it does nothing for streams that are not Parked.
func (f *Feed) Retry(version string) { f.raw.Retry(version) }

// Retire declares that the source's kind was removed: Parked streams delete their objects and deliver the missed
// deletions, after a Gap. A second call does nothing. If the kind returns, so does the source.
func (f *Feed) Retire() { f.raw.Retire() }

// Hurry makes the source's streams that wait after a refusal try again at once: call it when rights were granted. Otherwise
// they try again once a minute.
func (f *Feed) Hurry() { f.raw.Hurry() }

// Close ends the feed and drops queued changes. A source that Open opened is closed with it.
func (f *Feed) Close() {
	f.raw.Close()
	if f.owns {
		f.source.Close()
	}
}
