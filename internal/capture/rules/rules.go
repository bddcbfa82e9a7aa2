// Package rules reads lists of {resources: […], paths: […]}: which places of which kinds a quiet or
// redact rule means.
//
// A resource is a lower-case plural: configmaps (in any group), deployments.apps (in that group),
// pods. (with a dot at its end: in the core group). A * stands for any run of characters, so that *
// alone is every resource and *.kustomize.toolkit.fluxcd.io all of a group. Whether a resource exists
// only the server knows; the paths are patterns of package diff.
package rules

import (
	"fmt"
	"path"
	"regexp"
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

// Set is a list of rules ready to be asked. It is immutable, and remembers what it was asked: it is not to
// be copied.
type Set struct {
	rules []rule
	known sync.Map // patterns by resourceKey, of which there are as many as kinds
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
	c := rule{resources: r.Resources}
	if len(r.Resources) == 0 || len(r.Paths) == 0 {
		return c, fmt.Errorf(`a rule needs resources and paths; "*" is every resource`)
	}
	for _, resource := range r.Resources {
		if err := CheckResource(resource); err != nil {
			return c, err
		}
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
	for _, r := range s.rules {
		if MatchAny(r.resources, group, resource) {
			patterns = append(patterns, r.patterns...)
		}
	}
	s.known.Store(key, patterns)
	return patterns
}

var resourceForm = regexp.MustCompile(`^[a-z0-9*-]+(\.([a-z0-9*-]+(\.[a-z0-9*-]+)*)?)?$`)

// CheckResource returns an error where a text cannot name resources.
func CheckResource(text string) error {
	if !resourceForm.MatchString(text) {
		return fmt.Errorf("resource %q: want a lower-case plural such as configmaps or deployments.apps", text)
	}
	return nil
}

// MatchAny tells whether one of the checked texts names the resource.
func MatchAny(texts []string, group, resource string) bool {
	full := resource + "." + group
	for _, text := range texts {
		name := resource
		if strings.Contains(text, ".") {
			name = full
		}
		if text == name {
			return true
		}
		if !strings.Contains(text, "*") {
			continue
		}
		if ok, _ := path.Match(text, name); ok {
			return true
		}
	}
	return false
}
