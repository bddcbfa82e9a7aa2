package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/tattler-dev/tattler/event"
)

// TestTwoClusters records two control planes with one daemon. Both have a ConfigMap of the same namespace and name. One is
// killed and started again, and the other must not be delayed; then the daemon is restarted while both change. Each event
// has a trace.
func TestTwoClusters(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	east, toEast := ownCluster(ctx, t)
	west, toWest := ownCluster(ctx, t)
	dir, traces := t.TempDir(), newCollector(t)
	journal, events, file := filepath.Join(dir, "journal.db"), filepath.Join(dir, "events.jsonl"), filepath.Join(dir, "tattler.yaml")
	config := fmt.Sprintf(`apiVersion: tattler.dev/v1alpha1
kind: Config
clusters:
- {name: east, kubeconfig: %q}
- {name: west, kubeconfig: %q}
- {name: missing, kubeconfig: %q, context: nowhere}
watch:
- resources: {include: [configmaps]}
  namespaces: {include: [default]}
journal: {path: %q}
sinks:
- {name: events, file: {path: %q}}
traces: {endpoint: %q}
`, east.Kubeconfig(), west.Kubeconfig(), east.Kubeconfig(), journal, events, traces.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	log := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(tattler(t), append([]string{"log", "cm", "c1", "--limit", "0", "--flat", "-o", "json", "-c", file}, args...)...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("log: %v, %s", err, out)
		}
		return string(out)
	}
	daemon := start(t, east, "run", "-c", file)
	daemon.wait(t, daemon.err, `msg=recording cluster=east`)
	daemon.wait(t, daemon.err, `msg=recording cluster=west`)
	daemon.wait(t, daemon.err, `has no context \"nowhere\"`)
	write(ctx, t, toEast, 1, "first")
	write(ctx, t, toWest, 1, "first")
	daemon.wait(t, events, `"source":"/clusters/east"`)
	daemon.wait(t, events, `"source":"/clusters/west"`)

	if err := west.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	daemon.wait(t, daemon.err, `msg="the API server is away" cluster=west`)
	write(ctx, t, toEast, 1, "while west is away")
	daemon.wait(t, events, "while west is away") // west comes back only after this: the other cluster does not wait for it
	status, err := exec.Command(tattler(t), "status", "-c", file).CombinedOutput()
	if text := string(status); err != nil || !strings.Contains(text, "east: recorded") || !strings.Contains(text, "west: cannot be watched") || !strings.Contains(text, "missing: cannot be watched") {
		t.Errorf("status: %v\n%s", err, text)
	}
	examineClusters(ctx, t, file, east.Kubeconfig())
	if err := west.StartAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	write(ctx, t, toWest, 1, "west is back")
	daemon.wait(t, events, "west is back")

	daemon.interrupt(t)
	for _, client := range []*kubernetes.Clientset{toEast, toWest} {
		write(ctx, t, client, 1, "unwatched 1")
		write(ctx, t, client, 1, "unwatched 2")
	}
	daemon = start(t, east, "run", "-c", file)
	daemon.wait(t, daemon.err, `msg=recording cluster=east`)
	daemon.wait(t, daemon.err, `msg=recording cluster=west`)
	write(ctx, t, toEast, 1, "end")
	write(ctx, t, toWest, 1, "end")
	for _, cluster := range []string{"east", "west"} {
		want := map[string][]string{
			"east": {"first", "while west is away", "unwatched 1", "unwatched 2", "end"},
			"west": {"first", "west is back", "unwatched 1", "unwatched 2", "end"},
		}[cluster]
		for began := time.Now(); ; pause() {
			text := log("--cluster", cluster)
			values := valuesIn(t, text, "/clusters/"+cluster)
			if slices.Equal(values, want) {
				break
			}
			if time.Since(began) > patience {
				t.Fatalf("%s has %q, want %q\n%s", cluster, values, want, text)
			}
		}
	}
	if text := log("--op", "gap"); text != "" {
		t.Errorf("unnecessary gaps:\n%s", text)
	}
	daemon.interrupt(t)
	traces.has(t, daemon.read(t, events), "events", "while west is away", "west is back", "unwatched 1", "unwatched 2")

	out, err := exec.Command(tattler(t), "get", "cm/c1", "-n", "default", "-c", file).CombinedOutput()
	if text := string(out); err == nil || !strings.Contains(text, "cm/c1 is in several clusters: choose one with --cluster east, or --cluster west") {
		t.Errorf("an ambiguous object: %v, %s", err, text)
	}
	out, err = exec.Command(tattler(t), "get", "cm/c1", "-n", "default", "-o", "json", "--cluster", "west", "-c", file).CombinedOutput()
	if text := string(out); err != nil || !strings.Contains(text, `"value": "end"`) {
		t.Errorf("the object of one cluster: %v, %s", err, text)
	}
	out, err = exec.Command(tattler(t), "log", "--cluster", "north", "-c", file).CombinedOutput()
	if text := string(out); err == nil || !strings.Contains(text, `the journal has no cluster "north": it has east, west`) {
		t.Errorf("an unknown cluster: %v, %s", err, text)
	}
}

// examineClusters runs doctor while west is away, and missing has no context: neither hides anything of east, which the file
// of doctor has under a second name.
func examineClusters(ctx context.Context, t *testing.T, file, kubeconfig string) {
	t.Helper()
	config, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	file += ".doctor"
	config = []byte(strings.Replace(string(config), "- {name: missing", fmt.Sprintf("- {name: again, kubeconfig: %q}\n- {name: missing", kubeconfig), 1))
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, tattler(t), "doctor", "-c", file, "-o", "json").Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("doctor: %v\n%s", err, out)
	}
	var report struct {
		Findings []struct{ Cluster, Check, Level, Title string }
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	levels := map[string]string{}
	for _, f := range report.Findings {
		levels[strings.TrimSpace(f.Cluster+" "+f.Check)] = f.Level
	}
	for check, want := range map[string]string{
		"east server.reachable": "ok", "east rights.watch": "ok", "west server.reachable": "error", "missing server.reachable": "error",
		"again server.identity": "error", "again rights.watch": "ok",
		"west daemon.away": "error", "journal.health": "ok", "sinks.reachable": "ok",
	} {
		if levels[check] != want {
			t.Errorf("doctor: %s is %q, want %q\n%s", check, levels[check], want, out)
		}
	}
}

// valuesIn returns the values that events of a cluster set in data.value, the oldest first. An event of another source fails
// the test.
func valuesIn(t *testing.T, lines, source string) (values []string) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var e event.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if e.Source != source {
			t.Fatalf("an event of %s, want %s", e.Source, source)
		}
		if e.Data.Op == event.Created {
			data, _ := e.Data.After["data"].(map[string]any)
			value, _ := data["value"].(string)
			values = append(values, value)
		}
		for _, c := range e.Data.Changes {
			if value, ok := c.To.(string); ok && c.Path == "data.value" {
				values = append(values, value)
			}
		}
	}
	return values
}
