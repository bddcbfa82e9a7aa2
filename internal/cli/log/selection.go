package log

import (
	"fmt"
	"path"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/scope"
	"github.com/tattler-dev/tattler/internal/cli/when"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/managers"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/where"
)

// selection says which changes are shown: the journal applies query, and selects and matches do the rest.
type selection struct {
	query      journal.Query
	types      past.Types
	namespaces capture.Namespaces
	fields     fields.Selector
	noise      bool

	// Conditions that need the objects.
	labels     labels.Selector
	managers   []string
	paths      []diff.Pattern
	where      *where.Expr
	severities []string
	humans     bool

	lines []event.Severity // of printed lines, including summaries; nil: all

	whereErrors int   // changes for which where failed
	lastErr     error // of where
}

// selection reads the flags.
func (o *Options) selection() (*selection, error) {
	s := &selection{noise: o.Noise, managers: o.Managers, humans: o.Humans}
	for _, read := range []func(*selection) error{o.scope, o.times, o.operations, o.contents} {
		if err := read(s); err != nil {
			return nil, err
		}
	}
	switch {
	case o.Limit < 0:
		return nil, capture.Usage("--limit cannot be negative")
	case !slices.Contains([]string{text, oneline, render.JSON, render.YAML}, o.Output):
		return nil, capture.Usage("unknown output %q: use text, oneline, json or yaml", o.Output)
	}
	if o.folds(s) {
		s.lines = scope.SeveritiesOf(o.Severities)
	} else {
		s.severities = o.Severities
	}
	return s, nil
}

func (o *Options) scope(s *selection) (err error) {
	if err := o.Scope.Validate(); err != nil {
		return err
	}
	s.namespaces = o.Scope.Within(capture.Namespaces{})
	s.query.Namespaces = s.namespaces.Include
	if s.labels, err = labels.Parse(o.Scope.Labels); err != nil {
		return capture.Usage("-l: %v", err)
	}
	if s.fields, err = fields.ParseSelector(o.Scope.Fields); err != nil {
		return capture.Usage("--field-selector: %v", err)
	}
	for _, r := range s.fields.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			return capture.Usage("--field-selector: the journal selects by metadata.name and metadata.namespace only; for %s say --where", r.Field)
		}
	}
	return nil
}

func (o *Options) times(s *selection) (err error) {
	now := o.Now()
	for _, t := range []struct {
		flag, text string
		parse      func(string, time.Time) (time.Time, error)
		to         *time.Time
	}{{"--since", o.Since, when.Parse, &s.query.Since}, {"--until", o.Until, when.ParseEnd, &s.query.Until}} {
		if t.text == "" {
			continue
		}
		if *t.to, err = t.parse(t.text, now); err != nil {
			return capture.Usage("%s: %v", t.flag, err)
		}
	}
	if !s.query.Until.IsZero() && !s.query.Since.Before(s.query.Until) {
		return capture.Usage("--since is not before --until")
	}
	if o.Follow && !s.query.Until.IsZero() {
		return capture.Usage("--until and -f exclude each other")
	}
	return nil
}

func (o *Options) operations(s *selection) error {
	known := []event.Op{event.Snapshot, event.Created, event.Updated, event.Deleted, event.Entered, event.Left, event.Gap, event.Converted, event.Absent}
	for _, op := range o.Ops {
		if !slices.Contains(known, event.Op(op)) {
			return capture.Usage("--op: unknown operation %q: use created, updated, deleted, entered, left, gap, absent, snapshot or converted", op)
		}
		s.query.Ops = append(s.query.Ops, event.Op(op))
		s.query.Snapshots = s.query.Snapshots || op == string(event.Snapshot)
	}
	return nil
}

// subresources are the subresources through which managers write, as far as they are printed behind a manager's name.
//
// Source: the built-in kinds of a 1.36 API server. Custom resources have status, which is not shown, and
// scale.
var subresources = []string{"scale", "resize", "ephemeralcontainers", "binding", "approval", "finalize"}

