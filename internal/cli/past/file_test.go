package past

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tattler-dev/tattler/internal/cli/kube"
)

// TestFileNamed: a file that a flag names, directly or by its configuration, precedes the environment.
func TestFileNamed(t *testing.T) {
	t.Setenv(kube.JournalVariable, "/env.db")
	config := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(config, []byte("apiVersion: tattler.dev/v1alpha1\nkind: Config\njournal: {path: /config.db}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, f := range map[string]Flags{
		"/env.db":    {},
		"/config.db": {Config: config},
		"/flag.db":   {Path: "/flag.db", Config: config},
	} {
		if got, err := f.File(t.Context()); err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	if _, err := (&Flags{Config: config + ".absent"}).File(t.Context()); err == nil {
		t.Error("no error for a missing configuration")
	}
}
