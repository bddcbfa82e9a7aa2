package feed

import (
	"context"
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/internal/checkpoint"
	"github.com/tattler-dev/tattler/informer/internal/raw"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// Restored is the state that a stream had in an earlier run, as persisted by a consumer of its feed: see
// Options.Restore.
type Restored struct {
	// Epoch and Version are those of the last persisted batch; 0 is the storage's current epoch. If it has no Version,
	// the stream is relisted against Objects; also if the epoch is not the current one. A batch with Phase Listing, no Gap and no deltas need not be persisted: nothing was read.
	Epoch   int64
	Version string
	// Trusted means that the current transform also made the bytes of Objects; otherwise they are compared by
	// content.
	Trusted bool
	// Identity is the result of Cluster.Identity at that time. At is Current of the last persisted batch.
	Identity string
	At       time.Time
	// Served is that of the last persisted batch. If the kind is served in another form now, all contents are
	// compared soon after the resumption.
	Served uint64
	// Objects yields the objects as the feed delivered them; nil means no objects. An error ends the loop.
	Objects iter.Seq2[RestoredObject, error]
}

// RestoredObject is one object of a Restored state.
type RestoredObject struct {
	Key                  informer.Key
	UID, ResourceVersion string
	// Sum is Version.Sum of the delivered version; 0: not known.
	Sum uint64
	// JSON is the object's JSON; it must stay valid until the next object is requested.
	JSON []byte
}

// restores adapts Options.Restore to the source.
func restores(gvr schema.GroupVersionResource, restore func(context.Context, informer.Stream) (*Restored, error)) func(context.Context, string, raw.Pack) (*checkpoint.State, error) {
	if restore == nil {
		return nil
	}
	return func(ctx context.Context, namespace string, pack raw.Pack) (*checkpoint.State, error) {
		r, err := restore(ctx, informer.Stream{Resource: gvr, Namespace: namespace})
		if r == nil || err != nil {
			return nil, err
		}
		return r.state(pack)
	}
}

func (r *Restored) state(pack raw.Pack) (*checkpoint.State, error) {
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
		st.Items = append(st.Items, store.Item{Key: store.Key(o.Key), V: pack(o.UID, o.ResourceVersion, o.Sum, o.JSON)})
	}
	return st, nil
}
