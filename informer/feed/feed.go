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
	// SourceOptions are the source's. With Restore, Format must be JSON, and the source has no checkpoint.
	informer.SourceOptions
	// Budget bounds the bytes of queued versions, compressed as they are at rest; 0 means 32 MiB. A
	// feed that exceeds it gets net deltas and a Gap until it has caught up.
	Budget int64
	// Strict ends the feed with ErrBehind where it would exceed its budget, behind what is queued: for a
	// consumer that can open it anew with what it has kept, and so misses nothing.
	Strict bool
	// Restore, if set, is asked once for the state that a stream had in an earlier run, which it resumes
	// as it would from a checkpoint; nil: there is none. The feed starts at that state: only what differs
	// from it is handed on. Until Restore and its Objects have succeeded the stream waits, and asks again.
	Restore func(ctx context.Context, s informer.Stream) (*Restored, error)
	// SumKey, if set, keys the sums of objects' contents (Version.Sum). A consumer that keeps them sets it
	// where a Transform hides values: without a key, values could be tried against a sum.
	SumKey []byte
}

// Feed hands a source's changes to one consumer.
type Feed struct {
	name    string
	source  *informer.Source
	streams []informer.Stream // by their number in a store.Batch
	raw     raw.Feed
	owns    bool // the source
}

// Open opens a source with a feed: first the current state, then every change. The source starts with
// Cluster.Run, or at once where Run is under way. The name shows up in status and metrics.
func Open(c *informer.Cluster, gvr schema.GroupVersionResource, name string, o Options) (*Feed, error) {
	s, f, err := c.OpenFeed(gvr, o.SourceOptions, raw.Options{
		Name: name, Budget: o.Budget, Strict: o.Strict, Restore: restores(gvr, o.Restore), SumKey: o.SumKey,
	})
	if err != nil {
		return nil, err
	}
	return newFeed(name, s, f, true), nil
}

// Join adds a feed to a source that is open already: first the state that it has, then every change. The
// budget is as in Options.
func Join(s *informer.Source, name string, budget int64) (*Feed, error) {
	f, err := s.OpenFeed(raw.Options{Name: name, Budget: budget})
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

// Name is the name given to Open or Join.
func (f *Feed) Name() string { return f.name }

// Source is the feed's source: for its status, to wait for it, and for views of it (informer.On).
func (f *Feed) Source() *informer.Source { return f.source }

// Next waits for the next batch, which is the caller's. It serves one goroutine. Its errors are
// informer.ErrClosed, ErrBehind and those of ctx. Source.Status and SourceOptions.OnState say what keeps a
// stream from getting on.
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

// Lag tells how far behind the consumer is.
func (f *Feed) Lag() informer.Lag { return informer.Lag(f.raw.Lag()) }

// Retry starts those streams of the source again that are Parked because the kind was not served, which else
// come back within some minutes of the kind. From then on they ask for this version of the API group; an
// object has the same resource version under each. Empty is the version that was asked for; so is any
// where a view has a Go type, which is of one version. A stream lists against what it knows, so that
// only real differences are handed on, behind a Gap if it holds objects: what happened to them meanwhile was
// not seen. Its Stream stays the same.
//
// Like Retire, it does nothing for streams that are not Parked.
func (f *Feed) Retry(version string) { f.raw.Retry(version) }

// Retire says that the source's kind is gone: streams that are Parked drop their objects and hand on their
// deletions, which were missed, behind a Gap; done again, it does nothing. Should the kind come back, so does
// the source.
func (f *Feed) Retire() { f.raw.Retire() }

// Close ends the feed and drops what it holds. A source that Open opened is closed with it.
func (f *Feed) Close() {
	f.raw.Close()
	if f.owns {
		f.source.Close()
	}
}
