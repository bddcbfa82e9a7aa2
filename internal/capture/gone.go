package capture

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tattler-dev/tattler/informer/feed"
)

// A kind may go while nothing watches, together with its CRD or its API group. Its kept streams are then opened like any
// others: their requests get 404, and once discovery agrees, the deletions of their objects are reported, as for a kind
// that goes while it is watched. A kind that discovery lacks only for the moment just goes on.
//
// A kind that went has no streams once its deletions were sent. If it comes back, it is a new kind.

// goneKinds returns the kept kinds that the server does not serve, with held only those that have a stream. The kinds
// of an API group that does not answer are unknown, not gone.
func (w *Watcher) goneKinds(c *Catalog, held bool) *Catalog {
	gone := &Catalog{}
	for _, k := range w.kept {
		if (k.Held || !held) && c.lacks(k.Resource) {
			gone.all, gone.preferred = append(gone.all, k.Resource), append(gone.preferred, k.Resource)
		}
	}
	return gone
}

// lacks reports whether the server certainly does not serve a kind, in any version.
func (c *Catalog) lacks(r Resource) bool {
	return c.failed[r.Group] == nil && !c.serves(r.GroupResource())
}

// with returns the catalog with the kinds of another one.
func (c *Catalog) with(o *Catalog) *Catalog {
	sum := *c
	sum.all, sum.preferred = slices.Concat(c.all, o.all), slices.Concat(c.preferred, o.preferred)
	return &sum
}

// vanishing reports whether a stream of a vanished kind is about to end, or to go on: the start waits for that. w.mu is
// held.
func (w *Watcher) vanishing(k *kind, s *streamState) bool {
	return k.vanished && apierrors.IsNotFound(s.status.Err) && w.catalog.failed[k.Group] == nil
}

// empty reports whether the streams of a parked kind have no objects, and all their batches were taken; w.mu is held.
func (k *kind) empty() bool {
	for _, s := range k.streams {
		if s.status.Objects > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(k.feeds, func(f *feed.Feed) bool { return f.Lag().Objects > 0 })
}

func (w *Watcher) isBehind(k *kind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return k.behind
}

// end closes kinds that are gone, after the batches that were taken, and forgets them.
func (w *Watcher) end(ctx context.Context, ended []*kind) {
	for _, k := range ended {
		for _, f := range k.feeds {
			f.Close()
		}
		k.done.Wait()
		if w.isBehind(k) {
			continue // it is opened again, and lists what was not sent
		}
		k.cancel()
		for key := range k.streams {
			if w.o.Kept != nil && !k.discoveryOnly {
				w.send(ctx, Message{Batch: &Batch{Stream: k.stream(key), Ended: true, At: time.Now()}})
			}
		}
		w.mu.Lock()
		delete(w.kinds, k.GroupResource())
		w.noteStarted(k)
		for i := range w.kept {
			w.kept[i].Held = w.kept[i].Held && w.kept[i].GroupResource() != k.GroupResource()
		}
		w.mu.Unlock()
	}
	if len(ended) > 0 && w.o.Kept != nil {
		w.flush(ctx) // the kind may be back, and then begins with nothing
	}
}
