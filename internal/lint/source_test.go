package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	root     = "../.."
	maxLines = 600
)

// file is a Go file of the repository, in any of its modules.
type file struct {
	path  string // relative to the repository's root
	lines int
	ast   *ast.File
}

func (f file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

func TestSources(t *testing.T) {
	files := sources(t)
	if len(files) < 10 {
		t.Fatalf("found only %d Go files below %s", len(files), root)
	}
	packages := map[string][]file{}
	for _, f := range files {
		for _, problem := range check(f) {
			t.Error(problem)
		}
		packages[filepath.Dir(f.path)] = append(packages[filepath.Dir(f.path)], f)
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		for _, problem := range undocumented(packages[dir]) {
			t.Error(problem)
		}
	}
}

func sources(t *testing.T) []file {
	t.Helper()
	var files []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata"):
			return fs.SkipDir // the go command skips these, too
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		path, err = filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f, err := parse(filepath.ToSlash(path), text)
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func parse(path string, text []byte) (file, error) {
	tree, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
	return file{path: path, lines: bytes.Count(text, []byte("\n")), ast: tree}, err
}

// check returns one file's violations of the house rules.
func check(f file) []string {
	if ast.IsGenerated(f.ast) {
		return nil
	}
	var out []string
	report := func(format string, args ...any) { out = append(out, f.path+": "+fmt.Sprintf(format, args...)) }
	if f.lines > maxLines {
		report("%d lines, at most %d: too long to keep in mind; split it by idea", f.lines, maxLines)
	}
	for _, d := range f.ast.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			report("func init: effects of importing are hidden and untestable; call a function explicitly")
		}
	}
	if !f.isTest() {
		for _, key := range misnamedKeys(f.ast) {
			report("%s names an error in a log: every line has the key \"error\"", key)
		}
		return out
	}
	var stack []ast.Node
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		on, name := callee(call)
		switch {
		case on == "time" && name == "Sleep" && !inBubble(stack):
			report("%s calls time.Sleep: wait for a condition, inject a clock, or use testing/synctest", function(stack))
		case slices.Contains([]string{"t", "tb", "b", "f"}, on) && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, name) && !guarded(stack, call):
			report(`%s skips unguarded: only inside if os.Getenv("CI") == "", so that nothing skips where it counts; a fuzz function returns`, function(stack))
		}
		return true
	})
	return out
}

// misnamedKeys returns the arguments "err" of calls. They name the error in a line of a log, in the call itself or in one that
// collects attributes.
func misnamedKeys(tree ast.Node) (all []string) {
	ast.Inspect(tree, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && slices.ContainsFunc(call.Args, func(e ast.Expr) bool { return isString(e, `"err"`) }) {
			all = append(all, `"err"`)
		}
		return true
	})
	return all
}

// callee returns x and f of a call x.f(…).
func callee(call *ast.CallExpr) (on, name string) {
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
		if x, ok := sel.X.(*ast.Ident); ok {
			return x.Name, sel.Sel.Name
		}
	}
	return "", ""
}

// inBubble reports whether the innermost node is in the function passed to synctest.Test, where sleeping
// advances a fake clock and takes no time.
func inBubble(stack []ast.Node) bool {
	return slices.ContainsFunc(stack, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return false
		}
		on, name := callee(call)
		return on == "synctest" && name == "Test"
	})
}

// guarded reports whether a skip is in the body of an if that checks CI. -short is not accepted: a run in CI
// with it would skip unnoticed.
func guarded(stack []ast.Node, skip *ast.CallExpr) bool {
	for _, n := range stack {
		branch, ok := n.(*ast.IfStmt)
		if !ok || skip.Pos() < branch.Body.Pos() || skip.Pos() >= branch.Body.End() {
			continue
		}
		asks := false
		ast.Inspect(branch.Cond, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				on, name := callee(call)
				asks = asks || on == "os" && name == "Getenv" && isString(call.Args[0], `"CI"`)
			}
			return true
		})
		if asks {
			return true
		}
	}
	return false
}

func isString(e ast.Expr, quoted string) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Value == quoted
}

func function(stack []ast.Node) string {
	for _, n := range stack {
		if fn, ok := n.(*ast.FuncDecl); ok {
			return fn.Name.Name
		}
	}
	return "a variable"
}

func TestCheckFindsProblems(t *testing.T) {
	for _, tc := range []struct{ why, path, body, want string }{
		{"a file of the largest size", "a.go", strings.Repeat("\n", maxLines-1), ""},
		{"a longer one", "a.go", strings.Repeat("\n", maxLines), "lines"},
		{"a longer generated one", "a.go", "// Code generated by x. DO NOT EDIT.\n" + strings.Repeat("\n", maxLines), ""},
		{"init", "a.go", "func init() {}", "init"},
		{"a method named init", "a.go", "func (x T) init() {}", ""},
		{"sleeping in a test", "a_test.go", "func TestA() { time.Sleep(1) }", "TestA calls time.Sleep"},
		{"sleeping outside tests", "a.go", "func a() { time.Sleep(1) }", ""},
		{"sleeping on a fake clock", "a_test.go", "func TestA() { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }", ""},
		{"sleeping beside a fake clock", "a_test.go", "func TestA() { synctest.Test(t, f); time.Sleep(1) }", "Sleep"},
		{"skipping", "a_test.go", "func TestA() { t.Skip() }", "TestA skips"},
		{"skipping for another reason", "a_test.go", "func TestA() { if os.Getenv(`HOME`) == `` { t.Skipf(``) } }", "skips"},
		{"skipping outside CI", "a_test.go", `func TestA() { if noCluster && os.Getenv("CI") == "" { t.Skip() } }`, ""},
		{"skipping in the other branch", "a_test.go", `func TestA() { if os.Getenv("CI") == "" { a() } else { t.Skip() } }`, "skips"},
		{"skipping in short runs", "a_test.go", `func BenchmarkA() { if testing.Short() { b.SkipNow() } }`, "BenchmarkA skips"},
		{"an error in a log under another key", "a.go", `func a() { log.Warn("it failed", "err", err) }`, `"error"`},
		{"an error in attributes under another key", "a.go", `func a() { log.Warn("it failed", append(where, slog.Any("err", err))...) }`, `"error"`},
		{"an error in a log", "a.go", `func a() { log.Warn("it failed", "error", err) }`, ""},
		{"another Skip", "a_test.go", `func TestA() { scanner.Skip() }`, ""},
	} {
		f, err := parse(tc.path, []byte("package a;"+tc.body+"\n"))
		if strings.HasPrefix(tc.body, "//") {
			f, err = parse(tc.path, []byte(tc.body+"package a\n"))
		}
		if err != nil {
			t.Fatalf("%s: %v", tc.why, err)
		}
		expect(t, tc.why, check(f), tc.want)
	}
}
