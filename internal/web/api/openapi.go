package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

const description = "What changed in a Kubernetes cluster. You see what your rights in the cluster let you get. Fields may be added. " +
	"A parameter that the path does not have, or that is given without a value, is an error; so is a kind or a cluster that the journal does not have, " +
	"and a range that ends before it begins. An object or a namespace that you may not see is as one that does not exist. " +
	"A next is a place in the list: the page after it begins there, whatever was deleted meanwhile."

// OpenAPI returns the OpenAPI 3.1 document of the API. It is made from the table of endpoints and the Go types of their
// answers, so that it cannot differ from them. docs/openapi.json is a copy.
func OpenAPI() ([]byte, error) {
	s := schemas{all: map[string]any{}}
	failed := map[string]any{"description": "an error", "content": content("application/json", s.of(reflect.TypeFor[Error]()))}
	paths := map[string]any{}
	for _, e := range endpoints() {
		get := map[string]any{"summary": e.summary, "operationId": operation(e.path)}
		var parameters []any
		for _, p := range e.parameters {
			parameters = append(parameters, p.form(e.inPath(p)))
		}
		if parameters != nil {
			get["parameters"] = parameters
		}
		ok := map[string]any{"description": "the answer"}
		switch {
		case e.stream != nil:
			ok["description"] = "lines of JSON, the last of which has end or error"
			ok["content"] = content("application/x-ndjson", s.of(reflect.TypeOf(e.answer)))
		case e.answer == nil:
			ok["content"] = content("application/json", map[string]any{"type": "object"})
		default:
			ok["content"] = content("application/json", s.of(reflect.TypeOf(e.answer)))
		}
		get["responses"] = map[string]any{"200": ok, "default": failed}
		paths[Root+e.path] = map[string]any{"get": get}
	}
	b, err := json.MarshalIndent(map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "Tattler", "version": "v1",
			"description": description,
		},
		"paths": paths, "components": map[string]any{"schemas": s.all},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the OpenAPI document: %w", err)
	}
	return append(b, '\n'), nil
}

func content(media string, schema any) map[string]any {
	return map[string]any{media: map[string]any{"schema": schema}}
}

// operation is a name for a path: rawId for raw/id/{id}.
func operation(path string) string {
	var b strings.Builder
	for i, word := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("/{}-.", r) }) {
		if i > 0 {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		b.WriteString(word)
	}
	return b.String()
}

func (p *parameter) form(inPath bool) map[string]any {
	form := map[string]any{"name": p.name, "in": "query", "schema": map[string]any{"type": p.kind}}
	if p.kind == "array" {
		form["schema"] = map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
	}
	if p.doc != "" {
		form["description"] = p.doc
	}
	if inPath {
		form["in"] = "path"
	}
	if p.required {
		form["required"] = true
	}
	return form
}

// schemas makes JSON Schemas of Go types. Named structs are components.
type schemas struct{ all map[string]any }

var (
	timeType = reflect.TypeFor[time.Time]()
	textType = reflect.TypeFor[Text]()
	rawType  = reflect.TypeFor[json.RawMessage]()
)

func (s *schemas) of(t reflect.Type) map[string]any {
	switch {
	case t == timeType:
		return map[string]any{"type": "string", "format": "date-time"}
	case t == textType, t == rawType:
		return map[string]any{"type": "object"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Int, reflect.Int64, reflect.Uint8, reflect.Uint64:
		return map[string]any{"type": "integer"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "contentEncoding": "base64"}
		}
		return map[string]any{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.component(t)
	default: // any
		return map[string]any{}
	}
}

// component refers to the schema of a struct, which it makes once. Types of two packages may have one name.
func (s *schemas) component(t reflect.Type) map[string]any {
	pkg := t.PkgPath()[strings.LastIndex(t.PkgPath(), "/")+1:]
	name := strings.ToUpper(pkg[:1]) + pkg[1:] + t.Name()
	if pkg == "api" {
		name = t.Name()
	}
	if s.all[name] == nil {
		properties := map[string]any{}
		schema := map[string]any{"type": "object", "properties": properties}
		s.all[name] = schema // first: a type may contain itself
		if required := s.fields(t, properties); len(required) > 0 {
			schema["required"] = required
		}
	}
	return map[string]any{"$ref": "#/components/schemas/" + name}
}

// fields adds the fields of a struct, as encoding/json writes them, and returns those that are never left out.
func (s *schemas) fields(t reflect.Type, to map[string]any) (required []string) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
			continue
		case f.Anonymous && name == "":
			required = append(required, s.fields(f.Type, to)...)
			continue
		}
		schema := s.of(f.Type)
		if strings.Contains(options, "string") {
			schema = map[string]any{"type": "string"}
		}
		if doc := f.Tag.Get("doc"); doc != "" {
			schema["description"] = doc
		}
		to[name] = schema
		if !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	return required
}
