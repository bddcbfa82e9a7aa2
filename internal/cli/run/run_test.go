package run

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/journal"
)

// TestLogMessage: whatever prevents recording gives one line in the log.
func TestLogMessage(t *testing.T) {
	cluster := &kube.Cluster{Config: &rest.Config{Host: "https://h"}, Name: "prod"}
	secrets := capture.Resource{Resource: "secrets"}
	since := time.Unix(1000, 0)
	for _, tc := range []struct {
		why  string
		m    capture.Message
		want []string
	}{
		{"the start", capture.Message{Ready: &capture.Ready{Kinds: 3, Objects: 7, Hidden: []string{"events", "leases"}}},
			[]string{`level=INFO msg=recording kinds=3 objects=7 hidden=events,leases`}},
		{"nothing is hidden", capture.Message{Ready: &capture.Ready{Kinds: 3}}, []string{"level=INFO msg=recording kinds=3 objects=0\n"}},
		{"missing objects", capture.Message{Ready: &capture.Ready{Missing: []string{"shop"}, Absent: []string{"pods/a"}, Unmatched: []string{"*.x.io"}}},
			[]string{`level=WARN msg="namespaces do not exist (yet)" namespaces=shop`, `objects=pods/a`, `level=INFO msg="no kind matches (yet)" globs=*.x.io`}},
		{"forbidden kinds", capture.Message{Ready: &capture.Ready{Forbidden: []capture.Refusal{
			{Resource: capture.Resource{Resource: "pods"}, Err: errors.New("no")}, {Resource: secrets, Namespaces: []string{"a", "b"}, Err: errors.New("never")}}}},
			[]string{`level=WARN msg="not allowed to watch 2 kinds, which are not recorded: grant get, list and watch (tattler rbac prints the roles), or exclude them" kinds="pods, secrets (in a, b)" error=no`}},
		{"a forbidden kind", capture.Message{Ready: &capture.Ready{Forbidden: []capture.Refusal{{Resource: secrets, Err: errors.New("no")}}}},
			[]string{`level=WARN msg="not allowed to watch 1 kind, which is not recorded: grant`, ` kinds=secrets error=no`}},
		{"a failing kind", capture.Message{Ready: &capture.Ready{Failing: []capture.Refusal{{Resource: secrets, Err: errors.New("no")}}}},
			[]string{`level=WARN msg="1 kind cannot be watched now and will be retried" kinds=secrets error=no`}},
		{"an outage", capture.Message{Away: &capture.Away{Since: since, Err: errors.New("refused")}}, []string{`level=WARN msg="the API server is away" error=refused`}},
		{"and its end", capture.Message{Away: &capture.Away{Since: since, Until: since.Add(time.Minute), Relisted: 2}}, []string{`msg="the API server is back" after=1m0s relisted=2`}},
		{"the process stood still", capture.Message{Away: &capture.Away{Since: since, Until: since.Add(25 * time.Second), Paused: true}},
			[]string{`level=WARN msg="this process did not run, for example because it was stopped or the machine slept" for=25s`}},
		{"the server was silent", capture.Message{Away: &capture.Away{Since: since, Until: since.Add(25 * time.Second), Silent: true}},
			[]string{`level=INFO msg="the API server was silent, and answers again" for=25s`}},
		{"it was silent until the connection was closed", capture.Message{Away: &capture.Away{Since: since, Until: since.Add(time.Minute), Silent: true, Err: errors.New("timeout"), Relisted: 2}},
			[]string{`msg="the API server is back" after=1m0s relisted=2`}},
	} {
		var out bytes.Buffer
		logMessage(logger(&out, config.Log{Format: "text", Level: "info"}), cluster, tc.m)
		if n := strings.Count(out.String(), "level=WARN"); strings.Contains(tc.why, "may not") && n != 1 {
			t.Errorf("%s: %d warnings", tc.why, n)
		}
		for _, want := range tc.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", tc.why, want, out.String())
			}
		}
	}
}

func TestLogger(t *testing.T) {
	var out bytes.Buffer
	log := logger(&out, config.Log{Format: "json", Level: "warn"})
	log.Info("a")
	log.Warn("b")
	if !log.Enabled(t.Context(), slog.LevelError) || strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), `"msg":"b"`) {
		t.Error(out.String())
	}
}

// TestListen: an address in use is reported at its line, before anything is recorded.
func TestListen(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	err = start(t, "https://127.0.0.1:1", fmt.Sprintf("listen: {address: %q}\n", taken.Addr()))
	if err == nil || !strings.Contains(err.Error(), "c.yaml:4:19: listen.address: ") || !strings.Contains(err.Error(), "something has the port") {
		t.Error(err)
	}
}

// TestUnknownKind: a kind that the server does not have is reported at its line, before anything is recorded.
func TestUnknownKind(t *testing.T) {
	s := informertest.NewServer()
	s.Serve(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap")
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	err := start(t, h.URL, "watch:\n- resources: {include: [configmapz]}\n")
	if err == nil || !strings.Contains(err.Error(), `c.yaml:5:25: watch[0].resources.include[0]: the server has no resource type "configmapz"; did you mean "configmaps"?`) {
		t.Error(err)
	}
}

// start runs an invalid configuration, which must not create a journal.
func start(t *testing.T, server, text string) error {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	for name, text := range map[string]string{
		"kubeconfig": fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: %q}}]}`, server),
		"c.yaml":     fmt.Sprintf("apiVersion: tattler.dev/v1alpha1\nkind: Config\njournal: {path: %s/journal/j.db}\n%s", dir, text),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := &Options{IO: &terminal.IO{Out: io.Discard, Err: io.Discard}}
	o.Setup.File, o.Setup.Kube.Kubeconfig = filepath.Join(dir, "c.yaml"), filepath.Join(dir, "kubeconfig")
	err := Run(t.Context(), o)
	if _, err := os.Stat(filepath.Join(dir, "journal")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a journal: %v", err)
	}
	return err
}

func TestExplain(t *testing.T) {
	cluster := &kube.Cluster{Config: &rest.Config{Host: "https://h"}, Name: "prod"}
	if explain(nil, cluster) != nil {
		t.Error("no error became one")
	}
	if err := explain(&journal.LockedError{Path: "/j", PID: 7}, cluster); !strings.Contains(err.Error(), "--journal") {
		t.Error(err)
	}
	if err := explain(&journal.FormatError{Path: "/j", Reason: "the file is not a SQLite database"}, cluster); !strings.Contains(err.Error(), "--journal") {
		t.Error(err)
	}
	if err := explain(&journal.DamagedError{Path: "/j", What: "page", Err: errors.New("x")}, cluster); !strings.Contains(err.Error(), "tattler journal restore FILE") {
		t.Error(err)
	}
	refused := &os.PathError{Op: "open", Path: filepath.Join("/", "j"), Err: os.ErrPermission}
	if err := explain(refused, cluster); !errors.Is(err, os.ErrPermission) || strings.Contains(err.Error(), "context") {
		t.Error(err)
	}
}
