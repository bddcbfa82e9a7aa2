package capture

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
)

// Plan is what a Watcher would watch of what the server has now.
type Plan struct {
	// Kinds are in discovery's order.
	Kinds []Planned
	// Hidden are the kinds left out as noise, by plural name. Unmatched are globs that no kind matches
	// (yet).
	Hidden, Unmatched []string
	// Globs may match kinds that appear. Where there is one, the definitions of custom resources are
	// listed and watched, too.
	Globs []Glob
	// Catalog is what the server has.
	Catalog *Catalog
}

// Planned is a kind, and what its watch asks for.
type Planned struct {
	Resource Resource
	// Scope is the index of the scope that decides.
	Scope   int
	Streams []Selected
}

// Glob is a glob of a scope.
type Glob struct {
	Pattern string
	// Scope is the index of the scope; Narrowed says that it leaves kinds out.
	Scope    int
	Narrowed bool
	// Namespaces are where streams are, each one; empty for the whole cluster.
	Namespaces []string
}

// Selected is what one stream lists and watches.
type Selected struct {
	// Namespace is empty for the whole cluster.
	Namespace string
	// Labels and Fields are selectors. Name is set where the fields select the object of one name, for
	// which rights by name suffice.
	Labels, Fields, Name string
	// Filtered says that only some of what is listed is taken: globs of namespaces are matched here.
	Filtered bool
}

// Plan asks the server what it has and returns what Run would watch of it with Options.Kept. It is for a
// Watcher that does not run.
func (w *Watcher) Plan(ctx context.Context) (*Plan, error) {
	catalog, err := w.prepare(ctx, false)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
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
			p.Globs = append(p.Globs, Glob{Pattern: g, Scope: i, Narrowed: len(s.except) > 0, Namespaces: s.Namespaces.exact()})
		}
	}
	p.Hidden, p.Unmatched = slices.Sorted(maps.Keys(w.hidden)), w.unmatched
	return p, nil
}

// index is where a scope is among the watcher's.
func (w *Watcher) index(s *Scope) int {
	for i := range w.scopes {
		if s == &w.scopes[i] {
			return i
		}
	}
	return -1
}

// nameIn is the name that a field selector asks for; empty where it asks for none.
//
// Source: k8s.io/apiserver/pkg/endpoints/request.RequestInfoFactory, which takes it for the request's.
func nameIn(selector string) string {
	sel, err := fields.ParseSelector(selector)
	if err != nil {
		return "" // validated before
	}
	name, _ := sel.RequiresExactMatch("metadata.name")
	return name
}

// plan is what should be watched of a catalog: each kind as the first scope wants it that has it. w.mu
// is held.
func (w *Watcher) plan(c *Catalog) []target {
	var ts []target
	taken := map[string]bool{}
	w.unmatched = nil
	for i := range w.scopes {
		for _, t := range w.wanted(c, &w.scopes[i]) {
			if gr := t.GroupResource(); !taken[gr] {
				taken[gr] = true
				ts = append(ts, t)
			}
		}
		w.unmatched = append(w.unmatched, w.scopes[i].unmatched(c)...)
	}
	for _, t := range ts {
		delete(w.hidden, t.Resource.Resource)
	}
	return ts
}

// wanted is what a scope has of a catalog. What is watched already stays in its version while that is
// served.
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

// follows tells whether kinds that appear may be taken.
func (w *Watcher) follows() bool {
	return slices.ContainsFunc(w.scopes, func(s Scope) bool { return len(s.globs) > 0 })
}

// pinned is the version in which the kind is watched, or else is to be.
func (w *Watcher) pinned(r Resource) string {
	if k := w.kinds[r.GroupResource()]; k != nil {
		return k.resource().Version
	}
	return r.Version
}
