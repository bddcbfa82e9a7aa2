package kinds

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/tattler-dev/tattler/informer"
)

var (
	crds        = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// After a change, discovery is read at doubling intervals: the server takes a moment between accepting a CRD
// and serving its objects, and some seconds until all of its parts agree.
const (
	firstStep = 200 * time.Millisecond
	lag       = 4 * time.Second
	usually   = time.Minute
)

type watch struct {
	ctx       context.Context
	stop      context.CancelCauseFunc
	discovery discovery.DiscoveryInterfaceWithContext
	every     time.Duration
	log       *slog.Logger

	definitions, services *informer.Informer[*unstructured.Unstructured]
	wake                  chan struct{}
	following             sync.WaitGroup

	known   map[schema.GroupResource]Kind // the reported kinds
	begun   bool
	problem string // the last problem logged
}

func newWatch(ctx context.Context, c *informer.Cluster, o Options) (*watch, error) {
	w := &watch{every: o.Every, log: o.Log, wake: make(chan struct{}, 1), known: map[schema.GroupResource]Kind{}}
	if w.every <= 0 {
		w.every = usually
	}
	if w.log == nil {
		w.log = slog.Default()
	}
	var err error
	if w.discovery, err = client(c); err != nil {
		return nil, err
	}
	slim := func(o *informer.ViewOptions) {
		o.DropManagedFields, o.NoCheckpoint = true, true
		o.Transform = &informer.Transform{Name: "kinds", Version: 1, Apply: withoutSchemas}
	}
	if w.definitions, err = informer.Unstructured(c, crds, slim); err != nil {
		return nil, err
	}
	if w.services, err = informer.Unstructured(c, apiServices, slim); err != nil {
		w.definitions.Close()
		return nil, err
	}
	w.ctx, w.stop = context.WithCancelCause(ctx)
	return w, nil
}

// withoutSchemas removes the large part of a CRD.
func withoutSchemas(u *unstructured.Unstructured) error {
	for _, v := range versions(u) {
		delete(v, "schema")
	}
	return nil
}

func versions(crd *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions")
	items, _ := list.([]any)
	var all []map[string]any
	for _, item := range items {
		if v, ok := item.(map[string]any); ok {
			all = append(all, v)
		}
	}
	return all
}

func (w *watch) close() {
	w.stop(nil)
	w.following.Wait()
	w.definitions.Close()
	w.services.Close()
}

// run reports changes until the context ends, or report returns false, which is not an error.
func (w *watch) run(report func(Change) bool) error {
	for _, i := range []*informer.Informer[*unstructured.Unstructured]{w.definitions, w.services} {
		// An API server may serve only one of the two.
		if err := i.Wait(w.ctx); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("watch kinds: %w", w.cause(err))
		}
		changes, err := i.Subscribe("kinds", informer.SubscribeOptions{SkipInitial: true})
		if err != nil {
			return fmt.Errorf("watch kinds: %w", err)
		}
		w.following.Go(func() { w.follow(changes) })
	}
	step := firstStep
	timer := time.NewTimer(0)
	defer timer.Stop()
	var due time.Time
	for {
		select {
		case <-w.ctx.Done():
			return w.cause(w.ctx.Err())
		case <-w.wake:
			step = firstStep
			if soon := time.Now().Add(step); soon.Before(due) { // frequent changes do not delay a read that is due
				due = soon
				timer.Reset(step)
			}
			continue
		case <-timer.C:
		}
		settled, wanted := w.look(report)
		if !wanted {
			return nil
		}
		if step *= 2; step > w.every || step > lag && settled {
			step = w.every
		}
		due = time.Now().Add(step)
		timer.Reset(step)
	}
}

// cause returns the reason for which the watch ended, unless the caller ended it.
func (w *watch) cause(err error) error {
	if cause := context.Cause(w.ctx); cause != nil && errors.Is(cause, informer.ErrClosed) {
		return cause
	}
	return err
}

