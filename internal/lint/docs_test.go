package lint

import (
	"go/ast"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// undocumented returns the missing comments in the files of one directory: on the package, and on every
// exported name at the top level, including methods of exported types. One comment may cover a group of
// constants or variables; well-known methods (Error, Unwrap, String) need none.
func undocumented(files []file) []string {
	var out []string
	dir, want, documented, code := "", "", false, false
	for _, f := range files {
		if f.isTest() || ast.IsGenerated(f.ast) {
			continue
		}
		code = true
		dir = filepath.ToSlash(filepath.Dir(f.path))
		want = "Package " + f.ast.Name.Name
		if f.ast.Name.Name == "main" {
			want = "Command " + filepath.Base(dir)
		}
		documented = documented || starts(f.ast.Doc, want)
		for _, d := range f.ast.Decls {
			for _, name := range bare(d) {
				out = append(out, f.path+": "+name+" has no comment")
			}
		}
	}
	if code && !documented {
		out = append(out, dir+": no comment that begins with "+want)
	}
	return out
}

// starts reports whether a comment starts with the words.
func starts(c *ast.CommentGroup, words string) bool {
	rest, ok := strings.CutPrefix(c.Text(), words)
	return ok && rest != "" && strings.ContainsAny(rest[:1], " ,.:\n")
}

// bare returns the exported names without a comment in a declaration.
func bare(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		known := d.Recv != nil && (name == "Error" || name == "Unwrap" || name == "String")
		if d.Name.IsExported() && d.Doc == nil && !known && exportedReceiver(d) {
			return []string{name}
		}
	case *ast.GenDecl:
		var out []string
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && s.Doc == nil && (d.Doc == nil || len(d.Specs) > 1) {
					out = append(out, s.Name.Name)
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
						out = append(out, name.Name)
					}
				}
			}
		}
		return out
	}
	return nil
}

// exportedReceiver reports whether a function has no receiver or an exported one.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			return true
		}
	}
}

func TestUndocumentedFindsProblems(t *testing.T) {
	const doc = "// Package a is one.\npackage a\n"
	for _, tc := range []struct{ why, path, text, want string }{
		{"a documented package", "x/a/a.go", doc, ""},
		{"none", "x/a/a.go", "package a\n", "Package a"},
		{"a comment about something else", "x/a/a.go", "// Package ab is one.\npackage a\n", "Package a"},
		{"a command is named by its directory", "cmd/tool/main.go", "// Command tool is one.\npackage main\n", ""},
		{"a command named as a package", "cmd/tool/main.go", "// Package main is one.\npackage main\n", "Command tool"},
		{"tests need none", "x/a/a_test.go", "package a\nfunc TestA() {}\n", ""},
		{"a bare function", "x/a/a.go", doc + "func A() {}\n", "A has no comment"},
		{"a private one", "x/a/a.go", doc + "func a() {}\n", ""},
		{"a bare method", "x/a/a.go", doc + "func (x *T[K]) A() {}\n", "A has no comment"},
		{"an error's text", "x/a/a.go", doc + "func (e *E) Error() string { return e.s }\n", ""},
		{"a method of a private type", "x/a/a.go", doc + "func (x *t) A() {}\n", ""},
		{"a bare type", "x/a/a.go", doc + "type A int\n", "A has no comment"},
		{"a group of types with a single comment", "x/a/a.go", doc + "// Types.\ntype (\nA int\nB int\n)\n", "A has no comment"},
		{"bare constants", "x/a/a.go", doc + "const A = 1\n", "A has no comment"},
		{"a group under one comment", "x/a/a.go", doc + "// The As.\nconst (\nA = 1\nB = 2\n)\n", ""},
		{"a trailing comment", "x/a/a.go", doc + "var A = 1 // one\n", ""},
	} {
		f, err := parse(tc.path, []byte(tc.text))
		if err != nil {
			t.Fatalf("%s: %v", tc.why, err)
		}
		expect(t, tc.why, undocumented([]file{f}), tc.want)
	}
}

// TestLibraryFitsTwoScreens keeps the library's overview short enough to be read.
func TestLibraryFitsTwoScreens(t *testing.T) {
	const most = 112
	out, err := exec.Command("go", "doc", module+"/informer").Output()
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(out), "\n"); n > most {
		t.Errorf("go doc ./informer has %d lines, want %d at most: shorten the contract, or move names to a package of their own", n, most)
	}
}
