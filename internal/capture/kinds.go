package capture

import (
	"context"
	"reflect"
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

// kind is a watched resource type, with one source for all its objects or one per name. Watcher.mu guards its
// mutable fields unless stated otherwise.
type kind struct {
	target
	discoveryOnly bool // only wakes discovery
	late          bool // found after the start, which does not wait for it
	vanished      bool // opened although the server does not serve it; see gone.go

	// appeared is set if the kind was first served while watching: the objects of its first list were created.
	appeared atomic.Bool
	// served is the resource in the version now being watched, if it differs from the target's.
	served atomic.Pointer[Resource]

	selections []informer.Selection
	streams    map[streamKey]*streamState
	feeds      []*feed.Feed // one source each
	started    bool

	schema diff.Schema // last sent with a batch
	behind bool        // its feed overflowed; it will be reopened

	crossed map[string]time.Time // when objects last entered or left the selection, by UID

	cancel context.CancelFunc // of the consumers; used only by reconcile's goroutine
	done   sync.WaitGroup
}

// streamKey identifies a stream within its kind: the index of the source, and the namespace.
type streamKey struct {
	source    int
	namespace string
}

type streamState struct {
	status informer.Status
	// delivered is set once the initial state was sent completely.
	delivered bool
	// live is set for a stream that watches, or did before it failed.
	live bool
	// blind is set for a stream that was live and is now refused; blindReported once that was reported.
	blind, blindReported bool
	// trying is the time since which the stream has been trying to become live; zero in other states.
	trying time.Time
	// first is set until the stream's first list, across runs, is complete.
	first bool
	// interrupted is the gap to report if the kept state ended in the middle of a list.
	interrupted *informer.Gap
	// epoch is the epoch of the last complete state.
	epoch int64
	// foreign is set while a list is compared with objects that were made differently, such as with other
	// redaction rules. It stays set if the list could not read some of them.
	foreign *foreign
	// moved is the version in which the kind was watched before, until the gap for that is reported.
	moved string
	// lastErr is why the stream was last not live, and lastErrAt when it failed. gaps counts reported gaps; lists and watches count those of
	// earlier sources.
	lastErr              error
	lastErrAt            time.Time
	gaps, lists, watches int64
}

func (w *Watcher) newKind(t target, discoveryOnly bool) *kind {
	k := &kind{target: t, discoveryOnly: discoveryOnly, streams: map[streamKey]*streamState{}}
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

// selection returns what a source of the kind selects: everything, or the object with one name.
func (w *Watcher) selection(k *kind, name string) informer.Selection {
	if k.discoveryOnly {
		return informer.Selection{}
	}
	sel := informer.Selection{Labels: k.scope.Labels, Fields: k.scope.Fields}
	if name != "" {
		sel.Fields = "metadata.name=" + name
	}
	if k.Namespaced {
		sel.Namespaces = exact(k.scope.Namespaces)
		sel.Keep = keep(k.scope.Namespaces)
		if not := excluded(k.scope.Namespaces); not != "" {
			sel.Fields = strings.Trim(sel.Fields+","+not, ",")
		}
	}
	return sel
}

// open starts the kind's sources and their consumers.
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
			Strict: w.o.Kept != nil, // a consumer that falls behind reopens the feed
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

// transform redacts secrets before the engine stores an object. A kind that only wakes discovery keeps metadata
// only.
func (w *Watcher) transform(k *kind) *informer.Transform {
	if k.discoveryOnly {
		return &informer.Transform{Name: "metadata", Version: 1, Apply: func(u *unstructured.Unstructured) error {
			delete(u.Object, "spec")
			delete(u.Object, "status")
			return nil
		}}
	}
	gr := k.GroupResource()
	return &informer.Transform{
		Name: w.o.Redactor.Fingerprint(), Version: 1,
		Rewrite: func(raw []byte) ([]byte, error) { return w.o.Redactor.Redact(gr, raw) },
	}
}

// resource returns the resource in the version now being watched. It is safe for concurrent use.
func (k *kind) resource() Resource {
	if r := k.served.Load(); r != nil {
		return *r
	}
	return k.Resource
}

// move makes a parked kind watch another version from its next retry on.
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

// adopt adopts what discovery says of the kind: a CRD that was deleted and made anew may have other names and another
// schema under the same plural. w.mu is held.
func (w *Watcher) adopt(k *kind, to Resource) {
	r := k.resource()
	if r.Version != to.Version || reflect.DeepEqual(r, to) {
		return
	}
	k.served.Store(&to)
	if r.Kind != to.Kind {
		w.builder.schemas.Invalidate(to.Group, to.Version)
	}
}

// learnKind adopts the kind that an object has, which may be newer than discovery.
func (w *Watcher) learnKind(k *kind, v *Version) {
	r := k.resource()
	if v.Kind.Kind == r.Kind || v.Gone() || v.Rewritten {
		return
	}
	r.Kind, r.Singular = v.Kind.Kind, strings.ToLower(v.Kind.Kind)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.adopt(k, r)
	w.wakeSoon()
}

// retry makes a parked kind list again, compared with its known state.
func (k *kind) retry() {
	for _, f := range k.feeds {
		f.Retry(k.resource().Version)
	}
}

// retire reports the deletions that a parked kind's watch ended too early to deliver.
func (k *kind) retire() {
	for _, f := range k.feeds {
		f.Retire()
	}
}

// parked reports whether every stream of the kind is parked.
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

// Hurry makes the streams that were refused try again at once, such as when rights were granted; otherwise they do so
// once a minute. It is safe for concurrent use.
func (w *Watcher) Hurry() {
	w.mu.Lock()
	var feeds []*feed.Feed
	for _, k := range w.kinds {
		feeds = append(feeds, k.feeds...)
	}
	w.mu.Unlock()
	for _, f := range feeds { // without w.mu: the engine must not wait for this
		f.Hurry()
	}
}
