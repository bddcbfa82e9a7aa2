package informer

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/checkpoint"
	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Restored is the state that a stream had in an earlier run, as a consumer of its feed kept it: see
// SourceOptions.Restore.
type Restored struct {
	// Epoch and Version of the last batch that the consumer kept. Where that has no Version, the stream is listed
	// against Objects. A batch with Phase Listing that has neither a Gap nor deltas need not be kept: nothing was read.
	Epoch   int64
	Version string
	// Trusted says that the bytes of Objects were made by the same transform as will be used now; else
	// they are compared by content.
	Trusted bool
	// Identity is what Cluster.Identity said then. At is when the state was current.
	Identity string
	At       time.Time
	// Served is that of the last batch that the consumer kept. Where the kind is served in another form
	// by now, all contents are compared soon after the resumption.
	Served uint64
	// Objects yields the objects, as the feed told them; nil: there are none. What comes with an error
	// ends it.
	Objects iter.Seq2[RestoredObject, error]
}

// RestoredObject is one object of a Restored state.
type RestoredObject struct {
	Key                  Key
	UID, ResourceVersion string
	// Sum is Version.Sum of the version that the feed handed on; 0: not known.
	Sum uint64
	// JSON is the object's; it is read until the next one is asked for.
	JSON []byte
}

// restore takes the state of an earlier run into the empty store, and tells whether the stream may be
// resumed from it. While that cannot be read nothing else can be done: it is asked for again.
func (s *stream) restore(ctx context.Context) (resume bool) {
	select {
	case <-s.source.fed: // which may want to start from that state
	case <-ctx.Done():
		return false
	}
	m := reflector.Machine{State: reflector.Waiting}
	for {
		st, err := s.restored(ctx)
		switch {
		case err == nil && st == nil:
			return false
		case err == nil:
			return s.begin(st)
		}
		m.Err = fmt.Errorf("restore: %w", err)
		m.Attempts++
		s.Report(m)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(restoreAgain):
		}
	}
}

const restoreAgain = 2 * time.Second

// restored collects what was kept; nil where there is nothing.
func (s *stream) restored(ctx context.Context) (*checkpoint.State, error) {
	r, err := s.source.opts.Restore(ctx, s.id)
	if r == nil || err != nil {
		return nil, err
	}
	st := &checkpoint.State{
		Head:    store.Head{Epoch: r.Epoch, Phase: store.Listing, Version: r.Version, Served: r.Served},
		Trusted: r.Trusted, Identity: r.Identity, Saved: r.At,
	}
	if r.Version != "" {
		st.Head.Phase = store.Live
	}
	if r.Objects == nil {
		return st, nil
	}
	for o, err := range r.Objects {
		if err != nil {
			return nil, err
		}
		v := s.packer.PackSummed(wire.JSON, o.UID, o.ResourceVersion, o.Sum, o.JSON)
		st.Items = append(st.Items, store.Item{Key: store.Key(o.Key), V: v})
	}
	return st, nil
}
