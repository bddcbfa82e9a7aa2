package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRunningDaemon: without a journal, a verb uses that of the only running daemon, and says so.
func TestRunningDaemon(t *testing.T) {
	home(t)
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.db"), filepath.Join(dir, "b.db")
	config := kubeconfig(t, cluster(t))
	t.Setenv("KUBECONFIG", config)
	says := func(want string, args ...string) {
		t.Helper()
		code, _, err := tattler(t.Context(), append([]string{"tattler"}, args...)...)
		if code != exitDone || !strings.Contains(err, want) || want == "" && err != "" {
			t.Errorf("%q: exit code %d, stderr %q, want %q", args, code, err, want)
		}
	}
	refuses := func(want string, args ...string) {
		t.Helper()
		if code, out, err := tattler(t.Context(), append([]string{"tattler"}, args...)...); code == exitDone || !strings.Contains(err, want) {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q, want %q", args, code, out, err, want)
		}
	}
	says("no journal at ", "log") // but a cluster, which is shown
	record(t, func() {
		only := "using " + a + ", the journal of the only running daemon\n"
		for _, args := range [][]string{{"status"}, {"log", "--op", "snapshot"}, {"sinks"}, {"journal", "stats"}, {"sinks", "dead", "log"}} {
			says(only, args...)
		}
		says("", "status", "--journal", a)
		says("no journal at ", "log", "--kubeconfig", config) // names a cluster
		refuses("there is no journal at", "journal", "purge", "--until", "1d", "--yes")
		t.Setenv("KUBECONFIG", filepath.Join(dir, "none")) // without a cluster
		says(only, "status")
		t.Setenv("KUBECONFIG", config)
		record(t, func() { refuses("2 daemons run; choose a journal: --journal "+a+", or --journal "+b, "log") }, "cm", "--journal", b)
		record(t, func() { // of the current context
			says("", "status")
			says("", "log", "--op", "snapshot")
		}, "cm")
		says("no daemon records into "+filepath.Join(os.Getenv("XDG_STATE_HOME"), "tattler", "prod-"), "log", "--op", "snapshot")
		says(", the journal of the current context; "+only, "log", "--op", "snapshot")
	}, "cm", "--journal", a)
	says("no daemon is running: the journal ends at ", "log", "--op", "snapshot") // the context's journal
	if left, err := os.ReadDir(filepath.Join(os.Getenv("XDG_STATE_HOME"), "tattler", "running")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
