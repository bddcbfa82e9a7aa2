// Package selection says which recorded changes a user asks for: the flags of log, and the parameters of the page and of
// the API, which have the same names.
//
// The journal applies the Query. Selects and Matches do the rest.
package selection

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/cli/scope"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/managers"
	"github.com/tattler-dev/tattler/internal/where"
)

// Selection selects changes. Use Resolve before the Query, Selects and Matches. It is for one goroutine.
type Selection struct {
	// Query is the part that the journal applies. The caller sets its bounds, order and limit.
	Query journal.Query
	// Namespaces, Paths and Noise are what the user asked for.
	Namespaces capture.Namespaces
	Paths      []diff.Pattern
	Noise      bool
	// Types are the kinds and names, after Resolve.
	Types Types
	// Failed counts changes for which the expression failed, for example because they lack a field. LastError is the
	// last error.
	Failed    int
	LastError error

	words, names  []string // of Types, not resolved
	clusterOption string   // the name of the option that selects clusters
	fields        fields.Selector

	// Conditions that need the objects.
	labels     labels.Selector
	managers   []string
	where      *where.Expr
	cluster    string // of kinds that name none, after Resolve
	severities []string
	humans     bool
	text       []string
	related    *Related // nil: all
}

// Resolve finds the kinds that the user named among those of a journal. Kinds may appear later: see Types.Unknown.
func (s *Selection) Resolve(ctx context.Context, j Kinds) error {
	t, err := Resolve(ctx, j, s.words)
	if err != nil {
		return err
	}
	if len(s.names) > 0 {
		t.Names = append(t.Names, s.names...)
		t.follow()
	}
	s.Types, s.cluster = t, j.Cluster()
	s.Query.Resources, s.Query.Names, s.Query.Owned = t.Resources, t.Names, t.Owned
	return nil
}

// MatchesNothing reports whether the journal has none of the requested kinds: an empty list would select all.
func (s *Selection) MatchesNothing() bool {
	return len(s.Types.Resources) == 0 && len(s.Types.Unknown) > 0
}

// ReadsObjects reports whether Matches needs the objects of changes; otherwise it is always true.
func (s *Selection) ReadsObjects() bool {
	return !s.labels.Empty() || len(s.managers) > 0 || len(s.Paths) > 0 || len(s.severities) > 0 || s.humans || s.where != nil || len(s.text) > 0
}

// Narrowed reports whether the selection excludes changes, apart from times.
func (s *Selection) Narrowed() bool {
	n := s.Namespaces
	return s.ReadsObjects() || !s.fields.Empty() || len(s.Query.Clusters)+len(s.Query.Ops)+len(s.Types.Resources)+len(s.Types.Unknown)+len(n.Include)+len(n.Exclude) > 0
}

// Partial reports whether the selection may exclude some changes of an object: a summary of the others would be wrong.
func (s *Selection) Partial() bool {
	return len(s.Query.Ops) > 0 || len(s.managers) > 0 || len(s.Paths) > 0 || s.humans || s.where != nil || len(s.text) > 0
}

// Selects applies the conditions that need no object. A gap of a cluster-wide stream may concern any namespace, and an
// absence concerns everything.
func (s *Selection) Selects(e *journal.Entry) bool {
	if s.related != nil {
		return s.related.has(e) && scope.Has(capture.Namespaces{Exclude: s.Namespaces.Exclude}, e.Namespace)
	}
	if e.Op == event.Absent {
		return true
	}
	if !s.Types.Has(e) {
		return false
	}
	if e.Op == event.Gap && e.Namespace == "" {
		return e.Kind.Namespaced || len(s.Namespaces.Include) == 0
	}
	if !scope.Has(s.Namespaces, e.Namespace) {
		return false
	}
	return e.Op == event.Gap || s.fields.Matches(fields.Set{"metadata.name": e.Name, "metadata.namespace": e.Namespace})
}

// Matches applies the conditions that need the objects. A change for which the expression fails does not match, and is
// counted.
func (s *Selection) Matches(c *change.Change) bool {
	if !s.MatchesLabels(c) || !s.writtenBy(c) || len(s.Paths) > 0 && !c.Touches(s.Paths) {
		return false
	}
	if !scope.HasSeverity(s.severities, c) || s.humans && c.Automatic() || !s.mentions(c) {
		return false
	}
	if s.where == nil {
		return true
	}
	if s.where.Reads("cluster") && c.Kind.Cluster == "" {
		named := *c
		named.Kind.Cluster, c = s.cluster, &named
	}
	ok, err := s.where.Match(c)
	if err != nil {
		s.Failed++
		s.LastError = fmt.Errorf("%s: %w", c.Subject(), err)
	}
	return ok && err == nil
}

// MatchesLabels matches the labels before or after the change, so that the removal of a label matches. A gap always
// matches, because it may concern any object.
func (s *Selection) MatchesLabels(c *change.Change) bool {
	if s.labels.Empty() || !c.Op.HasObject() {
		return true
	}
	return s.Labelled(c.After) || s.Labelled(c.Before)
}

// Labelled reports whether an object, which may be nil, has the labels.
func (s *Selection) Labelled(object map[string]any) bool { return scope.Labelled(s.labels, object) }

// SelectsNamespace applies the namespaces alone.
func (s *Selection) SelectsNamespace(name string) bool { return scope.Has(s.Namespaces, name) }

// SelectsState applies the kinds, names and namespaces to an object. What the named objects own is not selected.
func (s *Selection) SelectsState(o *journal.State) bool {
	return s.Types.Named(o) && scope.Has(s.Namespaces, o.Namespace) &&
		s.fields.Matches(fields.Set{"metadata.name": o.Name, "metadata.namespace": o.Namespace})
}

// writtenBy matches the managers of the change, or of a shown field.
func (s *Selection) writtenBy(c *change.Change) bool {
	if len(s.managers) == 0 {
		return true
	}
	is := func(manager, subresource string) bool {
		return slices.ContainsFunc(s.managers, func(pattern string) bool {
			return pattern == managers.Display(manager, subresource) || matchesGlob(pattern, manager)
		})
	}
	if !c.Op.Differs() {
		return is(c.Manager, "")
	}
	return slices.ContainsFunc(c.Fields, func(f change.FieldChange) bool {
		return (!f.Quiet || s.Noise) && is(f.Manager, f.Subresource)
	})
}

func matchesGlob(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// mentions matches the free text: each word must occur, in any case, in the kind, namespace, name or manager, or in the
// path or a value of a shown field.
func (s *Selection) mentions(c *change.Change) bool {
	if len(s.text) == 0 {
		return true
	}
	open := slices.Clone(s.text)
	seen := func(text string) bool {
		text = strings.ToLower(text)
		open = slices.DeleteFunc(open, func(word string) bool { return strings.Contains(text, word) })
		return len(open) == 0
	}
	if seen(c.Kind.Kind) || seen(c.Kind.Resource) || seen(c.Namespace) || seen(c.Name) || seen(c.Manager) {
		return true
	}
	for i := range c.Fields {
		f := &c.Fields[i]
		if f.Quiet && !s.Noise {
			continue
		}
		if seen(f.Path.String()) || seen(f.Manager) || seen(text(f.From)) || seen(text(f.To)) {
			return true
		}
	}
	return false
}

// text is a value as YAML, on one line.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	return strings.Join(diff.YAML(v), "\n")
}
