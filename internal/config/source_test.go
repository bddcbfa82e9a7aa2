package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// source is the part of a package that the reference needs.
type source struct {
	structs  map[string]*ast.StructType
	comments map[string]string
	enums    map[string][]string // the constants of a named type
	imports  map[string]*source  // the packages with structs for a sink's options, by name
	purpose  string              // the first sentence of the package's comment, without its subject
}

func readSource(t *testing.T, dir string) *source {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	s := &source{structs: map[string]*ast.StructType{}, comments: map[string]string{}, enums: map[string][]string{}}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if f.Doc != nil {
			sentence, _, _ := strings.Cut(strings.Join(strings.Fields(f.Doc.Text()), " "), ". ")
			purpose := strings.TrimPrefix(strings.TrimPrefix(sentence, "Package "+f.Name.Name+" "), "is the sink that ")
			s.purpose = strings.ToUpper(purpose[:1]) + strings.TrimSuffix(purpose[1:], ".") + "."
		}
		for _, decl := range f.Decls {
			if d, ok := decl.(*ast.GenDecl); ok {
				s.add(d)
			}
		}
	}
	return s
}

func (s *source) add(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if st, ok := spec.Type.(*ast.StructType); ok {
				s.structs[spec.Name.Name] = st
			}
			s.comments[spec.Name.Name] = strings.Join(strings.Fields(d.Doc.Text()), " ")
		case *ast.ValueSpec:
			typ, ok := spec.Type.(*ast.Ident)
			if !ok {
				continue
			}
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					text, _ := strconv.Unquote(lit.Value) // the parser read it
					s.enums[typ.Name] = append(s.enums[typ.Name], text)
				}
			}
		}
	}
}

func (s *source) keys(t *testing.T, prefix, typ string) (out []Key) {
	t.Helper()
	if from, name, ok := s.imported(typ); ok {
		return from.keys(t, prefix, name)
	}
	before := ""
	for _, f := range s.structs[typ].Fields.List {
		if f.Tag == nil {
			continue
		}
		tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`"))
		name, _, _ := strings.Cut(tag.Get("yaml"), ",")
		if name == "-" || name == "" || len(f.Names) != 1 {
			continue
		}
		words, below := s.words(f.Type, tag.Get("enum"))
		doc := strings.Join(strings.Fields(f.Doc.Text()), " ")
		if from, name, ok := s.imported(below); ok && doc == "" {
			doc = from.comments[name]
		} else if doc == "" {
			doc = s.comments[below]
		}
		if doc == "" && strings.Contains(before, " and "+f.Names[0].Name+" ") {
			doc = before // such as: Cert and Key are …
		}
		before = doc
		k := Key{Path: prefix + name, Type: words, Default: tag.Get("default"), Doc: s.doc(typ, name, doc)}
		if m := defaulted.FindStringSubmatch(k.Doc); m != nil {
			k.Doc, k.Default = m[1], m[2]
		} else if words == "true or false" {
			k.Default = "false"
		}
		if k.Doc == "" {
			t.Errorf("%s has no comment", k.Path)
		}
		out = append(out, k)
		if below != "" {
			next := k.Path + "."
			if strings.HasPrefix(words, "list") {
				next = k.Path + "[]."
			}
			out = append(out, s.keys(t, next, below)...)
		}
	}
	return out
}

// imported returns the source of a struct that words calls PACKAGE.NAME.
func (s *source) imported(typ string) (from *source, name string, ok bool) {
	pkg, name, ok := strings.Cut(typ, ".")
	return s.imports[pkg], name, ok
}

// words describes the values of a type; below is the struct whose keys are below it.
func (s *source) words(e ast.Expr, enum string) (words, below string) {
	if enum != "" {
		words = strings.ReplaceAll(enum, ",", ", ")
	}
	switch e := e.(type) {
	case *ast.StarExpr:
		return s.words(e.X, enum)
	case *ast.ArrayType:
		inner, below := s.words(e.Elt, enum)
		if below != "" {
			return "list of objects", below
		}
		return "list of " + inner, ""
	case *ast.MapType:
		inner, _ := s.words(e.Value, "")
		return "names and " + inner, ""
	case *ast.SelectorExpr:
		if e.Sel.Name == "Duration" || e.Sel.Name == "Size" {
			return strings.ToLower(e.Sel.Name), ""
		}
		if pkg, ok := e.X.(*ast.Ident); ok {
			if from := s.imports[pkg.Name]; from != nil && from.structs[e.Sel.Name] != nil {
				return "object", pkg.Name + "." + e.Sel.Name
			}
		}
	case *ast.Ident:
		switch {
		case words != "":
			return words, ""
		case s.structs[e.Name] != nil:
			return "object", e.Name
		case len(s.enums[e.Name]) > 0:
			return strings.Join(s.enums[e.Name], ", "), ""
		case e.Name == "bool":
			return "true or false", ""
		case strings.HasPrefix(e.Name, "int") || strings.HasPrefix(e.Name, "float"):
			return "number", ""
		case e.Name == "Size":
			return "size", ""
		}
	}
	return "text", ""
}

var (
	// defaulted matches a comment whose last sentence is the default, such as: Default: 10s.
	defaulted = regexp.MustCompile(`^(.*\.) Default: (.+)\.$`)

	inner = regexp.MustCompile(`\b[A-Z][a-z]+[A-Z]\w*\b`)
	pair  = regexp.MustCompile(`^([A-Z]\w*) and ([A-Z]\w*) `)
)

// doc rewrites a comment for keys: it drops the key's name at the start, and replaces the names of the struct's
// other fields by their keys, unless they are plain words.
func (s *source) doc(typ, name, comment string) string {
	first, rest, _ := strings.Cut(comment, " ")
	if first == "" {
		return ""
	}
	if verb, after, _ := strings.Cut(rest, " "); strings.EqualFold(first, name) || s.structs[first] != nil {
		switch verb {
		case "is", "are":
			first, rest, _ = strings.Cut(after, " ")
		case "and", "of":
		default:
			first, rest = verb, after
		}
	}
	key := func(word string) string {
		for _, f := range s.structs[typ].Fields.List {
			if f.Tag != nil && len(f.Names) == 1 && f.Names[0].Name == word {
				key, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("yaml"), ",")
				return key
			}
		}
		return word
	}
	if m := pair.FindStringSubmatch(comment); m != nil {
		first, rest = key(m[1])+" and "+key(m[2]), comment[len(m[0]):]
	}
	text := inner.ReplaceAllStringFunc(strings.TrimSpace(first+" "+rest), key)
	if pair.MatchString(comment) {
		return text // it starts with several keys
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
