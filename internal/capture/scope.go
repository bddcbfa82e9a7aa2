package capture

import (
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/rules"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/usage"
)

// Scope selects kinds and their objects.
type Scope struct {
	// Types are command-line arguments: TYPE[,TYPE…] [NAME…] or TYPE/NAME…; none means everything. A type
	// with a * is a glob of plural and group, such as deploy* or *.example.com; it also matches kinds that
	// appear later. Except lists types to leave out, including globs.
	Types, Except []string
	Namespaces    selection.Namespaces
	// Labels and Fields are selectors in the server's syntax.
	Labels, Fields string
	// Noise includes noisy kinds (events, leases, …) that a glob selects. Kinds selected by name are always watched.
	Noise bool

	targets []target // the names in Types
	globs   []string // the globs in Types; everything if Types is empty
	except  []string // globs, and names in the form of rules.MatchAny
}

func (s *Scope) validate() error {
	if err := s.Namespaces.Validate(); err != nil {
		return err
	}
	_, _, err := selection.Selectors(s.Labels, s.Fields)
	return err
}

// resolve looks up the scope's types; owned adds the kinds that named objects own.
func (s *Scope) resolve(c *Catalog, owned bool) (err error) {
	if s.targets, s.globs, err = c.targets(s.Types, owned); err != nil {
		return err
	}
	s.except = nil
	for _, text := range s.Except {
		if IsKindGlob(text) {
			s.except = append(s.except, strings.ToLower(text))
			continue
		}
		rs, err := c.Resolve(text)
		if err != nil {
			return err
		}
		for _, r := range rs {
			s.except = append(s.except, r.Resource+"."+r.Group)
		}
	}
	for _, t := range s.targets {
		if len(t.names) > 0 && s.selects() {
			return usage.Errorf("a name cannot be combined with a selector")
		}
	}
	return nil
}

// selects reports whether an object may enter and leave the scope without being created or deleted.
func (s *Scope) selects() bool { return s.Labels != "" || s.Fields != "" }

// asked returns the fields whose values decide whether an object matches the scope's selectors.
func (s *Scope) asked() (paths []diff.Path) {
	l, f, err := selection.Selectors(s.Labels, s.Fields)
	if err != nil {
		return nil // validated before
	}
	field := func(names ...string) {
		var p diff.Path
		for _, name := range names {
			p = append(p, diff.Elem{Kind: diff.Field, Name: name})
		}
		if !slices.ContainsFunc(paths, p.Equal) {
			paths = append(paths, p)
		}
	}
	requirements, _ := l.Requirements()
	for _, r := range requirements {
		field("metadata", "labels", r.Key())
	}
	for _, r := range f.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" { // they do not change
			field(strings.Split(r.Field, ".")...)
		}
	}
	return paths
}

// excludes reports whether the scope leaves out a kind, whatever else selects it.
func (s *Scope) excludes(r Resource) bool { return rules.MatchAny(s.except, r.Group, r.Resource) }

// globbed reports whether a glob of the scope selects a kind. A scope with included namespaces does not select
// cluster-scoped kinds.
func (s *Scope) globbed(r Resource) bool {
	return rules.MatchAny(s.globs, r.Group, r.Resource) && (r.Namespaced || len(s.Namespaces.Include) == 0)
}

// unmatched returns the scope's globs that match nothing in a catalog (yet).
func (s *Scope) unmatched(c *Catalog) []string {
	return slices.DeleteFunc(slices.Clone(s.globs), func(g string) bool {
		return slices.ContainsFunc(c.preferred, func(r Resource) bool {
			return rules.MatchAny([]string{g}, r.Group, r.Resource)
		})
	})
}

// IsKindGlob reports whether s is a glob and not the name of a kind.
func IsKindGlob(s string) bool { return strings.Contains(s, "*") }
