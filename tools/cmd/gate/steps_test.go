package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

const root = "../../.."

// TestModules: the tests of every module of the repository are a step.
func TestModules(t *testing.T) {
	var tested []string
	for _, s := range slices.Concat(groups["unit"], groups["integration"]) {
		if s.Packages != "" {
			tested = append(tested, filepath.Join(root, s.Dir))
		}
	}
	slices.Sort(tested)
	want := modules(t)
	if len(want) < 10 {
		t.Fatalf("found only %d modules", len(want))
	}
	if !slices.Equal(tested, want) {
		t.Errorf("the steps test %q,\nbut tests are in %q", tested, want)
	}
}

// modules returns the directories of modules that have tests, sorted.
func modules(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || path != root && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		dir := filepath.Dir(path)
		for ; ; dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				break
			}
		}
		if !slices.Contains(found, dir) {
			found = append(found, dir)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

// TestVersions: all modules compile the same versions of what the root module requires. Otherwise each compiles again, with
// the race detector and for the linters, what depends on another version: much of client-go for another golang.org/x/net.
func TestVersions(t *testing.T) {
	want := required(t, root)
	for _, dir := range modules(t) {
		if dir == filepath.Join(root, "tools") {
			continue // shares nothing: it holds the dependencies of linters
		}
		for path, version := range required(t, dir) {
			if w := want[path]; w != "" && w != version {
				t.Errorf("%s requires %s %s, the root module %s: run `go get %[2]s@VERSION` in the older one, and `go mod tidy` in all",
					dir, path, version, w)
			}
		}
	}
}

// TestLint: the linters compile the root module and its dependencies as its tests do, and so they are compiled once.
func TestLint(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "make", "-n", "-C", root, "lint").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(string(out), "-race "+sqlite) {
		t.Errorf("the linters run without -race %s", sqlite)
	}
	together := regexp.MustCompile(`go work init (.*)`).FindSubmatch(out)
	if together == nil {
		t.Fatalf("no workspace in %s", out)
	}
	list := func(workspace string) []string {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-test", "-f", "{{with .Module}}{{.Path}} {{.Version}}{{end}}", "./...")
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK="+workspace)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(out), "\n")
		slices.Sort(lines)
		return slices.Compact(lines)
	}
	want := list("off")
	workspace := filepath.Join(t.TempDir(), "go.work")
	init := exec.CommandContext(t.Context(), "go", "work", "init")
	for _, dir := range strings.Fields(string(together[1])) {
		abs, err := filepath.Abs(filepath.Join(root, "bin", dir))
		if err != nil {
			t.Fatal(err)
		}
		init.Args = append(init.Args, abs)
	}
	init.Dir, init.Env = filepath.Dir(workspace), append(os.Environ(), "GOFLAGS=", "GOWORK=")
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, version := range list(workspace) {
		if !slices.Contains(want, version) {
			t.Errorf("the linters compile %s, the root module another version: find the module that raises it, and add it to APART in the Makefile", version)
		}
	}
}

// required returns the versions that the go.mod of a directory requires.
func required(t *testing.T, dir string) map[string]string {
	t.Helper()
	name := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := modfile.ParseLax(name, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, r := range f.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	return versions
}
