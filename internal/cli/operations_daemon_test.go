package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

// named are the commands in the text of docs/operations.md, in an order that makes sense, and a part of the output of
// each. The receiver of the sink hook is down until the replay. A purge
// comes last, since it is refused while the daemon runs.
var named = []struct{ command, args, want string }{
	{"tattler status", "status", "hook"},
	{"tattler sinks", "sinks", "hook"},
	{"tattler config check", "config check -c FILE", "Journal: "},
	{"tattler config check -c FILE", "config check -c FILE", "Journal: "},
	{"tattler journal stats", "journal stats", "cluster  prod"},
	{"tattler journal verify", "journal verify", "is not damaged"},
	{"tattler journal verify --journal FILE", "journal verify --journal JOURNAL", "is not damaged"},
	{"tattler log --op gap,absent", "log --op gap,absent", ""},
	{"tattler sinks skip NAME ID", "sinks skip hook ID", "dead letter"},
	{"tattler sinks dead NAME", "sinks dead hook", "503"},
	{"tattler sinks dead NAME --replay --all", "sinks dead hook --replay --all", "1 "},
	{"tattler journal purge", "journal purge --until 1d --yes", ""},
}

// elsewhere are commands with tests of their own: the daemon, the web page, and what needs a real API server.
var elsewhere = map[string]bool{"tattler run": true, "tattler ui": true, "tattler doctor": true}

// TestOperationsDaemon runs the commands in the text of docs/operations.md beside a daemon with a failing sink.
func TestOperationsDaemon(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range regexp.MustCompile("`(tattler [^`]+)`").FindAllStringSubmatch(string(page), -1) {
		known := elsewhere[c[1]]
		for _, n := range named {
			known = known || n.command == c[1]
		}
		if !known {
			t.Errorf("no test runs %s", c[1])
		}
	}
	d := startDaemon(t, "")
	for _, n := range named {
		args := strings.Fields(strings.NewReplacer("FILE", d.config, "JOURNAL", d.journal, "ID", d.id).Replace(n.args))
		switch {
		case strings.Contains(n.args, "--replay"):
			d.up.Store(true)
		case strings.HasPrefix(n.args, "journal purge"):
			d.received(t)
			d.stop()
		}
		eventually(t, n.command, func() error {
			code, stdout, stderr := tattler(t.Context(), append([]string{"tattler"}, args...)...)
			if code != exitDone || !strings.Contains(stdout, n.want) {
				return fmt.Errorf("exit code %d, %s%s; want %q", code, stdout, stderr, n.want)
			}
			return nil
		})
	}
}

// received waits until the receiver has the replayed change.
func (d *daemon) received(t *testing.T) {
	t.Helper()
	eventually(t, "the replayed change", func() error {
		if n := d.taken.Load(); n != 1 {
			return fmt.Errorf("the receiver has %d changes", n)
		}
		return nil
	})
}

// daemon is a `tattler run` whose receiver is down, and refuses one change.
type daemon struct {
	config, journal, id string
	up                  atomic.Bool
	taken               atomic.Int64
	stop                func() // ends it, and can be called again
	log                 string // once it has stopped
}

// startDaemon starts a daemon that runs until the test ends, with more in its configuration, and makes a change.
func startDaemon(t *testing.T, more string) *daemon {
	t.Helper()
	home(t)
	dir := t.TempDir()
	d := &daemon{config: filepath.Join(dir, "tattler.yaml"), journal: filepath.Join(dir, "journal.db")}
	configmaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	s := informertest.NewServer()
	s.Serve(configmaps, "ConfigMap")
	s.Describe(configmaps, false, []string{"cm"}, nil)
	t.Setenv("KUBECONFIG", kubeconfig(t, serve(t, s.ServeHTTP)))
	t.Setenv("TATTLER_JOURNAL", d.journal)
	hook := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if !d.up.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		d.taken.Add(1)
	})
	text := fmt.Sprintf("apiVersion: tattler.dev/v1alpha1\nkind: Config\njournal: {path: %q}\nwatch:\n- resources: {include: [configmaps]}\nsinks:\n- name: hook\n  webhook: {url: %q, timeout: 1m}\n%s", d.journal, hook, more)
	if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan string, 1)
	go func() {
		var log bytes.Buffer
		execute(ctx, []string{"tattler", "run", "-c", d.config}, &terminal.IO{Out: &log, Err: &log, Width: func() int { return 0 }}, kinds.Tattler())
		ended <- log.String()
	}()
	d.stop = sync.OnceFunc(func() {
		cancel()
		if d.log = <-ended; t.Failed() {
			t.Log(d.log)
		}
	})
	t.Cleanup(func() { d.stop() })
	eventually(t, "the start", func() error {
		if code, out, err := tattler(t.Context(), "tattler", "status", "-o", "json"); code != exitDone || !regexp.MustCompile(`"settled": ?true`).MatchString(out) {
			return fmt.Errorf("%s%s", out, err)
		}
		return nil
	})
	s.Put(configmaps, "default", "web", map[string]any{"data": map[string]any{"a": "1"}})
	eventually(t, "the change", func() error {
		_, out, err := tattler(t.Context(), "tattler", "log", "cm", "-o", "json")
		if m := regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(out); m != nil {
			d.id = m[1]
			return nil
		}
		return fmt.Errorf("%s%s", out, err)
	})
	return d
}

// eventually waits until something succeeds.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		<-time.After(20 * time.Millisecond)
	}
}
