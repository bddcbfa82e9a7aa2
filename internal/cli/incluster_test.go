package cli

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/incluster/inclustertest"
	journaldb "github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/web/api"
	"github.com/tattler-dev/tattler/internal/web/client/clienttest"
)

// served starts a cluster whose daemon serves a journal.
func served(t *testing.T, path string) *inclustertest.Cluster {
	t.Helper()
	r, err := journaldb.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := clienttest.Handler(access.New(r), func(o *api.Options) {
		o.Recording = func(context.Context) bool { return false } // as of the file
		o.Status = func(context.Context) (control.Status, error) {
			return control.Status{Version: "v9", Cluster: "test", Started: time.Now(), Settled: true}, nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := inclustertest.Start(t.TempDir(), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// alsoInCluster runs a command again with --in-cluster: it must do and say the same as with the file.
func alsoInCluster(t *testing.T, c *inclustertest.Cluster, args []string, code int, out, stderr string) {
	t.Helper()
	code2, out2, stderr2 := tattler(t.Context(), append(args, "--in-cluster", "--kubeconfig", c.Certificate)...)
	if code2 != code {
		t.Errorf("exit code %d in the cluster, %d with the file", code2, code)
	}
	if d := cmp.Diff(out, out2); d != "" {
		t.Errorf("stdout (-file +in the cluster):\n%s", d)
	}
	if d := cmp.Diff(stderr, stderr2); d != "" {
		t.Errorf("stderr (-file +in the cluster):\n%s", d)
	}
}

// TestInCluster: verbs that TestPast does not run, and the daemon's state.
func TestInCluster(t *testing.T) {
	path := recordedPast(t)
	t.Setenv("TATTLER_JOURNAL", path)
	t.Setenv("TZ", "UTC")
	c := served(t, path)
	for _, args := range []string{
		"log", "log --limit 0 --noise --since " + clock(-5), "log -o oneline", "log -o json --limit 2 deploy/web", "log --op deleted -o yaml", "log nothing",
		"log cm -n shop --where op=='updated' --full", "log --severity failure", "show 2", "show zzzzzz", "show",
	} {
		run := append([]string{"tattler"}, strings.Split(args, " ")...)
		code, out, stderr := tattler(t.Context(), run...)
		t.Run(args, func(t *testing.T) { alsoInCluster(t, c, run, code, out, stderr) })
	}
	_, out, _ := tattler(t.Context(), "tattler", "log", "-o", "json", "--limit", "0", "--noise")
	n := 0
	for line := range strings.Lines(out) {
		var e struct{ ID string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		n++
		for _, form := range []string{"text", "json"} {
			run := []string{"tattler", "show", e.ID[:10], "-o", form}
			code, out, stderr := tattler(t.Context(), run...)
			if code != 0 || !strings.Contains(out, e.ID) {
				t.Errorf("show %s: %s", e.ID, stderr)
			}
			alsoInCluster(t, c, run, code, out, stderr)
		}
	}
	if n < 5 {
		t.Errorf("%d changes", n)
	}
	for _, words := range []string{"get|con", "diff|cm|", "show|"} {
		run := append([]string{"tattler", "__complete"}, strings.Split(words, "|")...)
		_, want, _ := tattler(t.Context(), run...)
		run = append(run[:3:3], append([]string{"--in-cluster", "--kubeconfig", c.Certificate}, run[3:]...)...)
		if _, got, _ := tattler(t.Context(), run...); got != want {
			t.Errorf("%q completes to %q, want %q", run, got, want)
		}
	}
	code, out, stderr := tattler(t.Context(), "tattler", "status", "--in-cluster", "--kubeconfig", c.Certificate)
	if code != 0 || !strings.Contains(out, "v9") {
		t.Errorf("status: %d, %s, %s", code, out, stderr)
	}
	for args, want := range map[string]string{
		"log --in-cluster --journal x":  "--in-cluster excludes --journal and --config",
		"log --send-token":              "need --in-cluster",
		"get cm --in-cluster=x":         `"x" is not NAMESPACE/NAME`,
		"log --in-cluster --as someone": "--as does not reach a daemon",
	} {
		run := append([]string{"tattler"}, strings.Split(args, " ")...)
		if code, _, stderr := tattler(t.Context(), append(run, "--kubeconfig", c.Certificate)...); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %s", args, code, stderr)
		}
	}
}
