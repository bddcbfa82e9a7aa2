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

// Restored is the state that a stream had in an earlier run, as a consumer of its feed kept it: see
// Options.Restore.
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
	// Objects yields the objects, as the feed handed them on; nil: there are none. What comes with an error
	// ends it.
	Objects iter.Seq2[RestoredObject, error]
}

// RestoredObject is one object of a Restored state.
type RestoredObject struct {
	Key                  informer.Key
	UID, ResourceVersion string
	// Sum is Version.Sum of the version that the feed handed on; 0: not known.
	Sum uint64
	// JSON is the object's; it is read until the next one is asked for.
	JSON []byte
}

// restores returns Options.Restore as the source calls it.
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
