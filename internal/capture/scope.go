package capture

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tattler-dev/tattler/internal/capture/rules"
)

// Scope is some kinds, and which of their objects are watched.
type Scope struct {
	// Types are as in Options. Except are types that are left out of them, globs too.
	Types, Except  []string
	Namespaces     Namespaces
	Labels, Fields string
	// Noise also takes hidden kinds that a glob selects. Those that are named are watched in any case.
	Noise bool

	targets []target // of Types that are names
	globs   []string // of Types that are globs; without any Types, of everything
	except  []string // globs, and names as rules.MatchAny takes them
}

func (s *Scope) validate() error {
	if err := s.Namespaces.Validate(); err != nil {
		return err
	}
	if _, err := labels.Parse(s.Labels); err != nil {
		return Usage("invalid label selector %q: %v", s.Labels, err)
	}
	if _, err := fields.ParseSelector(s.Fields); err != nil {
		return Usage("invalid field selector %q: %v", s.Fields, err)
	}
	return nil
}

// resolve finds what is asked for; follow adds what named objects own.
func (s *Scope) resolve(c *Catalog, follow bool) (err error) {
	if s.targets, s.globs, err = c.targets(s.Types, follow); err != nil {
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
			return Usage("a name cannot be combined with a selector")
		}
	}
	return nil
}

// selects tells whether an object may enter and leave the scope without being created or deleted.
func (s *Scope) selects() bool { return s.Labels != "" || s.Fields != "" }

// excludes tells whether a kind is left out of the scope, whatever else selects it.
func (s *Scope) excludes(r Resource) bool { return rules.MatchAny(s.except, r.Group, r.Resource) }

// globbed tells whether a glob of the scope selects a kind. Where namespaces are included, that is no
// wish for kinds without namespaces.
func (s *Scope) globbed(r Resource) bool {
	return rules.MatchAny(s.globs, r.Group, r.Resource) && (r.Namespaced || len(s.Namespaces.Include) == 0)
}

// unmatched are the scope's globs that nothing in a catalog matches (yet).
func (s *Scope) unmatched(c *Catalog) []string {
	return slices.DeleteFunc(slices.Clone(s.globs), func(g string) bool {
		return slices.ContainsFunc(c.preferred, func(r Resource) bool {
			return rules.MatchAny([]string{g}, r.Group, r.Resource)
		})
	})
}

// IsKindGlob tells a glob of kinds from a kind's name.
func IsKindGlob(s string) bool { return strings.Contains(s, "*") }
