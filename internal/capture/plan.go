package capture

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
)

// Plan is what a Watcher would watch, given the server's current resource types.
type Plan struct {
	// Kinds are in discovery's order.
	Kinds []Planned
	// Hidden are kinds left out as noise, by plural name. Unmatched are globs that match no kind (yet).
	Hidden, Unmatched []string
	// Globs may match kinds that appear later. If there are any, CustomResourceDefinitions are listed and
	// watched too.
	Globs []Glob
	// Namespaces are those that scopes name, sorted. They need not exist (yet).
	Namespaces []string
	// Catalog is the server's resource types.
	Catalog *Catalog
}

// Planned is a kind with the requests of its watch.
type Planned struct {
	Resource Resource
	// Scope is the index of the scope that applies.
	Scope   int
	Streams []Selected
}

// Glob is a glob of a scope.
type Glob struct {
	Pattern string
	// Scope is the index of the scope. Narrowed is set if the scope excludes kinds.
	Scope    int
	Narrowed bool
	// Namespaces are watched by one stream each; empty for the whole cluster.
	Namespaces []string
}

// Selected is what one stream lists and watches.
type Selected struct {
	// Namespace is empty for the whole cluster.
	Namespace string
	// Labels and Fields are selectors. Name is set if the fields select a single object by name, which needs
	// only rights on that name.
	Labels, Fields, Name string
	// Filtered is set if listed objects are filtered here, because the server cannot match namespace globs.
	Filtered bool
}

// Plan runs discovery and returns what Run would watch. Call it on a Watcher that does not
// run.
func (w *Watcher) Plan(ctx context.Context) (*Plan, error) {
	catalog, err := w.prepare(ctx)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.planned(catalog), nil
}

// Planned returns what Plan would return now, of a Watcher that runs; nil before its first poll of discovery. It sends
// nothing, and is safe for concurrent use.
func (w *Watcher) Planned() *Plan {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.catalog == nil {
		return nil
	}
	return w.planned(w.catalog)
}

// planned describes the plan for a catalog; w.mu is held.
func (w *Watcher) planned(catalog *Catalog) *Plan {
	p := &Plan{Catalog: catalog}
	for _, t := range w.plan(catalog) {
		k := w.newKind(t, false)
		planned := Planned{Resource: t.Resource, Scope: w.index(t.scope)}
		for _, key := range slices.SortedFunc(maps.Keys(k.streams), compareStreams) {
			sel := k.selections[key.source]
			planned.Streams = append(planned.Streams, Selected{
				Namespace: key.namespace, Labels: sel.Labels, Fields: sel.Fields, Name: nameIn(sel.Fields), Filtered: sel.Keep != nil,
			})
		}
		p.Kinds = append(p.Kinds, planned)
	}
	for i := range w.scopes {
		s := &w.scopes[i]
		for _, g := range s.globs {
			p.Globs = append(p.Globs, Glob{Pattern: g, Scope: i, Narrowed: len(s.except) > 0, Namespaces: exact(s.Namespaces)})
		}
	}
	p.Namespaces = w.namespaces()
	p.Hidden, p.Unmatched = slices.Sorted(maps.Keys(w.hidden)), w.unmatched
	return p
}

// namespaces returns the namespaces that scopes name, sorted.
func (w *Watcher) namespaces() (all []string) {
	for i := range w.scopes {
		all = append(all, byName(w.scopes[i].Namespaces)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// index returns a scope's index in the watcher.
func (w *Watcher) index(s *Scope) int {
	for i := range w.scopes {
		if s == &w.scopes[i] {
			return i
		}
	}
	return -1
}

// nameIn returns the name that a field selector requires; empty if it requires none.
//
// Source: k8s.io/apiserver/pkg/endpoints/request.RequestInfoFactory, which uses it as the request's name.
func nameIn(selector string) string {
	sel, err := fields.ParseSelector(selector)
	if err != nil {
		return "" // validated before
	}
	name, _ := sel.RequiresExactMatch("metadata.name")
	return name
}

// plan returns what to watch of a catalog; w.mu is held.
func (w *Watcher) plan(c *Catalog) []target {
	w.unmatched = nil
	for i := range w.scopes {
		w.unmatched = append(w.unmatched, w.scopes[i].unmatched(c)...)
	}
	return w.selected(c)
}

// selected returns the kinds of a catalog that are selected, each as in the first scope that selects it. w.mu is held.
func (w *Watcher) selected(c *Catalog) []target {
	var ts []target
	taken := map[string]bool{}
	for i := range w.scopes {
		for _, t := range w.wanted(c, &w.scopes[i]) {
			if gr := t.GroupResource(); !taken[gr] {
				taken[gr] = true
				ts = append(ts, t)
			}
		}
	}
	for _, t := range ts {
		delete(w.hidden, t.Resource.Resource)
	}
	return ts
}

// wanted returns what a scope selects from a catalog. A kind that is already watched keeps its version while
// that is served.
func (w *Watcher) wanted(c *Catalog, s *Scope) []target {
	var ts []target
	for _, t := range s.targets {
		if r, ok := c.Find(t.Group, t.Resource.Resource, w.pinned(t.Resource)); ok && !s.excludes(r) {
			t.Resource, t.scope = r, s
			ts = append(ts, t)
		}
	}
	for _, r := range c.Everything() {
		switch {
		case s.excludes(r) || !s.globbed(r):
		case !s.Noise && w.o.Quiet.Hidden(r.Group, r.Resource):
			w.hidden[r.Resource] = true
		default:
			r, _ = c.Find(r.Group, r.Resource, w.pinned(r))
			ts = append(ts, target{Resource: r, scope: s})
		}
	}
	return ts
}

// follows reports whether kinds that appear later may be selected.
func (w *Watcher) follows() bool {
	return slices.ContainsFunc(w.scopes, func(s Scope) bool { return len(s.globs) > 0 })
}

// pinned returns the version in which the kind is watched, or r's version.
func (w *Watcher) pinned(r Resource) string {
	if k := w.kinds[r.GroupResource()]; k != nil {
		return k.resource().Version
	}
	return r.Version
}
