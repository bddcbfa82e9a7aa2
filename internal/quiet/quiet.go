// Package quiet identifies uninteresting changes: fields that change as a side effect, and whose change alone needs no
// action, and kinds that consist of such fields.
//
// The rules are data: rules.yaml holds the defaults, each with its reason. Users add rules in the same form,
// but cannot remove a default.
package quiet

import (
	"bytes"
	_ "embed" // rules.yaml
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/rules"
)

//go:embed rules.yaml
var defaults []byte

// Rules is the content of a file like rules.yaml.
type Rules struct {
	// Hidden are resources, in the syntax of a rule, that are watched only if named.
	Hidden []string
	// Quiet are the fields.
	Quiet []rules.Rule
}

// UnmarshalYAML decodes rules strictly: an unknown key is an error with its line.
func (r *Rules) UnmarshalYAML(n *yaml.Node) error {
	*r = Rules{}
	return rules.Mapping(n, map[string]any{"hidden": &r.Hidden, "quiet": &r.Quiet})
}

// Parse decodes YAML in the form of rules.yaml. Errors name the line and the key. An empty text has no rules.
func Parse(text []byte) (Rules, error) {
	var r Rules
	dec := yaml.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&r); err != nil && !errors.Is(err, io.EOF) {
		return Rules{}, fmt.Errorf("read quiet rules: %w", err)
	}
	var more yaml.Node
	if dec.Decode(&more) == nil {
		return Rules{}, fmt.Errorf("read quiet rules: line %d: a second document would be ignored", more.Line)
	}
	if _, err := compile(r); err != nil {
		return Rules{}, err
	}
	return r, nil
}

// Set is a set of compiled rules. It is safe for concurrent use.
type Set struct {
	hidden []string
	fields *rules.Set
}

// New compiles the default rules and the user's.
func New(user ...Rules) (*Set, error) {
	all, err := Parse(defaults)
	if err != nil {
		return nil, err
	}
	for _, u := range user {
		if _, err := compile(u); err != nil { // separately, so that a rule's number is the user's
			return nil, err
		}
		all.Hidden = append(all.Hidden, u.Hidden...)
		all.Quiet = append(all.Quiet, u.Quiet...)
	}
	return compile(all)
}

func compile(r Rules) (*Set, error) {
	for _, h := range r.Hidden {
		err := rules.CheckResource(h)
		if err == nil && strings.ToLower(h) != h {
			err = fmt.Errorf("resource %q: want a lower-case plural", h)
		}
		if err != nil {
			return nil, fmt.Errorf("read quiet rules: hidden: %w", err)
		}
	}
	fields, err := rules.Compile(r.Quiet)
	if err != nil {
		return nil, fmt.Errorf("read quiet rules: %w", err)
	}
	return &Set{hidden: r.Hidden, fields: fields}, nil
}

// Quiet reports whether a rule covers the path in objects of a resource, given by its plural and its group
// (empty for the core group).
func (s *Set) Quiet(group, resource string, p diff.Path) bool {
	for _, pattern := range s.fields.For(group, resource) {
		if pattern.Covers(p) {
			return true
		}
	}
	return false
}

// Learn registers the names by which rules may call a resource; see rules.Set.Learn.
func (s *Set) Learn(group, resource string, names ...string) {
	s.fields.Learn(group, resource, names...)
}

// Hidden reports whether a resource is watched only if named.
func (s *Set) Hidden(group, resource string) bool { return rules.MatchAny(s.hidden, group, resource) }
