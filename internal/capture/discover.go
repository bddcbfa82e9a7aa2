package capture

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/internal/openapi"
)

const crds = "customresourcedefinitions.apiextensions.k8s.io"

// Discovery is polled at intervals, and in quick steps after a CRD changed: the server needs a moment between
// accepting a CRD and serving its objects.
const (
	pollDiscovery = 30 * time.Second
	firstStep     = 200 * time.Millisecond
	lastStep      = 4 * time.Second
	// discoveryTimeout bounds one poll, so that a server that accepts connections but never answers does not
	// block us.
	discoveryTimeout = 20 * time.Second
)

// discover follows discovery until ctx ends.
func (w *Watcher) discover(ctx context.Context) {
	step := pollDiscovery
	due := time.Now().Add(step)
	timer := time.NewTimer(step)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
			step = firstStep
			if soon := time.Now().Add(step); soon.Before(due) { // frequent wake-ups must not postpone it
				due = soon
				timer.Reset(step)
			}
			continue
		case <-timer.C:
		}
		w.reopenBehind(ctx)
		if catalog, err := w.fetchCatalog(ctx); err == nil {
			w.reconcile(ctx, catalog)
		}
		if step *= 2; step > lastStep {
			step = pollDiscovery
		}
		w.refreshSchemas(ctx, step == pollDiscovery)
		due = time.Now().Add(step)
		timer.Reset(step)
	}
}

// fetchSchemas gets an OpenAPI document.
func (w *Watcher) fetchSchemas(ctx context.Context, path string) ([]byte, error) {
	b, err := w.cluster.Get(ctx, path, nil)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return nil, fmt.Errorf("%w: %w", openapi.ErrRefused, err)
	}
	return b, err
}

// refreshSchemas invalidates the schemas of changed CRDs and checks whether their objects are served in another
// form. The server publishes schemas some time after the CRD, so each quick poll repeats this until the last.
func (w *Watcher) refreshSchemas(ctx context.Context, last bool) {
	if w.invalidateSchemas(last) {
		ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
		defer cancel()
		_ = w.cluster.RefreshForms(ctx) // the cluster repeats this every minute anyway
	}
}

// invalidateSchemas reports whether any CRD had changed.
func (w *Watcher) invalidateSchemas(last bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.changedGroups) == 0 {
		return false
	}
	for _, k := range w.kinds {
		if w.changedGroups[k.Group] {
			w.builder.schemas.Invalidate(k.Group, k.resource().Version)
		}
	}
	if last {
		clear(w.changedGroups)
	}
	return true
}

// crdsChanged schedules an early poll of discovery and marks the CRDs' groups as changed.
func (w *Watcher) crdsChanged(deltas []feed.Delta) {
	for _, d := range deltas {
		if _, group, ok := strings.Cut(d.Key.Name, "."); ok && !d.Initial { // a CRD's name is PLURAL.GROUP
			w.mu.Lock()
			w.changedGroups[group] = true
			w.mu.Unlock()
			w.wakeSoon()
		}
	}
}

func (w *Watcher) wakeSoon() {
	select {
	case w.wake <- struct{}{}:
	default: // a poll is already due
	}
}

func (w *Watcher) fetchCatalog(ctx context.Context) (*Catalog, error) {
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	c, err := FetchCatalog(ctx, w.discovery)
	if err != nil && late(ctx) { // whose error takes many, sometimes misleading forms
		return nil, fmt.Errorf("discover API resources: no answer within %v: %w", discoveryTimeout, cmp.Or(ctx.Err(), context.DeadlineExceeded))
	}
	return c, err
}

// late reports whether a context has ended, or must end now: on a busy machine, its timer may be behind, and client-go's rate
// limiter then refuses a request with an error of its own.
func late(ctx context.Context) bool {
	deadline, bounded := ctx.Deadline()
	return ctx.Err() != nil || bounded && !time.Now().Before(deadline)
}

// work lists what a poll of discovery leaves to do.
type work struct {
	stop  []*kind // to be opened as another one
	open  []*kind
	retry []*kind // parked, but served again
	lost  []*kind // parked, and not served
	ended []*kind // lost, and without objects
}

// reconcile opens the kinds that discovery reports and that are not watched yet. A kind that discovery no
// longer reports stays while its group does not answer and while its streams run. Only one goroutine calls it.
func (w *Watcher) reconcile(ctx context.Context, c *Catalog) {
	todo := w.compare(c)
	for _, k := range todo.lost {
		k.retire()
	}
	w.end(ctx, todo.ended)
	for _, k := range todo.stop {
		k.stop()
	}
	if len(todo.stop) > 0 && w.o.Kept != nil && !w.flush(ctx) {
		return
	}
	for _, k := range todo.retry {
		k.retry()
	}
	for _, k := range todo.open {
		if err := w.open(ctx, k); err != nil && ctx.Err() == nil {
			w.send(ctx, Message{Problem: fmt.Errorf("watch %s: %w", k.GroupResource(), err)})
			w.fail(k, err)
		}
	}
}

// compare derives the work from a poll of discovery and updates the kinds.
func (w *Watcher) compare(c *Catalog) (todo work) {
	w.learn(c)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.catalog = c
	first := w.unknown == nil
	if first {
		w.unknown = maps.Clone(c.failed)
	}
	served := map[string]bool{}
	for _, t := range w.plan(c) {
		served[t.GroupResource()] = true
		have := w.kinds[t.GroupResource()]
		if have != nil {
			have.vanished = false
			w.adopt(have, t.Resource)
		}
		switch {
		case have == nil:
			k := w.newKind(t, false)
			k.appeared.Store(!first && w.unknown[t.Group] == nil)
			todo.open = append(todo.open, k)
		case have.Namespaced != t.Namespaced: // its streams may not exist any longer
			k := w.newKind(t, false)
			k.appeared.Store(true)
			todo.stop, todo.open = append(todo.stop, have), append(todo.open, k)
		case have.parked() && (have.resource().Version == t.Version || c.failed[t.Group] == nil):
			have.move(t.Resource)
			todo.retry = append(todo.retry, have)
		}
	}
	if r, ok := c.Find("apiextensions.k8s.io", "customresourcedefinitions", "v1"); ok && w.follows() && !served[crds] {
		if served[crds] = true; w.kinds[crds] == nil {
			todo.open = append(todo.open, w.newKind(target{Resource: r}, true))
		}
	}
	for _, k := range w.kinds {
		switch {
		case served[k.GroupResource()] || c.failed[k.Group] != nil || !k.parked():
			w.markStarted(k) // a vanished kind of a group that does not answer is not waited for
		case k.empty():
			todo.ended = append(todo.ended, k)
		default:
			k.appeared.Store(true) // if it comes back, its objects were created
			todo.lost = append(todo.lost, k)
		}
	}
	for _, t := range w.selected(w.goneKinds(c, true)) {
		if w.kinds[t.GroupResource()] == nil {
			k := w.newKind(t, false)
			k.vanished = true
			todo.open = append(todo.open, k)
		}
	}
	maps.DeleteFunc(w.unknown, func(group string, _ error) bool { return c.failed[group] == nil })
	for _, k := range todo.open {
		w.kinds[k.GroupResource()] = k
	}
	if first {
		w.waiting = len(slices.DeleteFunc(slices.Clone(todo.open), func(k *kind) bool { return k.discoveryOnly }))
		w.startedIfDone()
	} else {
		for _, k := range todo.open {
			k.late = true
		}
	}
	return todo
}
