package capture

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tattler-dev/tattler/informer"
)

const crds = "customresourcedefinitions.apiextensions.k8s.io"

// How discovery is followed: now and then, and in quick steps after a CRD changed, because the
// server takes a moment between accepting a CRD and serving its objects.
const (
	pollDiscovery = 30 * time.Second
	firstStep     = 200 * time.Millisecond
	lastStep      = 4 * time.Second
)

// follow keeps discovery, outages and owners going until ctx ends.
func (w *Watcher) follow(ctx context.Context) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	poll := time.NewTimer(pollDiscovery)
	defer poll.Stop()
	step := pollDiscovery
	started := w.started
	for {
		select {
		case <-ctx.Done():
			return
		case <-started:
			started = nil
			w.announce(ctx)
		case <-w.wake:
			step = firstStep
			poll.Reset(step)
		case <-poll.C:
			if catalog, err := w.fetchCatalog(ctx); err == nil {
				w.reconcile(ctx, catalog)
			}
			if step *= 2; step > lastStep {
				step = pollDiscovery
			}
			poll.Reset(step)
		case now := <-tick.C:
			w.tick(ctx, now)
		}
	}
}

func (w *Watcher) wakeSoon() {
	select {
	case w.wake <- struct{}{}:
	default: // a look is due already
	}
}

func (w *Watcher) tick(ctx context.Context, now time.Time) {
	if w.owners != nil {
		w.ownersMu.Lock()
		w.owners.expire(now)
		w.ownersMu.Unlock()
	}
	w.mu.Lock()
	away := w.outage.tick(now)
	w.mu.Unlock()
	if away != nil {
		w.send(ctx, Message{Away: away})
	}
}

// plan is what should be watched of a catalog, by group and resource.
func (w *Watcher) plan(c *Catalog) []target {
	if w.targets != nil {
		ts := slices.Clone(w.targets)
		for i, t := range ts {
			if r, ok := c.Find(t.Group, t.Resource.Resource, t.Version); ok {
				ts[i].Resource = r
			} else {
				ts[i].Version = "" // not served now
			}
		}
		return slices.DeleteFunc(ts, func(t target) bool { return t.Version == "" })
	}
	var ts []target
	for _, r := range c.Everything() {
		if len(w.o.Namespaces.Include) > 0 && !r.Namespaced {
			continue
		}
		if !w.o.Noise && w.o.Quiet.Hidden(r.Group, r.Resource) {
			w.hidden[r.Resource] = true
			continue
		}
		if version, ok := w.pinned[r.GroupResource()]; ok {
			r, _ = c.Find(r.Group, r.Resource, version)
		}
		ts = append(ts, target{Resource: r})
	}
	return ts
}

// reconcile opens what discovery has and we do not watch. What discovery lost is kept while its
// group did not answer, and while its streams go on.
func (w *Watcher) reconcile(ctx context.Context, c *Catalog) {
	w.mu.Lock()
	first := w.unknown == nil
	if first {
		w.unknown = maps.Clone(c.failed)
	}
	plan := w.plan(c)
	var open []*kind
	served := map[string]bool{}
	for _, t := range plan {
		gr := t.GroupResource()
		served[gr] = true
		have := w.kinds[gr]
		if have == nil {
			w.pinned[gr] = t.Version
			appeared := !first && w.unknown[t.Group] == nil
			open = append(open, &kind{target: t, appeared: appeared})
			continue
		}
		if have.parked() {
			for _, s := range have.sources {
				s.Retry() // it is served again, or always was: relist against what we know
			}
		}
	}
	if r, ok := c.Find("apiextensions.k8s.io", "customresourcedefinitions", "v1"); ok && w.targets == nil && !served[crds] {
		if served[crds] = true; w.kinds[crds] == nil {
			open = append(open, &kind{target: target{Resource: r}, silent: true})
		}
	}
	for g := range w.unknown {
		if c.failed[g] == nil {
			delete(w.unknown, g)
		}
	}
	var lost []*kind
	for gr, k := range w.kinds {
		if !served[gr] && c.failed[k.Group] == nil && k.parked() {
			lost = append(lost, k)
		}
	}
	for _, k := range open {
		w.kinds[k.GroupResource()] = k
	}
	if first {
		w.waiting = len(open)
		for _, k := range open {
			if k.silent {
				w.waiting--
			}
		}
	}
	w.mu.Unlock()

	for _, k := range lost {
		for _, s := range k.sources {
			s.Retire() // the deletions that the watch did not live to send
		}
	}
	for _, k := range open {
		if err := w.open(ctx, k); err != nil {
			w.send(ctx, Message{Problem: fmt.Errorf("watch %s: %w", k.GroupResource(), err)})
			w.settle(k)
		}
	}
	if first && w.nothing() {
		close(w.started)
	}
}

// nothing is true where there is no kind to wait for.
func (w *Watcher) nothing() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.kinds {
		if !k.silent {
			return false
		}
	}
	return true
}

// open starts the sources of a kind and their consumers.
func (w *Watcher) open(ctx context.Context, k *kind) error {
	ctx, k.cancel = context.WithCancel(ctx)
	names := k.names
	if k.all() || k.owned {
		names = []string{""} // one source for all of them
	}
	transform := w.transform(k)
	k.streams = map[streamKey]*streamState{}
	selections := make([]informer.Selection, len(names))
	for i, name := range names {
		selections[i] = w.selection(k, name)
		for _, ns := range append(selections[i].Namespaces, "")[:max(1, len(selections[i].Namespaces))] {
			k.streams[streamKey{i, ns}] = &streamState{}
		}
	}
	for i := range names {
		s, err := w.cluster.Source(k.GVR(), informer.SourceOptions{
			Selection: selections[i], Transform: transform,
			OnState: func(st informer.Status) { w.onState(k, i, st) },
		})
		if err != nil {
			return err
		}
		w.mu.Lock()
		k.sources = append(k.sources, s)
		w.mu.Unlock()
		f, err := s.Feed("capture", informer.FeedOptions{})
		if err != nil {
			return err
		}
		k.done.Add(1)
		go func() {
			defer k.done.Done()
			w.consume(ctx, k, i, f)
		}()
	}
	return nil
}

// selection is what a source of the kind keeps: all, or the object of one name.
func (w *Watcher) selection(k *kind, name string) informer.Selection {
	if k.silent {
		return informer.Selection{}
	}
	sel := informer.Selection{Labels: w.o.Labels, Fields: w.o.Fields}
	if name != "" {
		sel.Fields = "metadata.name=" + name
	}
	if k.Namespaced {
		sel.Namespaces = w.o.Namespaces.exact()
		sel.Keep = w.o.Namespaces.keep()
		if not := w.o.Namespaces.excluded(); not != "" {
			sel.Fields = strings.Trim(sel.Fields+","+not, ",")
		}
	}
	return sel
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
		Wants: func(raw []byte) bool { return w.o.Redactor.Wants(gr, raw) },
		Apply: func(u *unstructured.Unstructured) error { return w.o.Redactor.Apply(gr, u.Object) },
	}
}

// parked is true where every stream of the kind was told that the kind is not served.
func (k *kind) parked() bool {
	for _, st := range k.streams {
		if st.status.State != informer.Parked {
			return false
		}
	}
	return len(k.streams) > 0
}
