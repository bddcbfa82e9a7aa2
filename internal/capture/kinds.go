package capture

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
)

// A stream that gets 404 twice, seconds apart, is parked unless the library finds the kind in discovery. If the
// tool's own discovery agrees, what is still stored is reported as deleted (feed.Feed.Retire). When the kind comes
// back, the stream relists against what it knows: at once by feed.Feed.Retry, or else by a look every few minutes.
// API servers answer in plain text for a kind that they do not serve, as any proxy might; theirs have an Audit-Id.
//
// When a version is no longer served, such as a CRD's v1beta1, the source moves to the new one. It lists against what
// it knows, so that only real differences are recorded, behind one gap.

// kind is a resource that is being watched: a source for all its objects, or one for each name.
// Watcher.mu guards what changes, except where it says otherwise.
type kind struct {
	target
	silent bool // only wakes discovery
	late   bool // found after the start, which does not wait for it

	// appeared while watching: what its first list holds was created.
	appeared atomic.Bool
	// served is the resource in the version that it is watched in now, where that is not the
	// target's any more.
	served atomic.Pointer[Resource]

	selections []informer.Selection
	streams    map[streamKey]*streamState
	feeds      []*feed.Feed // each of a source of its own
	settled    bool

	schema diff.Schema // that was told with a batch
	behind bool        // its feed could not be followed: it is opened anew

	cancel context.CancelFunc // of the consumers; used by reconcile's goroutine alone
	done   sync.WaitGroup
}

// streamKey names a stream among those of its kind: the source's place and the namespace.
type streamKey struct {
	source    int
	namespace string
}

type streamState struct {
	status informer.Status
	// delivered is true once the initial state was handed on whole.
	delivered bool
	// live is true for a stream that watches, or did before it failed.
	live bool
	// blind is true for a stream that was live and is refused now; blindTold once that was told.
	blind, blindTold bool
	// trying is since when the stream tries to be live and is not; zero in the other states.
	trying time.Time
	// first is true until the first list of the stream, over all runs, is complete.
	first bool
	// interrupted is the gap that is to be told where what was kept of the stream was in the midst of a list.
	interrupted *informer.Gap
	// epoch is that of the last complete state.
	epoch int64
	// others is set while a list compares with objects that were made otherwise, such as with other
	// redaction rules, and from then on if it could not read some.
	others *others
	// moved is the version under which the kind was watched before, until the gap of that is told.
	moved string
	// lastErr is why it was not live the last time; gaps counts those that were told, and lists and
	// watches those of sources before the present one.
	lastErr              error
	gaps, lists, watches int64
}

func (w *Watcher) newKind(t target, silent bool) *kind {
	k := &kind{target: t, silent: silent, streams: map[streamKey]*streamState{}}
	names := k.names
	if k.all() || k.owned {
		names = []string{""} // one source for all of them
	}
	for i, name := range names {
		sel := w.selection(k, name)
		k.selections = append(k.selections, sel)
		namespaces := sel.Namespaces
		if len(namespaces) == 0 {
			namespaces = []string{""}
		}
		for _, ns := range namespaces {
			k.streams[streamKey{i, ns}] = &streamState{trying: time.Now()}
		}
	}
	return k
}

// selection is what a source of the kind keeps: all, or the object of one name.
func (w *Watcher) selection(k *kind, name string) informer.Selection {
	if k.silent {
		return informer.Selection{}
	}
	sel := informer.Selection{Labels: k.scope.Labels, Fields: k.scope.Fields}
	if name != "" {
		sel.Fields = "metadata.name=" + name
	}
	if k.Namespaced {
		sel.Namespaces = k.scope.Namespaces.exact()
		sel.Keep = k.scope.Namespaces.keep()
		if not := k.scope.Namespaces.excluded(); not != "" {
			sel.Fields = strings.Trim(sel.Fields+","+not, ",")
		}
	}
	return sel
}

// open starts the sources of a kind and their consumers.
func (w *Watcher) open(ctx context.Context, k *kind) error {
	ctx, k.cancel = context.WithCancel(ctx)
	transform := w.transform(k)
	for i, sel := range k.selections {
		f, err := feed.Open(w.cluster, k.GVR(), "capture", feed.Options{
			SourceOptions: informer.SourceOptions{
				Selection: sel, Transform: transform,
				OnState: func(st informer.Status) { w.onState(k, i, st) },
			},
			Restore: w.restores(k, i), SumKey: w.o.Redactor.SumKey(),
			Budget: w.budget,
			Strict: w.o.Kept != nil, // what a feed missed is asked for again
		})
		if err != nil {
			return err
		}
		w.mu.Lock()
		k.feeds = append(k.feeds, f)
		w.mu.Unlock()
		k.done.Go(func() { w.consume(ctx, k, i, f) })
	}
	return nil
}

// transform hides secrets before the engine stores an object. What only wakes discovery keeps
// nothing but its metadata.
func (w *Watcher) transform(k *kind) *informer.Transform {
	if k.silent {
		return &informer.Transform{Name: "metadata", Version: 1, Apply: func(u *unstructured.Unstructured) error {
			delete(u.Object, "spec")
			delete(u.Object, "status")
			return nil
		}}
	}
	gr := k.GroupResource()
	return &informer.Transform{
		Name: w.o.Redactor.Fingerprint(), Version: 1,
		Rewrite: func(raw []byte) ([]byte, error) { return hidden(w.o.Redactor, gr, raw) },
	}
}

// resource is the resource in the version that it is watched in now. Anybody may call it.
func (k *kind) resource() Resource {
	if r := k.served.Load(); r != nil {
		return *r
	}
	return k.Resource
}

// move has a parked kind watched in another version from its next retry on.
func (k *kind) move(to Resource) {
	from := k.resource().Version
	if from == to.Version {
		return
	}
	k.served.Store(&to)
	for _, st := range k.streams {
		st.moved = from
	}
}

// rename takes over the short names that the server has now.
func (k *kind) rename(to Resource) {
	if r := k.resource(); r.Version == to.Version && !slices.Equal(r.ShortNames, to.ShortNames) {
		k.served.Store(&to)
	}
}

// retry lists a parked kind against what is known of it.
func (k *kind) retry() {
	for _, f := range k.feeds {
		f.Retry(k.resource().Version)
	}
}

// retire tells the deletions that the watch of a parked kind did not live to send.
func (k *kind) retire() {
	for _, f := range k.feeds {
		f.Retire()
	}
}

// parked is true where every stream of the kind was told that the kind is not served.
func (k *kind) parked() bool {
	for _, st := range k.streams {
		if st.status.State != informer.Parked {
			return false
		}
	}
	return true
}

// stop ends the kind and waits for its consumers.
func (k *kind) stop() {
	k.cancel()
	for _, f := range k.feeds {
		f.Close()
	}
	k.done.Wait()
}
