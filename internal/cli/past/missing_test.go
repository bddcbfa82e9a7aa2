package past

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/tattler-dev/tattler/internal/cli/kube"
)

// TestMissing: only without any choice of the user, a journal that does not exist is missing.
func TestMissing(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(config, []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"contexts": [{"name": "c", "context": {"cluster": "c"}}], "clusters": [{"name": "c", "cluster": {"server": "https://h"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(dir, "tattler.yaml")
	if err := os.WriteFile(settings, []byte("apiVersion: tattler.dev/v1alpha1\nkind: Config\njournal: {path: /nonexistent/journal.db}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", dir)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("HOME", dir)
	for _, tc := range []struct {
		why  string
		f    Flags
		env  string
		want bool
	}{
		{"nothing is chosen", Flags{}, "", true},
		{"a file", Flags{Path: filepath.Join(dir, "none.db")}, "", false},
		{"a configuration that does not exist", Flags{Config: filepath.Join(dir, "none.yaml")}, "", false},
		{"a configuration with a journal that does not exist", Flags{Config: settings}, "", false},
		{"the environment", Flags{}, filepath.Join(dir, "none.db"), false},
		{"a daemon in the cluster", Flags{daemon: daemonFlags{service: anyDaemon}}, "", false},
		{"flags of a daemon that are wrong without one", Flags{daemon: daemonFlags{sendToken: true}}, "", false},
		{"a daemon of the caller", Flags{Serving: func(context.Context) (Served, error) { return nil, nil }}, "", false},
	} {
		t.Setenv(kube.JournalVariable, tc.env)
		tc.f.Kube.Kubeconfig = config
		path, missing := tc.f.Missing(t.Context())
		if missing != tc.want || missing && path == "" {
			t.Errorf("%s: %q, %v", tc.why, path, missing)
		}
	}
	t.Setenv(kube.JournalVariable, "")
	f := Flags{Kube: kube.Flags{Kubeconfig: config}}
	path, _ := f.Missing(t.Context())
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]bool{"": true, "SQLite": false} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, missing := f.Missing(t.Context()); missing != want {
			t.Errorf("a file with %q is missing: %v, want %v", content, missing, want)
		}
	}
}
