package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
