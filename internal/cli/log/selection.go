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

// selection is which changes are told: query is what the journal selects by, takes and matches do the
// rest.
type selection struct {
	query      journal.Query
	types      past.Types
	namespaces capture.Namespaces
	fields     fields.Selector
	noise      bool

	// What is judged by the objects.
	labels     labels.Selector
	managers   []string
	paths      []diff.Pattern
	where      *where.Expr
	severities []string
	humans     bool

	lines []event.Severity // of lines that sum up changes; nil: all

	unjudged int   // changes for which where failed
	lastErr  error // of where
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
		return nil, capture.Usage("unknown output %q: say text, oneline, json or yaml", o.Output)
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
			return capture.Usage("--op: there is no operation %q: say created, updated, deleted, entered, left, gap, absent, snapshot or converted", op)
		}
		s.query.Ops = append(s.query.Ops, event.Op(op))
		s.query.Snapshots = s.query.Snapshots || op == string(event.Snapshot)
	}
	return nil
}

// subresources are those through which a manager writes objects and that are shown behind its name.
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
	if len(o.Managers) > 0 { // where several wrote, only the fields say who
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

// resolve narrows the query to the kinds and names that arguments mean.
func (s *selection) resolve(t past.Types) {
	s.types = t
	s.query.Resources, s.query.Names, s.query.Owned = t.Resources, t.Names, t.Owned
}

// nothing is true where the journal has none of the kinds that are asked for: an empty list would
// select all.
func (s *selection) nothing() bool { return len(s.types.Resources) == 0 && len(s.types.Unknown) > 0 }

// deep is true where objects have to be read to know whether a change is selected.
func (s *selection) deep() bool {
	return !s.labels.Empty() || len(s.managers) > 0 || len(s.paths) > 0 || len(s.severities) > 0 || s.humans || s.where != nil
}

// narrowed is true where not everything is asked for, apart from times.
func (s *selection) narrowed() bool {
	n := s.namespaces
	return s.deep() || len(s.lines) > 0 || !s.fields.Empty() || len(s.query.Ops)+len(s.types.Resources)+len(s.types.Unknown)+len(n.Include)+len(n.Exclude) > 0
}

// partial is true where some changes of an object can be told and others not: a line that sums up what
// became of it would be wrong.
func (s *selection) partial() bool {
	return len(s.query.Ops) > 0 || len(s.managers) > 0 || len(s.paths) > 0 || s.humans || s.where != nil
}

// folds reports whether lines sum up changes, and have severities of their own.
func (o *Options) folds(s *selection) bool { return o.Output == text && !o.Flat && !s.partial() }

// takes looks at what needs no object. A gap of a whole cluster's stream may be one of any
// namespace, and an absence concerns everything.
func (s *selection) takes(e *journal.Entry) bool {
	if e.Op == event.Absent {
		return true
	}
	if !s.types.Has(e) {
		return false
	}
	if e.Op == event.Gap && e.Namespace == "" {
		return e.Kind.Namespaced || len(s.namespaces.Include) == 0
	}
	if !within(s.namespaces, e.Namespace) {
		return false
	}
	return e.Op == event.Gap || s.fields.Matches(fields.Set{"metadata.name": e.Name, "metadata.namespace": e.Namespace})
}

// within tells whether a namespace is included; what has none is where none is named.
func within(n capture.Namespaces, namespace string) bool {
	matches := func(pattern string) bool { return matchesGlob(pattern, namespace) }
	if namespace == "" {
		return len(n.Include) == 0
	}
	return (len(n.Include) == 0 || slices.ContainsFunc(n.Include, matches)) && !slices.ContainsFunc(n.Exclude, matches)
}

func matchesGlob(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// matches looks at the objects. A change for which the expression fails, such as for one without the
// field that it reads, does not match, and is counted.
func (s *selection) matches(cluster string, c *change.Change) bool {
	if !s.labelled(c) || !s.wrote(c) || len(s.paths) > 0 && !c.Touches(s.paths) {
		return false
	}
	if !scope.HasSeverity(s.severities, c) || s.humans && c.Automatic() {
		return false
	}
	if s.where == nil {
		return true
	}
	d := change.Event(cluster, c).Data
	d.Before, d.After = c.Before, c.After
	ok, err := s.where.Match(&d)
	if err != nil {
		s.unjudged++
		s.lastErr = fmt.Errorf("%s: %w", c.Subject(), err)
	}
	return ok && err == nil
}

// labelled looks at the labels before and after: a change that takes a label away is one of what had it.
// A gap may be one of anything.
func (s *selection) labelled(c *change.Change) bool {
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

// wrote looks for the managers: of the change, or of a field that is shown.
func (s *selection) wrote(c *change.Change) bool {
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
