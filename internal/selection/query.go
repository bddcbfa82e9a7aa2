package selection

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/meta"
	"github.com/tattler-dev/tattler/internal/usage"
)

// Query is the part of a selection that needs no objects, and which of the selected changes to read, in which order. The
// zero value selects all but quiet changes and snapshots, newest first. An empty list selects everything.
//
// Has matches a change in memory; a journal finds the same changes by their numbers.
type Query struct {
	// After and Before are sequence numbers, exclusive; 0 is no limit.
	After, Before int64
	// Since (inclusive) and Until (exclusive) bound when a change happened. Where only an interval is known, a change
	// matches if some moment of it does.
	Since, Until time.Time
	// Resources are group-resources such as deployments.apps.
	Resources []string
	// Namespaces and Without are Namespaces: the included and the excluded ones. A gap of a whole kind belongs to every
	// namespace.
	Namespaces, Without []string
	// Clusters are names of clusters. An absence belongs to one.
	Clusters []string
	// Names are names of objects: web of any selected kind, or deployments.apps/web. Names and UID select objects; gaps and
	// absences then never match.
	Names []string
	UID   string
	// Owned maps a group-resource to those that its objects own. With Names, the objects that the named ones own,
	// directly or not, are selected as well.
	Owned map[string][]string
	// Fields are further conditions, which gaps need not meet.
	Fields   []Field
	Ops      []event.Op
	Managers []string // names, or globs
	// Severities are the wanted ones. A gap always matches, because the missed changes may have any.
	Severities []event.Severity
	// Quiet and Snapshots include those.
	Quiet, Snapshots bool
	// Plain leaves out routine changes.
	Plain       bool
	OldestFirst bool
	// Limit bounds the number of entries; 0 is no limit.
	Limit int
	// Scope is what the reader may see; nil is everything. Has does not know it.
	Scope *Scope `json:"-"`
}

// Scope is what a reader may see of a journal: the rest is as if it had not been recorded.
type Scope struct {
	// Places has a right in each place, with the time of the oldest objects that it is for: an object that was created
	// earlier belongs to an earlier namespace of the same name. The zero time is for all objects.
	Places map[Place]time.Time
	// Gaps has the kinds, as places without a namespace, of which the reader sees the gaps of a whole kind although it may
	// not see the kind in all namespaces.
	Gaps map[Place]bool
}

// Place is a group-resource in a namespace. An empty namespace is that of cluster-scoped objects, and all namespaces.
// Cluster is as in meta.Kind.
type Place struct{ Cluster, Resource, Namespace string }

// OfObjects returns the part of a query that selects objects, whatever happened to them, with Since and Until.
func (q *Query) OfObjects() Query {
	return Query{
		Since: q.Since, Until: q.Until, Resources: q.Resources, Namespaces: q.Namespaces, Without: q.Without, Clusters: q.Clusters,
		Names: q.Names, UID: q.UID, Fields: q.Fields,
	}
}

// Field is a condition on the name or the namespace of an object: it is Value, or it is not.
type Field struct {
	Namespace bool // instead of the name
	Not       bool
	Value     string
}

// Has reports whether a change matches, apart from After, Before and Limit. own is the cluster of kinds that name none. An
// object that a named one may own matches: only a journal knows all owners.
func (q *Query) Has(m *meta.Meta, own string) bool {
	switch {
	case m.Quiet && !q.Quiet, m.Routine && q.Plain, !q.hasOp(m.Op), !q.hasTime(m), !HasSeverity(q.Severities, m),
		len(q.Clusters) > 0 && !slices.Contains(q.Clusters, m.Kind.ClusterOr(own)),
		len(q.Managers) > 0 && !MatchesManager(q.Managers, m.Manager):
		return false
	case len(q.Names) > 0 || q.UID != "":
		return m.Op.HasObject() && (q.named(m) || q.mayOwn(m)) && q.InNamespace(m.Namespace) && q.HasFields(m.Namespace, m.Name)
	case m.Op == event.Absent: // it belongs to every kind and namespace
		return true
	case len(q.Resources) > 0 && !slices.Contains(q.Resources, m.Kind.GroupResource()):
		return false
	case m.Op == event.Gap:
		return m.Namespace == "" && m.Kind.Namespaced || q.InNamespace(m.Namespace)
	}
	return q.InNamespace(m.Namespace) && q.HasFields(m.Namespace, m.Name)
}

