package selection

import (
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/scope"
	"github.com/tattler-dev/tattler/internal/managers"
	"github.com/tattler-dev/tattler/internal/usage"
	"github.com/tattler-dev/tattler/internal/when"
	"github.com/tattler-dev/tattler/internal/where"
)

// Options are a selection as a user writes it. The zero value selects everything but quiet changes.
type Options struct {
	// Types are TYPE[,TYPE…] [NAME…] or TYPE/NAME…. Names are further names, of any type if Types is empty.
	Types, Names []string
	Scope        scope.Flags

	Since, Until  string
	Ops, Managers []string
	Paths         []string
	Where         string
	Severities    []string
	// Text is free text: each of its words must occur.
	Text          string
	Humans, Noise bool

	// parameters says that errors name the parameters of a URL, not flags.
	parameters bool
}

// Parse checks the options, relative to a time.
func (o *Options) Parse(now time.Time) (*Selection, error) {
	s := &Selection{
		Noise: o.Noise, words: o.Types, names: o.Names, managers: o.Managers, humans: o.Humans, severities: o.Severities,
		text: strings.Fields(strings.ToLower(o.Text)),
	}
	if len(o.Names) > 0 && slices.ContainsFunc(o.Types, func(t string) bool { return strings.Contains(t, "/") }) {
		return nil, usage.Errorf("%s and TYPE/NAME exclude each other", o.name("name"))
	}
	if err := o.scope(s); err != nil {
		return nil, err
	}
	if err := o.times(s, now); err != nil {
		return nil, err
	}
	if err := o.operations(s); err != nil {
		return nil, err
	}
	if err := o.contents(s); err != nil {
		return nil, err
	}
	return s, nil
}

// name is an option's name in an error.
func (o *Options) name(flag string) string {
	if o.parameters {
		return flag
	}
	return "--" + flag
}

func (o *Options) scope(s *Selection) (err error) {
	if err := o.Scope.Validate(); err != nil {
		return err
	}
	s.Namespaces = o.Scope.Within(capture.Namespaces{})
	s.Query.Namespaces = s.Namespaces.Include
	s.Query.Clusters, s.clusterOption = o.Scope.Clusters, o.name("cluster")
	if s.labels, err = labels.Parse(o.Scope.Labels); err != nil {
		return usage.Errorf("%s: %v", o.name("selector"), err)
	}
	if s.fields, err = fields.ParseSelector(o.Scope.Fields); err != nil {
		return usage.Errorf("%s: %v", o.name("field-selector"), err)
	}
	for _, r := range s.fields.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			return usage.Errorf("%s: the journal selects by metadata.name and metadata.namespace only; for %s say %s",
				o.name("field-selector"), r.Field, o.name("where"))
		}
	}
	return nil
}

// times reads the time range. One between two moments in RFC 3339 may lie in the future, where a daemon with a wrong clock
// recorded.
func (o *Options) times(s *Selection, now time.Time) (err error) {
	parseSince := when.Parse
	if _, err := time.Parse(time.RFC3339Nano, o.Since); err == nil && o.Until != "" {
		parseSince = when.ParseEnd
	}
	for _, t := range []struct {
		flag, text string
		parse      func(string, time.Time) (time.Time, error)
		to         *time.Time
	}{{"since", o.Since, parseSince, &s.Query.Since}, {"until", o.Until, when.ParseEnd, &s.Query.Until}} {
		if t.text == "" {
			continue
		}
		if *t.to, err = t.parse(t.text, now); err != nil {
			return usage.Errorf("%s: %v", o.name(t.flag), err)
		}
	}
	if !s.Query.Until.IsZero() && !s.Query.Since.Before(s.Query.Until) {
		return usage.Errorf("%s is not before %s", o.name("since"), o.name("until"))
	}
	return nil
}

func (o *Options) operations(s *Selection) error {
	known := []event.Op{event.Snapshot, event.Created, event.Updated, event.Deleted, event.Entered, event.Left, event.Gap, event.Converted, event.Absent}
	for _, op := range o.Ops {
		if !slices.Contains(known, event.Op(op)) {
			return usage.Errorf("%s: unknown operation %q: use created, updated, deleted, entered, left, gap, absent, snapshot or converted", o.name("op"), op)
		}
		s.Query.Ops = append(s.Query.Ops, event.Op(op))
		s.Query.Snapshots = s.Query.Snapshots || op == string(event.Snapshot)
	}
	return nil
}

// subresources are the subresources through which managers write, as far as they are printed behind a manager's name.
//
// Source: the built-in kinds of a 1.36 API server. Custom resources have status, which is not shown, and
// scale.
var subresources = []string{"scale", "resize", "ephemeralcontainers", "binding", "approval", "finalize"}

func (o *Options) contents(s *Selection) (err error) {
	for _, m := range o.Managers {
		if m == "" {
			return usage.Errorf("%s: an empty name", o.name("manager"))
		}
		if _, err := path.Match(m, ""); err != nil {
			return usage.Errorf("%s: %q is not a valid pattern", o.name("manager"), m)
		}
		s.Query.Managers = append(s.Query.Managers, m)
		for _, sub := range subresources {
			s.Query.Managers = append(s.Query.Managers, managers.Display(m, sub))
		}
	}
	if len(o.Managers) > 0 { // if several managers wrote, only the fields name them
		s.Query.Managers = append(s.Query.Managers, managers.Unknown)
	}
	if s.Paths, err = scope.Patterns(o.name("path"), o.Paths); err != nil {
		return err
	}
	if err := scope.ValidSeverities(o.Severities); err != nil {
		return usage.Errorf("%s: %v", o.name("severity"), err)
	}
	if o.Where != "" {
		if s.where, err = where.Compile(o.Where); err != nil {
			return usage.Errorf("%s: %v", o.name("where"), err)
		}
	}
	return nil
}
