package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Await returns nil once the cache is at least as new as obj, the result of a write: later reads show that write or a newer
// one. It is for programs that act on what they read and must not act on a state from before their own last write.
//
//   - The cache has seen a version once its stream has, even if the object was deleted or recreated meanwhile.
//   - For an object that the source does not select by namespace, key or labels, Await returns nil at once. If only a field
//     selector excludes it, the next bookmark of the watch ends the wait, within about a minute.
//   - If the server's history is replaced and the cache notices (a new epoch), Await returns nil after the list that
//     follows.
//   - Resource versions are comparable numbers (KEP-5504). For an aggregated API server with other versions, Await waits
//     until the cache has exactly that version of the object; if a newer one overtakes it, only ctx ends the wait.
//
// For a view of metadata of which a typed client wrote an object, pass &metav1.PartialObjectMetadata{ObjectMeta: obj.ObjectMeta}.
//
// When ctx ends, the error names the cache's version and the stream's error, if it has one. If the source is closed, the
// error is ErrClosed. An object without a resource version is an error.
func (i *Informer[T]) Await(ctx context.Context, obj T) error {
	return i.source.await(ctx, obj)
}

func (s *Source) await(ctx context.Context, obj metav1.Object) error {
	k := Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	if obj.GetResourceVersion() == "" {
		return fmt.Errorf("await %s %s: the object has no resource version; pass the object that the write returned", s.gvr.GroupResource(), k)
	}
	if !s.covers(k, obj.GetLabels()) {
		return nil
	}
	for _, st := range s.streamsOf(k.Namespace) {
		if err := st.await(ctx, k, obj.GetResourceVersion()); err != nil {
			return err
		}
	}
	return nil
}

// covers reports whether the source selects an object, as far as its key and labels show.
func (s *Source) covers(k Key, has labels.Set) bool {
	sel := s.opts.Selection
	if sel.Keep != nil && !sel.Keep(k.Namespace, k.Name) {
		return false
	}
	wants, err := labels.Parse(sel.Labels)
	return err != nil || wants.Matches(has)
}

func (s *stream) await(ctx context.Context, k Key, version string) error {
	epoch := s.store.Epoch()
	changed, leave := s.progress.join()
	defer leave()
	for {
		state, closed := s.source.watchState()
		st := s.Status()
		switch {
		case s.reached(&st, k, version), st.Epoch != epoch && st.State == Watching && st.Synced:
			return nil
		case closed:
			return ErrClosed
		}
		select {
		case <-changed:
			changed = s.progress.next()
		case <-state:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("await version %s of %s %s: the cache is at version %q: %w",
				version, s.id.Resource.GroupResource(), k, st.Version, context.Cause(ctx)), st.Err)
		}
	}
}

// reached reports whether the stream has seen a version. Before the first list is complete, it has not.
func (s *stream) reached(st *Status, k Key, version string) bool {
	if !st.Loaded {
		return false
	}
	if c, ok := wire.CompareVersions(st.Version, version); ok {
		return c >= 0
	}
	v := s.store.Get(store.Key(k))
	return st.Version == version || v != nil && v.RV() == version
}

// progress wakes goroutines that wait for a stream's next commit. The zero value is ready.
type progress struct {
	waiting atomic.Int32

	mu      sync.Mutex
	changed chan struct{}
}

// join returns a channel that is closed after the stream's next commit; call leave when done waiting.
func (p *progress) join() (changed <-chan struct{}, leave func()) {
	p.waiting.Add(1)
	return p.next(), func() { p.waiting.Add(-1) }
}

// next returns the channel for the next commit.
func (p *progress) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.changed
}

// notify wakes the waiting goroutines. Without waiters it costs one load.
func (p *progress) notify() {
	if p.waiting.Load() == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}
