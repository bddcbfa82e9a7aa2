package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/diff"
)

// stored is the schema of a single kind.
type stored struct {
	Kind    *node            `json:"kind"`
	Schemas map[string]*node `json:"schemas,omitempty"` // the schemas it refers to
}

// Marshal encodes a schema that Schemas returned, for comparing objects without the server; Unmarshal decodes
// it. Equal schemas give equal bytes.
func Marshal(s diff.Schema) ([]byte, error) {
	of, ok := s.(schema)
	if !ok {
		return nil, fmt.Errorf("marshal schema: it is a %T", s)
	}
	out := stored{Kind: of.node, Schemas: map[string]*node{}}
	out.reach(of.doc, of.node)
	return json.Marshal(out)
}

// reach adds the schemas that a node refers to.
func (st *stored) reach(d *document, n *node) {
	if n == nil {
		return
	}
	if name, isRef := strings.CutPrefix(n.Ref, refPrefix); isRef && st.Schemas[name] == nil && d.schemas[name] != nil {
		st.Schemas[name] = d.schemas[name]
		st.reach(d, d.schemas[name])
	}
	for _, c := range n.children() {
		st.reach(d, c)
	}
}

// Unmarshal decodes a schema that Marshal encoded.
func Unmarshal(b []byte) (diff.Schema, error) {
	var st stored
	if err := json.Unmarshal(b, &st); err != nil {
		return nil, fmt.Errorf("unmarshal schema: %w", err)
	}
	if st.Kind == nil || slices.Contains(slices.Collect(maps.Values(st.Schemas)), nil) {
		return nil, errors.New("unmarshal schema: a part is missing")
	}
	return schema{&document{schemas: st.Schemas}, st.Kind}, nil
}

// MarshalJSON encodes the schema of a map's values.
func (v values) MarshalJSON() ([]byte, error) { return json.Marshal(v.node) }

// IsZero reports whether the schema of the values is unknown.
func (v values) IsZero() bool { return v.node == nil }
