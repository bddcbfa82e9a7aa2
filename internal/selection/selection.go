// Package selection says which changes a user asks for: the arguments and flags of the verbs, the parameters of the page and
// of the API, which have the same names as log's flags, and the namespaces of the configuration.
//
// Options are what the user wrote, a Selection is what it means. Its Query needs no objects: Query.Has matches a change in
// memory, and a journal finds the same changes. Selection.Matches does the rest.
package selection

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/managers"
	"github.com/tattler-dev/tattler/internal/where"
)

// Selection selects changes. Use Resolve before the Query and Matches. It is for one goroutine.
type Selection struct {
	// Query is the part that needs no objects. The caller sets its bounds, order and limit.
	Query Query
	// Namespaces, Paths and Noise are what the user asked for.
	Namespaces Namespaces
	Paths      []diff.Pattern
	Noise      bool
	// Types are the kinds and names, after Resolve.
	Types Types
	// Failed counts changes for which the expression failed, for example because they lack a field. LastError is the
	// last error.
	Failed    int
	LastError error

	// ClusterOption is the name of the flag or parameter that selects clusters.
	ClusterOption string

	words, names []string // of Types, not resolved

	// Conditions that need the objects.
	labels   labels.Selector // nil: all
	managers []string
	where    *where.Expr
	cluster  string // of kinds that name none, after Resolve
	humans   bool
	text     []string
}

// ReadsObjects reports whether Matches needs the objects of changes; otherwise it is always true.
func (s *Selection) ReadsObjects() bool {
	return s.labels != nil && !s.labels.Empty() || s.partial()
}

// Narrowed reports whether the selection excludes changes, apart from times.
func (s *Selection) Narrowed() bool {
	n, q, t := s.Namespaces, &s.Query, &s.Types
	return s.ReadsObjects() || len(q.Fields)+len(q.Clusters)+len(q.Ops)+len(q.Severities)+len(t.Resources)+len(t.Unknown)+len(n.Include)+len(n.Exclude) > 0
}

// Partial reports whether the selection may exclude some changes of an object: a summary of the others would be wrong.
func (s *Selection) Partial() bool { return len(s.Query.Ops) > 0 || s.partial() }

// partial is Partial for the conditions that need objects.
func (s *Selection) partial() bool {
	return len(s.managers) > 0 || len(s.Paths) > 0 || s.humans || s.where != nil || len(s.text) > 0
}

// Matches applies the conditions that need the objects. A change for which the expression fails does not match, and is
// counted.
func (s *Selection) Matches(c *change.Change) bool {
	if !s.MatchesLabels(c) || !s.writtenBy(c) || len(s.Paths) > 0 && c.Op != event.Gap && !c.Touches(s.Paths) {
		return false
	}
	if s.humans && c.Automatic() || !s.mentions(c) {
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
	return !c.Op.HasObject() || s.Labelled(c.After) || s.Labelled(c.Before)
}

// Labelled reports whether an object has the labels. A nil object has not, although a selector such as tier!=debug matches an
// object without labels.
func (s *Selection) Labelled(object map[string]any) bool {
	if s.labels == nil || s.labels.Empty() {
		return true
	}
	if object == nil {
		return false
	}
	has := labels.Set{}
	m, _ := change.Metadata(object)["labels"].(map[string]any)
	for k, v := range m {
		has[k], _ = v.(string)
	}
	return s.labels.Matches(has)
}

// writtenBy matches the managers of the change, or of a shown field.
func (s *Selection) writtenBy(c *change.Change) bool {
	if len(s.managers) == 0 {
		return true
	}
	is := func(manager, subresource string) bool {
		return slices.ContainsFunc(s.managers, func(pattern string) bool {
			return pattern == managers.Display(manager, subresource) || matches(pattern, manager)
		})
	}
	if !c.Op.Differs() {
		return is(c.Manager, "")
	}
	return slices.ContainsFunc(c.Fields, func(f change.FieldChange) bool {
		return (!f.Quiet || s.Noise) && is(f.Manager, f.Subresource)
	})
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
