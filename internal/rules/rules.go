// Package rules parses lists of {resources: […], paths: […]}, which select places in objects for quiet and
// redact rules.
//
// A resource is named as for `tattler watch`: by its plural, singular, kind or short name, case-insensitively.
// Examples are configmaps (in any group), deployments.apps (in that group) and pods. (the trailing dot means
// the core group). A * matches any run of characters of the plural and the group: * alone is every resource,
// *.kustomize.toolkit.fluxcd.io all of a group. Only the server knows which resources exist; see Set.Learn.
// Paths are patterns of package diff.
package rules

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/tattler-dev/tattler/diff"
)

// Rule selects places in objects: the Paths of the Resources.
type Rule struct {
	Resources []string
	Paths     []string

	line int // in its file; 0 if it did not come from one
}

// UnmarshalYAML decodes a rule strictly: an unknown key is an error with its line.
func (r *Rule) UnmarshalYAML(n *yaml.Node) error {
	*r = Rule{line: n.Line}
	return Mapping(n, map[string]any{"resources": &r.Resources, "paths": &r.Paths})
}

// Mapping decodes a YAML mapping into the pointers in fields. An unknown or repeated key is an error with its
// line.
func Mapping(n *yaml.Node, fields map[string]any) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: want keys and values", n.Line)
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		into, known := fields[key.Value]
		switch {
		case !known:
			return fmt.Errorf("line %d: unknown key %q", key.Line, key.Value)
		case seen[key.Value]:
			return fmt.Errorf("line %d: key %q occurs twice", key.Line, key.Value)
		}
		seen[key.Value] = true
		if err := value.Decode(into); err != nil {
			return fmt.Errorf("line %d: key %q: %w", key.Line, key.Value, err)
		}
	}
	return nil
}

// Set is a list of compiled rules. It is safe for concurrent use and must not be copied.
type Set struct {
	rules []rule
	known sync.Map // patterns by resourceKey; one entry per kind
	names sync.Map // other names of resources, by resourceKey
}

type resourceKey struct{ group, resource string }

type rule struct {
	resources []string
	patterns  []diff.Pattern
}

// Compile checks and compiles rules. Errors name the line, if the rule came from a file, and the cause.
func Compile(list []Rule) (*Set, error) {
	s := &Set{rules: make([]rule, len(list))}
	for i, r := range list {
		var err error
		if s.rules[i], err = r.compile(); err == nil {
			continue
		}
		if r.line > 0 {
			return nil, fmt.Errorf("line %d: %w", r.line, err)
		}
		return nil, fmt.Errorf("rule %d: %w", i+1, err)
	}
	return s, nil
}

func (r Rule) compile() (rule, error) {
	var c rule
	if len(r.Resources) == 0 || len(r.Paths) == 0 {
		return c, fmt.Errorf(`a rule needs resources and paths; "*" is every resource`)
	}
	c.resources = make([]string, len(r.Resources))
	for i, resource := range r.Resources {
		if err := CheckResource(resource); err != nil {
			return c, err
		}
		c.resources[i] = strings.ToLower(resource)
	}
	for _, text := range r.Paths {
		p, err := diff.ParsePattern(text)
		if err != nil {
			return c, err
		}
		c.patterns = append(c.patterns, p)
	}
	return c, nil
}

// For returns the patterns of the rules that name a resource, in order. The slice is shared.
func (s *Set) For(group, resource string) []diff.Pattern {
	key := resourceKey{group, resource}
	if known, ok := s.known.Load(key); ok {
		patterns, _ := known.([]diff.Pattern)
		return patterns
	}
	var patterns []diff.Pattern
	var names []string
	if learned, ok := s.names.Load(key); ok {
		names, _ = learned.([]string)
	}
	for _, r := range s.rules {
		if MatchAny(r.resources, group, resource, names...) {
			patterns = append(patterns, r.patterns...)
		}
	}
	s.known.Store(key, patterns)
	return patterns
}

// Learn registers a resource's other names: the singular, the kind and short names. Call it before For is
// called for the resource, and again when they change.
func (s *Set) Learn(group, resource string, names ...string) {
	key := resourceKey{group, resource}
	lower := make([]string, len(names))
	for i, name := range names {
		lower[i] = strings.ToLower(name)
	}
	if before, ok := s.names.Load(key); ok {
		if known, _ := before.([]string); slices.Equal(known, lower) {
			return
		}
	}
	s.names.Store(key, lower)
	s.known.Delete(key)
}

// Resources returns the resources that the rules name, in order.
func (s *Set) Resources() []string {
	var all []string
	for _, r := range s.rules {
		all = append(all, r.resources...)
	}
	return all
}

var resourceForm = regexp.MustCompile(`^[a-z0-9*-]+(\.([a-z0-9*-]+(\.[a-z0-9*-]+)*)?)?$`)

// CheckResource returns an error if a text is not valid as a rule's resource.
func CheckResource(text string) error {
	if !resourceForm.MatchString(strings.ToLower(text)) {
		return fmt.Errorf("resource %q: want a kind such as configmaps or deployments.apps", text)
	}
	return nil
}

// MatchAny reports whether one of the checked, lower-case texts names the resource. names are its names besides
// the plural.
func MatchAny(texts []string, group, resource string, names ...string) bool {
	for _, text := range texts {
		if strings.Contains(text, "*") {
			name := resource
			if strings.Contains(text, ".") {
				name += "." + group
			}
			if ok, _ := path.Match(text, name); ok {
				return true
			}
			continue
		}
		name, of, grouped := strings.Cut(text, ".")
		if (name == resource || slices.Contains(names, name)) && (!grouped || isGroup(of, group)) {
			return true
		}
	}
	return false
}

// isGroup compares the part after a resource's name as `tattler watch` does: with the group, a version and the
// group, or the group's first labels.
func isGroup(text, group string) bool {
	if version, rest, found := strings.Cut(text, "."); found && rest == group && versionForm.MatchString(version) {
		return true
	}
	return text == group || text != "" && strings.HasPrefix(group, text+".")
}

var versionForm = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)