func (o *Options) contents(s *selection) (err error) {
	for _, m := range o.Managers {
		if m == "" {
			return capture.Usage("--manager: an empty name")
		}
		if _, err := path.Match(m, ""); err != nil {
			return capture.Usage("--manager: %q is not a valid pattern", m)
		}
		s.query.Managers = append(s.query.Managers, m)
		for _, sub := range subresources {
			s.query.Managers = append(s.query.Managers, managers.Display(m, sub))
		}
	}
	if len(o.Managers) > 0 { // if several managers wrote, only the fields name them
		s.query.Managers = append(s.query.Managers, managers.Unknown)
	}
	if s.paths, err = scope.Patterns("--path", o.Paths); err != nil {
		return err
	}
	if err := scope.ValidSeverities(o.Severities); err != nil {
		return err
	}
	if o.Where != "" {
		if s.where, err = where.Compile(o.Where); err != nil {
			return capture.Usage("--where: %v", err)
		}
	}
	return nil
}

// resolve narrows the query to the kinds and names of the arguments.
func (s *selection) resolve(t past.Types) {
	s.types = t
	s.query.Resources, s.query.Names, s.query.Owned = t.Resources, t.Names, t.Owned
}

// matchesNothing reports whether the journal has none of the requested kinds: an empty list would select all.
func (s *selection) matchesNothing() bool {
	return len(s.types.Resources) == 0 && len(s.types.Unknown) > 0
}

// readsObjects reports whether the selection needs to read the objects of changes.
func (s *selection) readsObjects() bool {
	return !s.labels.Empty() || len(s.managers) > 0 || len(s.paths) > 0 || len(s.severities) > 0 || s.humans || s.where != nil
}

// narrowed reports whether the selection excludes changes, apart from times.
func (s *selection) narrowed() bool {
	n := s.namespaces
	return s.readsObjects() || len(s.lines) > 0 || !s.fields.Empty() || len(s.query.Ops)+len(s.types.Resources)+len(s.types.Unknown)+len(n.Include)+len(n.Exclude) > 0
}

// partial reports whether the selection may exclude some changes of an object: a summary of the others would be wrong.
func (s *selection) partial() bool {
	return len(s.query.Ops) > 0 || len(s.managers) > 0 || len(s.paths) > 0 || s.humans || s.where != nil
}

// folds reports whether lines sum up changes, and so have their own severities.
func (o *Options) folds(s *selection) bool { return o.Output == text && !o.Flat && !s.partial() }

// selects applies the conditions that need no object. A gap of a cluster-wide stream may concern any namespace, and an
// absence concerns everything.
func (s *selection) selects(e *journal.Entry) bool {
	if e.Op == event.Absent {
		return true
	}
	if !s.types.Has(e) {
		return false
	}
	if e.Op == event.Gap && e.Namespace == "" {
		return e.Kind.Namespaced || len(s.namespaces.Include) == 0
	}
	if !scope.Has(s.namespaces, e.Namespace) {
		return false
	}
	return e.Op == event.Gap || s.fields.Matches(fields.Set{"metadata.name": e.Name, "metadata.namespace": e.Namespace})
}

func matchesGlob(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// matches applies the conditions that need the objects. A change for which the expression fails, for example because it
// lacks a field, does not match, and is counted.
func (s *selection) matches(c *change.Change) bool {
	if !s.matchesLabels(c) || !s.writtenBy(c) || len(s.paths) > 0 && !c.Touches(s.paths) {
		return false
	}
	if !scope.HasSeverity(s.severities, c) || s.humans && c.Automatic() {
		return false
	}
	if s.where == nil {
		return true
	}
	ok, err := s.where.Match(c)
	if err != nil {
		s.whereErrors++
		s.lastErr = fmt.Errorf("%s: %w", c.Subject(), err)
	}
	return ok && err == nil
}

// matchesLabels matches the labels before or after the change, so that the removal of a label matches. A gap always
// matches, because it may concern any object.
func (s *selection) matchesLabels(c *change.Change) bool {
	if s.labels.Empty() || !c.Op.HasObject() {
		return true
	}
	for _, o := range []map[string]any{c.After, c.Before} {
		if o == nil {
			continue
		}
		has := labels.Set{}
		m, _ := change.Metadata(o)["labels"].(map[string]any)
		for k, v := range m {
			has[k], _ = v.(string)
		}
		if s.labels.Matches(has) {
			return true
		}
	}
	return false
}

// writtenBy matches the managers of the change, or of a shown field.
func (s *selection) writtenBy(c *change.Change) bool {
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
		return (!f.Quiet || s.noise) && is(f.Manager, f.Subresource)
	})
}
