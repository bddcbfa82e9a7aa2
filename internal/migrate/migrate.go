// Package migrate converts other watchers' configurations to Tattler's.
//
// The result is a starting point, with comments; Notes lists what has no counterpart. Credentials are not copied: the file
// refers to ${env:NAME}, and Notes says what to set.
package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Result is a converted file.
type Result struct {
	// YAML is the configuration.
	YAML string
	// Notes are for the user, a sentence each.
	Notes []string
}

// Formats returns the names of the supported tools.
func Formats() []string { return []string{"kubediff", "kubewatch"} }

// File converts a tool's file. If it is a manifest with a ConfigMap that holds the tool's file, that is read. An error
// names the place, and no value.
func File(tool string, text []byte) (Result, error) {
	var read func(*yaml.Node) (draft, error)
	switch tool {
	case "kubewatch":
		read = kubewatch
	case "kubediff":
		read = kubediff
	default:
		return Result{}, fmt.Errorf("import from %s: unknown tool: use one of %s", tool, strings.Join(Formats(), ", "))
	}
	root, err := document(text)
	if err != nil {
		return Result{}, fmt.Errorf("read the file of %s: %w", tool, err)
	}
	d, err := read(root)
	if err != nil {
		return Result{}, fmt.Errorf("read the file of %s: %w", tool, err)
	}
	return Result{YAML: d.yaml(tool), Notes: d.notes}, nil
}

// document returns the root of the tool's file.
func document(text []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		if err := dec.Decode(&doc); err != nil {
			return nil, fmt.Errorf("it contains no configuration: %w", err)
		}
		if len(doc.Content) == 0 {
			continue
		}
		root := doc.Content[0]
		if get(root, "apiVersion") == nil {
			return root, nil
		}
		if kind := get(root, "kind"); kind == nil || kind.Value != "ConfigMap" {
			continue // another object of the manifest
		}
		data := get(root, "data")
		for i := 1; data != nil && i < len(data.Content); i += 2 {
			if name := data.Content[i-1].Value; !strings.HasSuffix(name, ".yaml") && !strings.HasSuffix(name, ".yml") {
				continue
			}
			var inner yaml.Node
			if err := yaml.Unmarshal([]byte(data.Content[i].Value), &inner); err != nil {
				return nil, fmt.Errorf("%s: %w", data.Content[i-1].Value, err)
			}
			if len(inner.Content) > 0 {
				return inner.Content[0], nil
			}
		}
		return nil, errors.New("the ConfigMap has no key that ends with .yaml")
	}
}

// get returns the value of a key; nil if it is missing. It ignores case, as these tools do.
func get(n *yaml.Node, key string) *yaml.Node {
	for name, value := range pairs(n) {
		if strings.EqualFold(name.Value, key) {
			return value
		}
	}
	return nil
}

func pairs(n *yaml.Node) func(func(name, value *yaml.Node) bool) {
	return func(yield func(name, value *yaml.Node) bool) {
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// draft is a configuration being built.
type draft struct {
	include    []string
	namespaces []string
	sinks      []sink
	notes      []string
}

// sink is a sink: its type, and its keys with their values, already in YAML.
type sink struct {
	name, typ string
	keys      [][2]string
	comment   string
}

func (d *draft) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(d.notes, text) {
		d.notes = append(d.notes, text)
	}
}

// add adds a sink under a unique name.
func (d *draft) add(s sink) {
	name := s.name
	for n := 2; slices.ContainsFunc(d.sinks, func(o sink) bool { return o.name == s.name }); n++ {
		s.name = fmt.Sprintf("%s-%d", name, n)
	}
	d.sinks = append(d.sinks, s)
}

func (d *draft) yaml(tool string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Made by `tattler config import %s`; `tattler config check -c FILE` says what it would do.\n", tool)
	b.WriteString("apiVersion: tattler.dev/v1alpha1\nkind: Config\nwatch:\n")
	fmt.Fprintf(&b, "- resources: {include: [%s]}\n", list(d.include))
	if len(d.namespaces) > 0 {
		fmt.Fprintf(&b, "  namespaces: {include: [%s]}\n", list(d.namespaces))
	}
	b.WriteString("sinks:\n")
	for _, s := range d.sinks {
		if s.comment != "" {
			fmt.Fprintf(&b, "# %s\n", s.comment)
		}
		fmt.Fprintf(&b, "- name: %s\n", s.name)
		if len(s.keys) == 0 {
			fmt.Fprintf(&b, "  %s: {}\n", s.typ)
			continue
		}
		fmt.Fprintf(&b, "  %s:\n", s.typ)
		for _, k := range s.keys {
			fmt.Fprintf(&b, "    %s: %s\n", k[0], k[1])
		}
	}
	return b.String()
}

// list formats texts for a YAML list.
func list(texts []string) string {
	out := make([]string, len(texts))
	for i, s := range texts {
		out[i] = quote(s)
	}
	return strings.Join(out, ", ")
}

// quote formats a text for YAML, in double quotes if needed. Tattler expands ${, so it is escaped.
func quote(s string) string {
	s = strings.ReplaceAll(s, "${", "$${")
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '/')
	}) && s[0] != '-' {
		var v any
		if yaml.Unmarshal([]byte(s), &v) == nil {
			if text, ok := v.(string); ok && text == s {
				return s
			}
		}
	}
	return fmt.Sprintf("%q", s)
}
