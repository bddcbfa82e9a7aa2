package synth

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// OpenAPI returns the part of the server's OpenAPI v3 document of v1 that describes Pods. It is made from their Go types,
// which name the merge keys of most lists.
func OpenAPI() []byte {
	s := schemas{}
	pod := s.of(reflect.TypeFor[corev1.Pod]())
	s[pod.Ref[len(schemaPrefix):]].Kinds = []map[string]string{{"group": "", "version": "v1", "kind": "Pod"}}
	b, err := json.Marshal(map[string]any{"openapi": "3.0.0", "components": map[string]any{"schemas": s}})
	if err != nil {
		panic(fmt.Sprintf("synth: encode OpenAPI document: %v", err))
	}
	return b
}

// schemaPrefix begins the references to schemas.
const schemaPrefix = "#/components/schemas/"

// schemas are the schemas of structs, by name.
type schemas map[string]*schema

// schema is the part of a schema that matters to clients that compare objects.
type schema struct {
	Ref           string              `json:"$ref,omitempty"`
	Type          string              `json:"type,omitempty"`
	Properties    map[string]*schema  `json:"properties,omitempty"`
	Values        *schema             `json:"additionalProperties,omitempty"`
	Items         *schema             `json:"items,omitempty"`
	PatchMergeKey string              `json:"x-kubernetes-patch-merge-key,omitempty"`
	PatchStrategy string              `json:"x-kubernetes-patch-strategy,omitempty"`
	Kinds         []map[string]string `json:"x-kubernetes-group-version-kind,omitempty"`
}

// of returns the schema of a type: for a struct, a reference to it.
func (s schemas) of(t reflect.Type) *schema {
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			return &schema{Type: "array", Items: s.of(t.Elem())}
		}
	case reflect.Map:
		return &schema{Type: "object", Values: s.of(t.Elem())}
	case reflect.Struct:
		if !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
			return s.object(t)
		}
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.Int32, reflect.Int64:
		return &schema{Type: "integer"}
	}
	return &schema{Type: "string"} // also times, quantities and the like
}

func (s schemas) object(t reflect.Type) *schema {
	name := strings.ReplaceAll(t.PkgPath(), "/", ".") + "." + t.Name()
	if s[name] == nil {
		s[name] = &schema{Type: "object", Properties: map[string]*schema{}}
		s.fields(t, s[name].Properties)
	}
	return &schema{Ref: schemaPrefix + name}
}

// fields adds the schemas of a struct's fields, as encoding/json writes them.
func (s schemas) fields(t reflect.Type, to map[string]*schema) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && f.Anonymous:
			s.fields(f.Type, to)
		default:
			of := s.of(f.Type)
			of.PatchMergeKey, of.PatchStrategy = f.Tag.Get("patchMergeKey"), f.Tag.Get("patchStrategy")
			to[name] = of
		}
	}
}
