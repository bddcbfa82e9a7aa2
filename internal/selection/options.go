package selection

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/selection"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/managers"
	"github.com/tattler-dev/tattler/internal/usage"
	"github.com/tattler-dev/tattler/internal/when"
	"github.com/tattler-dev/tattler/internal/where"
)

// Options are a selection as a user writes it. The zero value selects everything but quiet changes.
type Options struct {
	// Types are TYPE[,TYPE…] [NAME…] or TYPE/NAME…. Names are further names, of any type if Types is empty.
	Types, Names []string
	Objects

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

// Parse checks the options for recorded changes, relative to a time.
func (o *Options) Parse(now time.Time) (*Selection, error) {
	if len(o.Names) > 0 && slices.ContainsFunc(o.Types, func(t string) bool { return strings.Contains(t, "/") }) {
		return nil, usage.Errorf("%s and TYPE/NAME exclude each other", o.name("name"))
	}
	s := &Selection{words: o.Types, names: o.Names, Namespaces: o.Within(Namespaces{}), ClusterOption: o.name("cluster")}
	s.Query = Query{Namespaces: s.Namespaces.Include, Without: s.Namespaces.Exclude, Clusters: o.Clusters, Quiet: o.Noise}
	if err := o.objects(s); err != nil {
		return nil, err
	}
	if err := o.times(s, now); err != nil {
		return nil, err
	}
	return s, o.changes(s)
}

// Live checks the options for changes as they are watched. The server applies the kinds and the conditions on objects.
func (o *Options) Live() (*Selection, error) {
	s := &Selection{Query: Query{Quiet: true, Snapshots: true}}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return s, o.changes(s)
}

// name is an option's name in an error.
func (o *Options) name(flag string) string {
	if o.parameters {
		return flag
	}
	return "--" + flag
}

// objects reads the conditions on objects.
func (o *Options) objects(s *Selection) error {
	if err := o.Validate(); err != nil {
		return err
	}
	labels, fields, err := Selectors(o.Labels, o.Fields)
	if err != nil {
		return err
	}
	s.labels = labels
	for _, r := range fields.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			return usage.Errorf("%s: the journal selects by metadata.name and metadata.namespace only; for %s say %s",
				o.name("field-selector"), r.Field, o.name("where"))
		}
		s.Query.Fields = append(s.Query.Fields, Field{Namespace: r.Field == "metadata.namespace", Not: r.Operator == selection.NotEquals, Value: r.Value})
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

// subresources are the subresources through which managers write, as far as they are printed behind a manager's name.
//
// Source: the built-in kinds of a 1.36 API server. Custom resources have status, which is not shown, and
// scale.
var subresources = []string{"scale", "resize", "ephemeralcontainers", "binding", "approval", "finalize"}

// changes reads the conditions on changes.
func (o *Options) changes(s *Selection) error {
	if err := o.operations(s); err != nil {
		return err
	}
	if err := o.writers(s); err != nil {
		return err
	}
	return o.contents(s)
}

func (o *Options) operations(s *Selection) error {
	known := []event.Op{event.Snapshot, event.Created, event.Updated, event.Deleted, event.Entered, event.Left, event.Gap, event.Converted, event.Absent}
	for _, op := range o.Ops {
		if !slices.Contains(known, event.Op(op)) {
			return usage.Errorf("%s: unknown operation %q: use created, updated, deleted, entered, left, gap, absent, snapshot or converted", o.name("op"), op)
		}
		s.Query.Ops = append(s.Query.Ops, event.Op(op))
	}
	return nil
}

func (o *Options) writers(s *Selection) error {
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
	return nil
}

// contents reads the conditions that need objects, apart from labels.
func (o *Options) contents(s *Selection) (err error) {
	s.Noise, s.managers, s.humans, s.text = o.Noise, o.Managers, o.Humans, strings.Fields(strings.ToLower(o.Text))
	if s.Paths, err = Patterns(o.name("path"), o.Paths); err != nil {
		return err
	}
	if s.Query.Severities, err = o.severities(); err != nil {
		return err
	}
	if o.Where != "" {
		if s.where, err = where.Compile(o.Where); err != nil {
			return usage.Errorf("%s: %v", o.name("where"), err)
		}
	}
	return nil
}

// Patterns reads the paths of a flag.
func Patterns(flag string, texts []string) (all []diff.Pattern, err error) {
	for _, text := range texts {
		p, err := diff.ParsePattern(text)
		if err != nil {
			return nil, usage.Errorf("%s: %v", flag, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// Severities are the values of the condition severity.
var Severities = []string{string(event.Failure), string(event.Warning), string(event.Recovery), string(event.Normal)}

func (o *Options) severities() (all []event.Severity, err error) {
	for _, s := range o.Severities {
		if !slices.Contains(Severities, s) {
			return nil, usage.Errorf("%s: unknown severity %q: use one of %s", o.name("severity"), s, strings.Join(Severities, ", "))
		}
		all = append(all, event.Severity(s))
	}
	return all, nil
}

// Resolve finds the kinds that the user named among those of a journal. Kinds may appear later: see Types.Unknown.
func (s *Selection) Resolve(ctx context.Context, j Kinds) error {
	t, err := Resolve(ctx, j, s.words)
	if err != nil {
		return err
	}
	t.Names, t.objects = slices.Concat(t.Names, s.names), slices.Concat(t.objects, s.names)
	s.Types, s.cluster = t, j.Cluster()
	s.Query.Resources, s.Query.Names = slices.Concat(t.Resources, t.Unknown), t.objects // nothing is of an unknown kind
	if len(t.Names) > 0 {
		s.Query.Owned = Owns()
	}
	return nil
}
