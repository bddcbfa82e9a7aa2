package past

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/cli/kube"
)

// TestFile: a flag precedes the environment, which precedes the kubeconfig.
func TestFile(t *testing.T) {
	none := kube.Flags{Kubeconfig: "/nonexistent"}
	dir := t.TempDir()
	t.Chdir(dir)
	for _, tc := range []struct{ why, flag, env, want, err string }{
		{"a flag", "/a", "b", "/a", ""},
		{"the environment, from here", "", "b", filepath.Join(dir, "b"), ""},
		{"the context", "", "", "", "/nonexistent"},
	} {
		t.Setenv(kube.JournalVariable, tc.env)
		f := Flags{Kube: none, Path: tc.flag}
		got, err := f.File(t.Context())
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %q, %v", tc.why, got, err)
		}
	}
}

// TestOpenReader: if there is no journal, the error says what to do.
func TestOpenReader(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ why, path, want string }{
		{"none", filepath.Join(dir, "none"), "there is no journal at " + dir + "/none: start tattler run"},
		{"an empty file, which a daemon was about to fill", empty, "there is no journal at " + empty},
		{"a folder", dir, dir + " is not a regular file: --journal takes the file of a journal"},
	} {
		if _, err := OpenReader(t.Context(), tc.path); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.why, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("opening creates %v, %v", left, err)
	}
}
