package cli

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

// home gives a test its own directories for state and configuration.
func home(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for _, v := range []string{"HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(v, dir)
	}
	t.Setenv("TATTLER_JOURNAL", "")
}

// record runs a daemon, calls a function once it records, and ends the daemon.
func record(t *testing.T, during func(), args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr := &until{text: "msg=recording", then: sync.OnceFunc(func() { // a daemon may log more before it ends
		if during != nil {
			during()
		}
		cancel()
	})}
	var out bytes.Buffer
	code := execute(ctx, append([]string{"tattler", "run"}, args...),
		&terminal.IO{Out: &out, Err: stderr, Width: func() int { return 0 }}, kinds.Tattler())
	if code != exitDone || !strings.Contains(stderr.String(), "msg=recording") {
		t.Fatalf("exit code %d, stderr %s", code, stderr)
	}
}

// TestShortNames: log knows the short names of custom resources without a cluster, and prints the same as watch.
func TestShortNames(t *testing.T) {
	home(t)
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	s := informertest.NewServer()
	s.Serve(widgets, "Widget")
	s.Describe(widgets, false, []string{"wd", "wdg"}, nil)
	s.Put(widgets, "default", "a", map[string]any{"spec": map[string]any{"size": "1"}})
	config := kubeconfig(t, serve(t, s.ServeHTTP))
	record(t, nil, "widgets", "--kubeconfig", config)

	_, watched, _ := tattler(t.Context(), "tattler", "watch", "wd", "--kubeconfig", config, "--initial", "--limit", "1")
	if !strings.Contains(watched, " = wd/a") {
		t.Errorf("watch: %q", watched)
	}
	for _, word := range []string{"wd", "wdg", "widgets", "wd/a"} {
		code, out, err := tattler(t.Context(), "tattler", "log", word, "--op", "snapshot", "--kubeconfig", config)
		if code != exitDone || !strings.HasSuffix(out, " wd/a\n") {
			t.Errorf("log %s: exit code %d, %q, stderr %q", word, code, out, err)
		}
	}
	// A short name that the server no longer has is forgotten.
	s.Describe(widgets, false, []string{"wdg"}, nil)
	record(t, nil, "widgets", "--kubeconfig", config)
	if code, _, err := tattler(t.Context(), "tattler", "log", "wd", "--kubeconfig", config); code != exitFailed || !strings.Contains(err, `the journal has no "wd"`) {
		t.Errorf("exit code %d, stderr %q", code, err)
	}
}
