// Package rules reads lists of {resources: […], paths: […]}: which places of which kinds a quiet or
// redact rule means.
//
// A resource is named as for `tattler watch`, by its plural, singular, kind or short name, in letters of any
// case: configmaps (in any group), deployments.apps (in that group), pods. (with a dot at its end: in the
// core group). A * stands for any run of characters of the plural and the group, so that * alone is every
// resource and *.kustomize.toolkit.fluxcd.io all of a group. Which resources exist only the server knows: see
// Set.Learn. The paths are patterns of package diff.
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

// Rule names places in objects: the Paths of the Resources.
type Rule struct {
	Resources []string
	Paths     []string

	line int // in the file it was read from; 0 where it was not
}

// UnmarshalYAML reads a rule strictly: an unknown key is an error that names its line.
func (r *Rule) UnmarshalYAML(n *yaml.Node) error {
	*r = Rule{line: n.Line}
	return Mapping(n, map[string]any{"resources": &r.Resources, "paths": &r.Paths})
}

// Mapping decodes a YAML mapping into the fields' pointers. A key that is not in fields, or that
// occurs twice, is an error that names its line.
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
	known sync.Map // patterns by resourceKey, of which there are as many as kinds
	names sync.Map // other names of resources, by resourceKey
}

type resourceKey struct{ group, resource string }

type rule struct {
	resources []string
	patterns  []diff.Pattern
}

// Compile checks rules. The error names the line, where the rule came from a file, and what is wrong.
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

// For returns the patterns of the rules that name a resource, in their order. It is shared.
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

// Learn notes the names that a resource has beside its plural: the singular, the kind and short names. It is
// called before For asks for the resource, and again when they change.
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

// Resources are what the rules name, in their order.
func (s *Set) Resources() []string {
	var all []string
	for _, r := range s.rules {
		all = append(all, r.resources...)
	}
	return all
}

var resourceForm = regexp.MustCompile(`^[a-z0-9*-]+(\.([a-z0-9*-]+(\.[a-z0-9*-]+)*)?)?$`)

// CheckResource returns an error where a text cannot name resources.
func CheckResource(text string) error {
	if !resourceForm.MatchString(strings.ToLower(text)) {
		return fmt.Errorf("resource %q: want a kind such as configmaps or deployments.apps", text)
	}
	return nil
}

// MatchAny reports whether one of the checked texts, in lower case, names the resource. The names are others of
// the resource than its plural.
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

// isGroup compares what follows a resource's name, as `tattler watch` does: the group, a version and the group, or
// the group's first labels.
func isGroup(text, group string) bool {
	if version, rest, found := strings.Cut(text, "."); found && rest == group && versionForm.MatchString(version) {
		return true
	}
	return text == group || text != "" && strings.HasPrefix(group, text+".")
}

var versionForm = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)
