package openapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/diff"
)

// document holds the schemas of one group and version, by name.
type document struct {
	schemas map[string]*node
	kinds   map[gvk]*node
}

// node is the part of an OpenAPI schema that a diff needs. The x-kubernetes fields are documented at
// k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaProps; the patch ones (older, only for
// built-in kinds) at
// github.com/kubernetes/community/blob/main/contributors/devel/sig-api-machinery/strategic-merge-patch.md.
type node struct {
	Ref        string           `json:"$ref,omitempty"`
	AllOf      []*node          `json:"allOf,omitempty"`
	Properties map[string]*node `json:"properties,omitempty"`
	Values     values           `json:"additionalProperties,omitzero"`
	Items      *node            `json:"items,omitempty"`
	Default    any              `json:"default,omitempty"`

	ListType      string   `json:"x-kubernetes-list-type,omitempty"`
	ListMapKeys   []string `json:"x-kubernetes-list-map-keys,omitempty"`
	PatchMergeKey string   `json:"x-kubernetes-patch-merge-key,omitempty"`
	PatchStrategy string   `json:"x-kubernetes-patch-strategy,omitempty"`
	Kinds         []gvk    `json:"x-kubernetes-group-version-kind,omitempty"`
}

type gvk struct{ Group, Version, Kind string }

// values is the schema of a map's values. In the document it may also be a boolean.
type values struct{ *node }

func (v *values) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		return json.Unmarshal(b, &v.node)
	}
	return nil
}

func parse(body []byte) (*document, error) {
	var raw struct {
		Components struct {
			Schemas map[string]*node `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, err
	}
	if len(raw.Components.Schemas) == 0 {
		return nil, fmt.Errorf("no schemas in %d bytes", len(body))
	}
	d := &document{schemas: raw.Components.Schemas, kinds: make(map[gvk]*node)}
	keys := make(map[string]bool)
	for _, n := range d.schemas {
		n.collectKeys(keys)
		if n == nil {
			continue
		}
		for _, k := range n.Kinds {
			d.kinds[k] = n
		}
		n.Kinds = nil
	}
	for _, n := range d.schemas {
		n.prune(keys)
	}
	return d, nil
}

// collectKeys collects the names of all merge keys: only their defaults are needed.
func (n *node) collectKeys(keys map[string]bool) {
	if n == nil {
		return
	}
	for _, k := range append(slices.Clip(n.ListMapKeys), n.PatchMergeKey) {
		keys[k] = true
	}
	for _, c := range n.children() {
		c.collectKeys(keys)
	}
}

func (n *node) children() []*node {
	cs := append(slices.Clip(n.AllOf), n.Items, n.Values.node)
	for _, p := range n.Properties {
		cs = append(cs, p)
	}
	return cs
}

// prune drops nodes without information, which is most of a document.
func (n *node) prune(keys map[string]bool) {
	if n == nil {
		return
	}
	for _, c := range n.children() {
		c.prune(keys)
	}
	for name, p := range n.Properties {
		if p != nil && !keys[name] {
			p.Default = nil
		}
		if p.empty() {
			delete(n.Properties, name)
		}
	}
	if n.Items != nil {
		n.Items.Default = nil
		if n.Items.empty() {
			n.Items = nil
		}
	}
	if n.Values.empty() {
		n.Values.node = nil
	}
}

func (n *node) empty() bool {
	return n == nil || n.Ref == "" && len(n.AllOf) == 0 && len(n.Properties) == 0 && n.Items == nil && n.Values.node == nil &&
		n.Default == nil && n.ListType == "" && n.PatchMergeKey == ""
}

// kind returns the schema of a kind's objects, or nil.
func (d *document) kind(group, version, kind string) diff.Schema {
	if d == nil {
		return nil
	}
	if n := d.kinds[gvk{group, version, kind}]; n != nil {
		return schema{d, n}
	}
	return nil
}

// schema is a node with its document. References are resolved when needed, because some schemas
// (JSONSchemaProps) contain themselves.
type schema struct {
	doc  *document
	node *node
}

const refPrefix = "#/components/schemas/"

// maxRefs bounds a chain of references; those of real documents are one deep.
const maxRefs = 8

// find returns the first match among the node, its reference and its components.
func (s schema) find(ok func(*node) bool) *node { return s.doc.find(s.node, ok, maxRefs) }

func (d *document) find(n *node, ok func(*node) bool, depth int) *node {
	if n == nil || depth == 0 {
		return nil
	}
	if ok(n) {
		return n
	}
	if name, isRef := strings.CutPrefix(n.Ref, refPrefix); isRef {
		if found := d.find(d.schemas[name], ok, depth-1); found != nil {
			return found
		}
	}
	for _, part := range n.AllOf {
		if found := d.find(part, ok, depth-1); found != nil {
			return found
		}
	}
	return nil
}

// at wraps a node; it returns a nil interface for a nil node.
func (s schema) at(n *node) diff.Schema {
	if n == nil {
		return nil
	}
	return schema{s.doc, n}
}

// Field implements diff.Schema.
func (s schema) Field(name string) diff.Schema {
	if n := s.find(func(n *node) bool { return n.Properties[name] != nil }); n != nil {
		return s.at(n.Properties[name])
	}
	if n := s.find(func(n *node) bool { return n.Values.node != nil }); n != nil {
		return s.at(n.Values.node)
	}
	return nil
}

// Elem implements diff.Schema.
func (s schema) Elem() diff.Schema {
	if n := s.find(func(n *node) bool { return n.Items != nil }); n != nil {
		return s.at(n.Items)
	}
	return nil
}

// List implements diff.Schema. The list type takes precedence over the patch merge key: a container's ports
// have only containerPort as patch key, under which one port with two protocols is ambiguous.
func (s schema) List() (diff.ListType, []string) {
	n := s.find(func(n *node) bool { return n.ListType != "" || n.PatchMergeKey != "" })
	if n == nil {
		return diff.ListUnknown, nil
	}
	switch {
	case n.ListType == "atomic":
		return diff.ListAtomic, nil
	case n.ListType == "set":
		return diff.ListSet, nil
	case n.ListType == "map" && len(n.ListMapKeys) > 0:
		return diff.ListMap, n.ListMapKeys
	case n.PatchMergeKey != "" && slices.Contains(strings.Split(n.PatchStrategy, ","), "merge"):
		return diff.ListMap, []string{n.PatchMergeKey}
	}
	return diff.ListUnknown, nil
}

// Default implements diff.Schema.
func (s schema) Default(name string) any {
	field, ok := s.Field(name).(schema)
	if !ok {
		return nil
	}
	n := field.find(func(n *node) bool { return n.Default != nil })
	if n == nil {
		return nil
	}
	switch n.Default.(type) {
	case string, float64, bool:
		return n.Default
	}
	return nil
}
