package event

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write schema.json and the golden files")

// TestSchemaIsFresh makes the schema from the Go types and their comments.
func TestSchemaIsFresh(t *testing.T) {
	g := generator{comments: map[string]string{}, enums: map[string][]any{}, defs: map[string]any{}}
	g.readSource(t, "event.go")
	root := g.object(reflect.TypeFor[Event]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Tattler change event"
	root["$defs"] = g.defs
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		t.Fatal(err)
	}
	golden(t, "schema.json", b.Bytes())
}

// generator walks types into JSON Schema; comments and enums come from the source, so that they are
// written once.
type generator struct {
	comments map[string]string // by "Type" and "Type.Field"
	enums    map[string][]any  // by type name: its string constants
	defs     map[string]any
}

func (g *generator) readSource(t *testing.T, file string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range f.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				typ, ok := s.Type.(*ast.Ident)
				if !ok {
					continue
				}
				g.comments[typ.Name+" values"] = text(d.Doc)
				for _, v := range s.Values {
					value, err := strconv.Unquote(v.(*ast.BasicLit).Value)
					if err != nil {
						t.Fatal(err)
					}
					g.enums[typ.Name] = append(g.enums[typ.Name], value)
				}
			case *ast.TypeSpec:
				g.comments[s.Name.Name] = text(d.Doc)
				if st, ok := s.Type.(*ast.StructType); ok {
					for _, field := range st.Fields.List {
						g.comments[s.Name.Name+"."+field.Names[0].Name] = text(field.Doc)
					}
				}
			}
		}
	}
}

func text(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

func (g *generator) object(typ reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for f := range fields(typ) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		p := g.value(f.Type)
		if c := g.comments[typ.Name()+"."+f.Name]; c != "" {
			p["description"] = c
		}
		if e := f.Tag.Get("enum"); e != "" {
			p["enum"] = strings.Split(e, ",")
		}
		properties[name] = p
		if options != "omitempty" {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "description": g.comments[typ.Name()], "properties": properties, "required": required}
}

func fields(typ reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range typ.NumField() {
			if !yield(typ.Field(i)) {
				return
			}
		}
	}
}

func (g *generator) value(typ reflect.Type) map[string]any {
	switch {
	case typ == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case typ.Kind() == reflect.Pointer:
		return g.value(typ.Elem())
	case typ.Kind() == reflect.Slice:
		return map[string]any{"type": "array", "items": g.value(typ.Elem())}
	case typ.Kind() == reflect.Map:
		return map[string]any{"type": "object"}
	case typ.Kind() == reflect.Interface:
		return map[string]any{} // anything
	case typ.Kind() == reflect.Bool:
		return map[string]any{"type": "boolean"}
	case typ.Kind() == reflect.Int64:
		return map[string]any{"type": "integer"}
	case typ.Kind() == reflect.String && g.enums[typ.Name()] != nil:
		return map[string]any{"type": "string", "enum": g.enums[typ.Name()]}
	case typ.Kind() == reflect.String:
		return map[string]any{"type": "string"}
	case typ.Kind() == reflect.Struct:
		if g.defs[typ.Name()] == nil {
			g.defs[typ.Name()] = g.object(typ)
		}
		return map[string]any{"$ref": "#/$defs/" + typ.Name()}
	}
	panic("no schema for " + typ.String())
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is stale; run go test ./event -update and read the difference. Got:\n%s", file, got)
	}
}
