package access

import (
	"context"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/selection"
)

// view decides what of a query is visible, from its kinds, clusters and namespaces alone.
type view struct {
	*checker
	kinds []journal.Kind // of the query, and those that its named objects may own
	named []string       // the query's namespaces, if it names them; else nil
	scope selection.Scope
}

// view returns what the viewer of a context may see of a query.
func (s *Source) view(ctx context.Context, q *journal.Query) (*journal.Scope, error) {
	return s.viewOf(ctx, q, func([]journal.Kind) (map[selection.Place]bool, error) { return s.places(ctx, q) })
}

// viewOf is view with the places that the query may concern. placesOf gets the kinds that are not visible everywhere.
func (s *Source) viewOf(ctx context.Context, q *journal.Query, placesOf func(narrow []journal.Kind) (map[selection.Place]bool, error)) (*journal.Scope, error) {
	v := view{checker: newChecker(ctx), named: named(q)}
	v.scope = selection.Scope{Places: map[selection.Place]time.Time{}, Gaps: map[selection.Place]bool{}}
	if _, err := May(ctx, nil); err != nil { // an absence needs no right, but a viewer
		return nil, err
	}
	kinds, err := s.Journal.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	v.kinds = s.concerned(kinds, q)
	narrow, err := v.everywhere()
	if err != nil || len(narrow) == 0 {
		return &v.scope, err
	}
	places, err := placesOf(narrow)
	if err != nil {
		return nil, err
	}
	if err := v.somewhere(narrow, places); err != nil {
		return nil, err
	}
	return &v.scope, v.forgetFormer()
}

// maxNumbers is the longest range of sequence numbers of which the places are looked up.
const maxNumbers = 8192

// places returns the places that a query may concern: those of the journal. For few sequence numbers, such as those of a live
// page, they are those of the changes with these numbers, and for gaps those that have some. That depends on no name either.
func (s *Source) places(ctx context.Context, q *journal.Query) (map[selection.Place]bool, error) {
	switch {
	case named(q) != nil:
	case q.Before > 0 && q.Before-q.After <= maxNumbers:
		return s.Journal.PlacesBetween(ctx, q.After, q.Before)
	case len(q.Ops) > 0 && !slices.ContainsFunc(q.Ops, event.Op.HasObject):
		found := map[selection.Place]bool{}
		for e, err := range s.Journal.Rows(ctx, journal.Query{Ops: []event.Op{event.Gap}}) {
			if err != nil {
				return nil, err
			}
			found[placeOf(e.Kind, e.Namespace)] = true
		}
		return found, nil
	}
	return s.Journal.Places(ctx)
}

// concerned returns the kinds that a query concerns.
func (s *Source) concerned(kinds []journal.Kind, q *journal.Query) []journal.Kind {
	resources := q.Resources
	if len(resources) > 0 && len(q.Names) > 0 {
		resources = slices.Concat(resources, q.Dependents())
	}
	own := s.Journal.Cluster()
	return slices.DeleteFunc(slices.Clone(kinds), func(k journal.Kind) bool {
		return len(resources) > 0 && !slices.Contains(resources, k.GroupResource()) || len(q.Clusters) > 0 && !slices.Contains(q.Clusters, k.ClusterOr(own))
	})
}

// named returns the namespaces of a query, if it names them all; else nil.
func named(q *journal.Query) []string {
	if slices.ContainsFunc(q.Namespaces, selection.IsGlob) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(q.Namespaces), func(ns string) bool { return ns == "" })
}

// everywhere decides about the kinds in the whole cluster, and returns those that are not visible there, but may be in
// namespaces.
func (v *view) everywhere() (narrow []journal.Kind, err error) {
	for _, k := range v.kinds {
		v.want(TargetOf(k, ""))
	}
	if err := v.decide(); err != nil {
		return nil, err
	}
	for _, k := range v.kinds {
		switch {
		case v.known[TargetOf(k, "")]:
			v.scope.Places[placeOf(k, "")] = time.Time{}
		case k.Namespaced:
			narrow = append(narrow, k)
		}
	}
	return narrow, nil
}

// somewhere decides about kinds in namespaces: in those where the journal has the kind. A namespace that the query names, and
// in which nothing of that is visible, is checked for all kinds: so it costs as many reviews whether or not it exists.
func (v *view) somewhere(kinds []journal.Kind, places map[selection.Place]bool) error {
	namespaces := v.namespaces(places)
	visible := map[Namespace]bool{}
	check := func(wanted func(k journal.Kind, ns Namespace) bool) error {
		each := func(f func(k journal.Kind, ns Namespace)) {
			for _, ns := range namespaces {
				for _, k := range kinds {
					if k.Cluster == ns.Cluster && wanted(k, ns) {
						f(k, ns)
					}
				}
			}
		}
		each(func(k journal.Kind, ns Namespace) { v.want(TargetOf(k, ns.Name)) })
		if err := v.decide(); err != nil {
			return err
		}
		seen := map[Namespace]bool{}
		each(func(k journal.Kind, ns Namespace) {
			if v.known[TargetOf(k, ns.Name)] {
				seen[ns] = true
				v.scope.Places[placeOf(k, ns.Name)] = time.Time{}
			}
		})
		for ns := range seen {
			visible[ns] = true
		}
		return nil
	}
	err := check(func(k journal.Kind, ns Namespace) bool {
		return places[placeOf(k, ns.Name)] || v.named != nil && places[placeOf(k, "")]
	})
	if err != nil || v.named == nil {
		return err
	}
	return check(func(_ journal.Kind, ns Namespace) bool { return !visible[ns] })
}

// namespaces returns those that the query names, in the clusters of its kinds; else all.
func (v *view) namespaces(places map[selection.Place]bool) (all []Namespace) {
	seen := map[Namespace]bool{}
	add := func(cluster, name string) {
		if ns := (Namespace{cluster, name}); name != "" && name != Nowhere && !seen[ns] {
			seen[ns] = true
			all = append(all, ns)
		}
	}
	for _, k := range v.kinds {
		for _, name := range v.named {
			add(k.Cluster, name)
		}
	}
	if v.named == nil {
		for p := range places {
			add(p.Cluster, p.Namespace)
		}
	}
	return all
}

// forgetFormer leaves objects out that are older than their namespace: they are visible only with a right to the kind in the
// whole cluster. In a namespace of which that is not known, nothing is visible.
func (v *view) forgetFormer() error {
	var namespaces []Namespace
	index := map[Namespace]int{}
	for p := range v.scope.Places {
		ns := Namespace{p.Cluster, p.Namespace}
		if _, ok := index[ns]; !ok && p.Namespace != "" {
			index[ns] = len(namespaces)
			namespaces = append(namespaces, ns)
		}
	}
	if len(namespaces) == 0 {
		return nil
	}
	times, err := created(v.ctx, namespaces)
	if err != nil {
		return err
	}
	for p := range v.scope.Places {
		if p.Namespace == "" {
			continue
		}
		at := times[index[Namespace{p.Cluster, p.Namespace}]]
		if at.IsZero() {
			delete(v.scope.Places, p)
			continue
		}
		v.scope.Places[p] = at
		if v.named != nil {
			v.scope.Gaps[selection.Place{Cluster: p.Cluster, Resource: p.Resource}] = true
		}
	}
	return nil
}

// Nowhere is the name of no namespace: a query for it alone selects nothing in namespaces, and costs no reviews.
const Nowhere = "-"

func placeOf(k journal.Kind, namespace string) selection.Place {
	return selection.Place{Cluster: k.Cluster, Resource: k.GroupResource(), Namespace: namespace}
}
