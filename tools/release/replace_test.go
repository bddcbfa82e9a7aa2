package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReplace: a release takes the place of an earlier one, and of nothing else; one that is refused leaves it.
func TestReplace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dist")
	has := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	count := func() int {
		t.Helper()
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	if err := emptyDir(dir, true); err != nil {
		t.Fatal(err)
	}
	has("checksums.txt", "krew-tattler.yaml", "tattler_v1_linux_amd64.tar.gz", "tattler-cloud_v1_linux_amd64.sbom.json")
	if err := emptyDir(dir, false); err == nil || !strings.Contains(err.Error(), "is not empty") || count() != 4 {
		t.Errorf("without replace: %v, %d files", err, count())
	}
	// The version is refused, after the work tree was accepted.
	if err := Run(t.Context(), Options{Repository: "../..", Out: dir, Replace: true, Dirty: true, Version: "one"}); err == nil || count() != 4 {
		t.Errorf("a refused release: %v, %d files", err, count())
	}
	has("README.md")
	if err := emptyDir(dir, true); err == nil || !strings.Contains(err.Error(), "README.md") || count() != 5 {
		t.Errorf("a file of the user: %v, %d files", err, count())
	}
	if err := os.Remove(filepath.Join(dir, "README.md")); err != nil {
		t.Fatal(err)
	}
	if err := emptyDir(dir, true); err != nil || count() != 0 {
		t.Errorf("an earlier release: %v, %d files", err, count())
	}
}