// follow triggers a read of discovery after each change.
func (w *watch) follow(changes *informer.Subscription[*unstructured.Unstructured]) {
	defer changes.Stop()
	for _, err := range changes.All(w.ctx) {
		if err != nil {
			if w.ctx.Err() == nil {
				w.stop(err)
			}
			return
		}
		select {
		case w.wake <- struct{}{}:
		default: // a read is already pending
		}
	}
}

// look reads discovery and reports the changes. settled means that no further change is expected by itself.
func (w *watch) look(report func(Change) bool) (settled, wanted bool) {
	found, err := look(w.ctx, w.discovery)
	if w.ctx.Err() != nil {
		return false, true
	}
	if err != nil {
		w.failed(err)
		return false, true
	}
	w.failed(found.partial())
	served := found.kinds(w.known)
	now := make(map[schema.GroupResource]Kind, len(served))
	for _, k := range served {
		now[k.Resource.GroupResource()] = k
	}
	e := w.evidence()
	settled = len(found.failed) == 0 && e.agrees(now)
	initial := !w.begun
	w.begun = true
	for _, gr := range slices.SortedFunc(maps.Keys(w.known), compare) {
		k := w.known[gr]
		if now[gr] == k {
			continue
		}
		if e.speaksFor(k, found, now) {
			settled, now[gr] = false, k
			continue
		}
		delete(w.known, gr)
		if !report(Change{Kind: k, Gone: true}) {
			return false, false
		}
	}
	for _, k := range served {
		gr := k.Resource.GroupResource()
		if _, known := w.known[gr]; known || now[gr] != k {
			continue
		}
		w.known[gr] = k
		if !report(Change{Kind: k, Initial: initial}) {
			return false, false
		}
	}
	return settled, true
}

func compare(a, b schema.GroupResource) int {
	if a.Group == b.Group && a.Resource == b.Resource {
		return 0
	}
	if a.Group < b.Group || a.Group == b.Group && a.Resource < b.Resource {
		return -1
	}
	return 1
}

// failed logs the reason for which discovery cannot be read completely, once, and the recovery.
func (w *watch) failed(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case text == w.problem:
	case err != nil:
		w.log.Warn("discovery cannot be read completely; retrying", "error", err)
	default:
		w.log.Info("discovery can be read again")
	}
	w.problem = text
}

// evidence is the content of CRDs and APIServices, which can be newer than discovery.
type evidence struct {
	defined  map[schema.GroupVersionResource]bool // established, and served
	services map[schema.GroupVersion]bool
}

func (w *watch) evidence() evidence {
	e := evidence{map[schema.GroupVersionResource]bool{}, map[schema.GroupVersion]bool{}}
	for crd, err := range w.definitions.All() {
		if err != nil || !established(crd) {
			continue
		}
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(crd.Object, "status", "acceptedNames", "plural")
		for _, v := range versions(crd) {
			if name, _ := v["name"].(string); v["served"] == true {
				e.defined[schema.GroupVersionResource{Group: group, Version: name, Resource: plural}] = true
			}
		}
	}
	for s, err := range w.services.All() {
		if err == nil {
			group, _, _ := unstructured.NestedString(s.Object, "spec", "group")
			version, _, _ := unstructured.NestedString(s.Object, "spec", "version")
			e.services[schema.GroupVersion{Group: group, Version: version}] = true
		}
	}
	return e
}

func established(crd *unstructured.Unstructured) bool {
	list, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	return slices.ContainsFunc(list, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Established" && condition["status"] == "True"
	})
}

// agrees reports whether discovery has the kinds that CRDs define.
func (e evidence) agrees(now map[schema.GroupResource]Kind) bool {
	for gvr := range e.defined {
		if _, ok := now[gvr.GroupResource()]; !ok {
			return false
		}
	}
	return true
}

// speaksFor reports whether a kind may still be served although discovery does not have it as known.
func (e evidence) speaksFor(k Kind, found *catalog, now map[schema.GroupResource]Kind) bool {
	if other, ok := now[k.Resource.GroupResource()]; ok && other.Resource == k.Resource {
		return false // it was recreated with another name or scope
	}
	gv := k.Resource.GroupVersion()
	_, has := found.has[gv]
	return found.failedGroup(gv.Group) || e.defined[k.Resource] || e.services[gv] && !has
}
