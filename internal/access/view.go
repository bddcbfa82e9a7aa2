package access

import (
	"context"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/journal"
)

// resource is a group-resource of a cluster.
type resource struct{ name, cluster string }

func resourceOf(k journal.Kind) resource { return resource{k.GroupResource(), k.Cluster} }

// view decides which changes of a query are shown.
type view struct {
	*checker
	q     journal.Query
	kinds map[resource]journal.Kind // for the owners of objects
}

func (s *Source) newView(ctx context.Context, q journal.Query) (*view, error) {
	v := &view{checker: newChecker(ctx), q: q}
	if _, err := May(ctx, nil); err != nil { // an absence needs no right, but a viewer
		return nil, err
	}
	if len(q.Names) == 0 || len(q.Owned) == 0 {
		return v, nil
	}
	kinds, err := s.Journal.Kinds(ctx)
	v.kinds = map[resource]journal.Kind{}
	for _, k := range kinds {
		v.kinds[resourceOf(k)] = k
	}
	return v, err
}

// targets returns the rights that decide about a change.
func (v *view) targets(e *journal.Entry) []Target {
	if e.Op == event.Absent {
		return nil
	}
	all := []Target{TargetOf(e.Kind, e.Namespace)}
	if v.ofKind(e) {
		for _, ns := range v.named() {
			all = append(all, TargetOf(e.Kind, ns))
		}
	}
	if v.owned(e) {
		for _, k := range v.kinds {
			if k.Cluster == e.Kind.Cluster && v.owns(k.GroupResource()) {
				all = append(all, TargetOf(k, e.Namespace))
			}
		}
	}
	return all
}

// shows reports whether a change is shown. The rights are known.
func (v *view) shows(e *journal.Entry) bool {
	switch {
	case e.Op == event.Absent:
		return true
	case v.known[TargetOf(e.Kind, e.Namespace)]:
		return !v.owned(e) || v.reaches(e)
	case v.ofKind(e):
		return slices.ContainsFunc(v.named(), func(ns string) bool { return v.known[TargetOf(e.Kind, ns)] })
	}
	return false
}

// ofKind reports whether a change is a gap in all namespaces of a kind.
func (*view) ofKind(e *journal.Entry) bool {
	return e.Op == event.Gap && e.Namespace == "" && e.Kind.Namespaced
}

// named returns the namespaces that the query names, without patterns.
func (v *view) named() []string {
	return slices.DeleteFunc(slices.Clone(v.q.Namespaces), func(ns string) bool { return ns == "" || strings.ContainsAny(ns, `*?[\`) })
}

// owned reports whether a change is only selected because of an owner of its object. That shows who owns it, also where
// the owner is several levels above it.
func (v *view) owned(e *journal.Entry) bool {
	if v.kinds == nil || e.Op == event.Gap {
		return false
	}
	return !slices.Contains(v.q.NamesOf(e.Kind.GroupResource()), e.Name)
}

// root reports whether the query names objects of a kind.
func (v *view) root(resource string) bool { return len(v.q.NamesOf(resource)) > 0 }

// owns reports whether objects of a kind can be between the named objects and a change.
func (v *view) owns(resource string) bool {
	_, ok := v.q.Owned[resource]
	return ok
}

// reaches reports whether a chain of visible kinds leads from a named object to a change's.
func (v *view) reaches(e *journal.Entry) bool {
	visible := func(name string) bool {
		k, ok := v.kinds[resource{name, e.Kind.Cluster}]
		return ok && v.known[TargetOf(k, e.Namespace)]
	}
	var reached []string
	for resource := range v.q.Owned {
		if v.root(resource) && visible(resource) {
			reached = append(reached, resource)
		}
	}
	for i := 0; i < len(reached); i++ {
		for _, r := range v.q.Owned[reached[i]] {
			if r == e.Kind.GroupResource() {
				return true
			}
			if !slices.Contains(reached, r) && v.owns(r) && visible(r) {
				reached = append(reached, r)
			}
		}
	}
	return false
}