func (q *Query) hasOp(op event.Op) bool {
	if len(q.Ops) == 0 {
		return op != event.Snapshot || q.Snapshots
	}
	return slices.Contains(q.Ops, op)
}

// HasSeverity reports whether a change that was judged has one of the severities; an empty list means all. A gap always
// matches, because the missed changes may have any.
func HasSeverity(list []event.Severity, m *meta.Meta) bool {
	return len(list) == 0 || m.Op == event.Gap || slices.Contains(list, cmp.Or(m.Severity, event.Normal))
}

// hasTime compares milliseconds, which a journal keeps.
func (q *Query) hasTime(m *meta.Meta) bool {
	from, to := m.Span()
	return (q.Since.IsZero() || to.UnixMilli() >= q.Since.UnixMilli()) && (q.Until.IsZero() || from.UnixMilli() < q.Until.UnixMilli())
}

// NamesOf returns the names that the query gives to objects of a group-resource, sorted and without duplicates.
func (q *Query) NamesOf(resource string) (names []string) {
	if len(q.Resources) > 0 && !slices.Contains(q.Resources, resource) {
		return nil
	}
	for _, n := range q.Names {
		if of, name, qualified := strings.Cut(n, "/"); !qualified {
			names = append(names, n)
		} else if of == resource {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// named reports whether the query names the object of a change.
func (q *Query) named(m *meta.Meta) bool {
	resource := m.Kind.GroupResource()
	return (len(q.Resources) == 0 || slices.Contains(q.Resources, resource)) && (q.UID == "" || m.UID == q.UID) &&
		(len(q.Names) == 0 || slices.Contains(q.NamesOf(resource), m.Name))
}

// mayOwn reports whether a named object may own the object of a change.
func (q *Query) mayOwn(m *meta.Meta) bool {
	return m.Owner != nil && len(q.Names) > 0 && slices.Contains(q.Dependents(), m.Kind.GroupResource())
}

// Dependents returns the group-resources that named objects may own, directly or not.
func (q *Query) Dependents() (all []string) {
	next := q.Resources
	if len(next) == 0 {
		for owner := range q.Owned {
			next = append(next, owner)
		}
	}
	for next = slices.Clip(next); len(next) > 0; next = next[1:] {
		for _, r := range q.Owned[next[0]] {
			if !slices.Contains(all, r) {
				all, next = append(all, r), append(next, r)
			}
		}
	}
	return all
}

// InNamespace reports whether the query selects a namespace.
func (q *Query) InNamespace(name string) bool {
	return Namespaces{Include: q.Namespaces, Exclude: q.Without}.Has(name)
}

// HasFields reports whether an object meets Fields.
func (q *Query) HasFields(namespace, name string) bool {
	for _, f := range q.Fields {
		value := name
		if f.Namespace {
			value = namespace
		}
		if (value == f.Value) == f.Not {
			return false
		}
	}
	return true
}

// Validate checks a query that came from elsewhere, and that its lists have at most so many values.
func (q *Query) Validate(most int) error {
	for _, pattern := range slices.Concat(q.Namespaces, q.Without, q.Managers) {
		if _, err := path.Match(pattern, ""); err != nil {
			return usage.Errorf("query: %q is not a valid pattern", pattern)
		}
	}
	n := len(q.Owned) + len(q.Ops) + len(q.Fields) + len(q.Severities)
	for _, list := range [][]string{q.Resources, q.Namespaces, q.Without, q.Names, q.Managers, q.Clusters} {
		n += len(list)
	}
	if n > most {
		return usage.Errorf("query: %d values are too many", n)
	}
	if q.Limit < 0 || q.After < 0 || q.Before < 0 {
		return usage.Errorf("query: a number is negative")
	}
	return nil
}

// MatchesManager reports whether one of some names or globs is a manager. A lone ? is the name of an unknown manager, not a
// glob.
func MatchesManager(patterns []string, manager string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return p == manager || p != "?" && matches(p, manager)
	})
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// Owns returns, by group-resource, the kinds whose objects a kind's objects own as controllers. Custom
// resources have no entry: the API does not state what they own.
func Owns() map[string][]string {
	return map[string][]string{
		"deployments.apps":       {"replicasets.apps"},
		"replicasets.apps":       {"pods"},
		"statefulsets.apps":      {"pods"},
		"daemonsets.apps":        {"pods"},
		"replicationcontrollers": {"pods"},
		"cronjobs.batch":         {"jobs.batch"},
		"jobs.batch":             {"pods"},
	}
}
