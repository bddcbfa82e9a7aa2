package history

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/jsonmap"
	"github.com/tattler-dev/tattler/internal/relations"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/usage"
)

// Related are the named objects of a selection and everything related to them within its time range.
type Related struct {
	// Found are the objects: the named ones, then the others in the order of relations.Graph.Related.
	Found []*relations.Found

	of         map[relations.Ref]*relations.Found
	namespaces []string
}

// States are the changes and states that Relate reads; see Source.
type States interface {
	Cluster() string
	Kinds(ctx context.Context) ([]journal.Kind, error)
	Rows(ctx context.Context, q journal.Query) iter.Seq2[journal.Entry, error]
	At(ctx context.Context, q journal.Query, t time.Time) iter.Seq2[journal.State, error]
}

// Relate finds the objects related to the named ones, and makes the selection consist of them. The relations are those of
// all versions that the journal has of objects within the time range, in the namespaces of the named objects. A version
// that is damaged, purged or removed counts for nothing. The selection must be resolved; now is the present time.
func Relate(ctx context.Context, j States, s *selection.Selection, now time.Time) (*Related, error) {
	if len(s.Types.Names) == 0 {
		return nil, usage.Errorf("which object? name one: TYPE/NAME")
	}
	l := &loader{j: j, s: s, graph: relations.NewGraph(), scoped: map[[2]string]bool{}, r: &Related{of: map[relations.Ref]*relations.Found{}}}
	if l.from = s.Query.Since; l.from.IsZero() {
		l.from = now
	}
	kinds, err := j.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	resources := map[[2]string][]string{}
	for _, k := range kinds {
		id := [2]string{k.Group, k.Kind}
		l.scoped[id] = !k.Namespaced
		resources[id] = append(resources[id], k.GroupResource())
	}
	named, err := l.named(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.load(ctx, named); err != nil {
		return nil, err
	}
	r := l.r
	r.Found = l.graph.Related(named)
	if len(r.Found) == 0 {
		return r, nil
	}
	var of []string
	for _, f := range r.Found {
		r.of[f.Ref] = f
		of = append(of, resources[[2]string{f.Group, f.Kind}]...)
		if !slices.Contains(r.namespaces, f.Namespace) {
			r.namespaces = append(r.namespaces, f.Namespace)
		}
	}
	if len(of) > 0 {
		s.Query.Resources = slices.Compact(slices.Sorted(slices.Values(of)))
	}
	s.Query.Names, s.Query.Owned, s.Query.Fields, s.Query.Namespaces = nil, nil, nil, r.namespaces
	return r, nil
}

// Of returns how an object is related; nil if it is not.
func (r *Related) Of(group, kind, namespace, name string) *relations.Found {
	return r.of[relations.Ref{Group: group, Kind: kind, Namespace: namespace, Name: name}]
}

// Has reports whether an entry that the selection's query selects is of a related object. A gap belongs to all of them.
func (r *Related) Has(e *journal.Entry) bool {
	return !e.Op.HasObject() || r.Of(e.Kind.Group, e.Kind.Kind, e.Namespace, e.Name) != nil
}

// loader reads relations from a journal.
type loader struct {
	j      States
	s      *selection.Selection
	from   time.Time // of the states that are read
	graph  *relations.Graph
	scoped map[[2]string]bool // whether a kind is cluster-scoped
	r      *Related
}

// named returns the named objects that the journal has, which must be of one cluster.
func (l *loader) named(ctx context.Context) (all []relations.Ref, err error) {
	q := l.s.Query
	q.Owned, q.Fields, q.Quiet, q.Snapshots, q.Ops, q.Managers, q.Severities = nil, nil, true, true, nil, nil, nil
	var clusters []string
	add := func(k journal.Kind, namespace, name string) {
		ref := relations.Ref{Group: k.Group, Kind: k.Kind, Namespace: namespace, Name: name}
		if !slices.Contains(all, ref) {
			all = append(all, ref)
		}
		if name := k.ClusterOr(l.j.Cluster()); !slices.Contains(clusters, name) {
			clusters = append(clusters, name)
		}
	}
	for st, err := range l.j.At(ctx, q, l.from) {
		if err != nil {
			return nil, err
		}
		add(st.Kind, st.Namespace, st.Name)
	}
	for e, err := range l.j.Rows(ctx, q) {
		if err != nil {
			return nil, err
		}
		add(e.Kind, e.Namespace, e.Name)
	}
	if slices.Sort(clusters); len(clusters) > 1 {
		return nil, usage.Errorf("the named objects are in several clusters: choose one with %s %s", l.s.ClusterOption, strings.Join(clusters, " or "))
	}
	l.s.Query.Clusters = clusters
	return all, nil
}

// eventKinds are the kinds of Events. Those about cluster-scoped objects are in the namespace default.
var eventKinds = []string{"events", "events.events.k8s.io"}

// load reads the objects of the namespaces of the named objects; of every namespace if one of them is cluster-scoped and may
// own objects anywhere.
func (l *loader) load(ctx context.Context, named []relations.Ref) error {
	q := journal.Query{Clusters: l.s.Query.Clusters, Since: l.s.Query.Since, Until: l.s.Query.Until, Snapshots: true, OldestFirst: true}
	for _, r := range named {
		q.Namespaces = append(q.Namespaces, r.Namespace)
		if r.Namespace == "" && r.Kind != "Node" && r.Kind != "Namespace" {
			q.Namespaces = nil
			break
		}
	}
	if len(named) == 0 {
		return nil
	}
	if err := l.read(ctx, q); err != nil || q.Namespaces == nil || slices.Contains(q.Namespaces, "default") {
		return err
	}
	q.Namespaces, q.Resources = []string{"default"}, eventKinds
	return l.read(ctx, q)
}

// constant are kinds of which an update cannot change the relations.
var constant = []string{"Event", "Lease", "Endpoints", "EndpointSlice"}

func (l *loader) read(ctx context.Context, q journal.Query) error {
	for st, err := range l.j.At(ctx, q, l.from) {
		if err != nil {
			return fmt.Errorf("read relations: %w", err)
		}
		l.add(st.Kind, st.Namespace, st.Name, st.JSON)
	}
	for e, err := range l.j.Rows(ctx, q) {
		if err != nil {
			return fmt.Errorf("read relations: %w", err)
		}
		if !e.Op.HasObject() || e.Op == event.Updated && slices.Contains(constant, e.Kind.Kind) {
			continue
		}
		before, after, err := e.Contents(ctx)
		var damage *journal.DamagedError
		if err != nil && !errors.Is(err, journal.ErrPurged) && !errors.Is(err, journal.ErrNotFound) && !errors.As(err, &damage) {
			return fmt.Errorf("read relations: %w", err)
		}
		if after == nil {
			after = before
		}
		l.add(e.Kind, e.Namespace, e.Name, after)
	}
	return nil
}

func (l *loader) add(k journal.Kind, namespace, name string, raw []byte) {
	if raw == nil {
		return
	}
	_, object, _, err := jsonmap.DecodeSized(nil, raw, false)
	if err != nil {
		return
	}
	self := relations.Ref{Group: k.Group, Kind: k.Kind, Namespace: namespace, Name: name}
	l.graph.Add(relations.Of(self, object, l.clusterScoped))
}

func (l *loader) clusterScoped(group, kind string) bool {
	if scoped, known := l.scoped[[2]string{group, kind}]; known {
		return scoped
	}
	return relations.ClusterScoped(group, kind)
}
