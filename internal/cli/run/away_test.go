package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/cli/setup"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

// refusing serves a server of ConfigMaps that first answers with a code; 0: properly.
func refusing(t *testing.T, code *atomic.Int32) string {
	t.Helper()
	s := informertest.NewServer()
	s.Serve(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap")
	s.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		c := code.Load()
		if c != 0 {
			informertest.Refuse(w, c, metav1.StatusReason(http.StatusText(int(c))), "not now")
		}
		return c != 0
	})
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return h.URL
}

// TestAwayAtStart: before there is a journal, the API server is asked what would be watched. If it is not ready, tattler run
// waits, and /readyz says so.
func TestAwayAtStart(t *testing.T) {
	var code atomic.Int32
	code.Store(http.StatusServiceUnavailable)
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("XDG_STATE_HOME", dir)
	for name, text := range map[string]string{
		"kubeconfig": fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: %q}}]}`, refusing(t, &code)),
		"c.yaml":     fmt.Sprintf("apiVersion: tattler.dev/v1alpha1\nkind: Config\ncluster: {name: test}\njournal: {path: %s/journal.db}\nwatch:\n- resources: {include: [configmaps]}\nlisten: {address: \"127.0.0.1:0\"}\n", dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := &output{}
	o := &Options{IO: &terminal.IO{Out: io.Discard, Err: log}}
	o.Setup.Program = &kinds.Program{Name: "tattler", Kinds: kinds.Builtin()}
	o.Setup.File, o.Setup.Kube.Kubeconfig = filepath.Join(dir, "c.yaml"), filepath.Join(dir, "kubeconfig")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	}()
	address := regexp.MustCompile(`address=(127\.0\.0\.1:\d+)`)
	await(t, "the listener", func() bool { return address.MatchString(log.String()) })
	readyz := "http://" + address.FindStringSubmatch(log.String())[1] + "/readyz"
	await(t, "its reason", func() bool {
		code, body := getPage(t, readyz)
		return code == http.StatusServiceUnavailable && strings.Contains(body, "the start: waiting for the API server")
	})
	if _, err := os.Stat(filepath.Join(dir, "journal.db")); !errors.Is(err, os.ErrNotExist) || strings.Count(log.String(), "level=ERROR") != 1 {
		t.Errorf("while it waits: %v\n%s", err, log.String())
	}
	code.Store(0)
	await(t, "the recording", func() bool {
		code, _ := getPage(t, readyz)
		return code == http.StatusOK
	})
}

// TestRefusedAtStart: refused credentials end the start at once, and nothing is made.
func TestRefusedAtStart(t *testing.T) {
	var code atomic.Int32
	code.Store(http.StatusUnauthorized)
	if err := start(t, refusing(t, &code), ""); err == nil || !strings.Contains(err.Error(), `refused the credentials of context "c"`) || strings.Count(err.Error(), "refused") != 1 {
		t.Error(err)
	}
}

// TestNameAway: in a pod, the API server is asked for what the cluster's name is derived from. That is repeated if it is away,
// and the name is known afterwards.
func TestNameAway(t *testing.T) {
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	server := informertest.NewServer()
	server.Serve(namespaces, "Namespace")
	server.Put(namespaces, "", "kube-system", nil)
	server.SetDown(true)
	b := &beginning{
		s: &setup.Setup{Config: &config.Config{}}, cluster: &kube.Cluster{Config: server.Config(), Name: "in-cluster", InPod: true},
		journal: t.TempDir(), log: slog.New(slog.DiscardHandler),
	}
	if _, err := b.begin(t.Context()); !capture.Transient(err) || strings.Contains(err.Error(), "set cluster.name") || b.known() != "" {
		t.Errorf("while it is away: %v", err)
	}
	server.SetDown(false)
	if name, err := b.begin(t.Context()); err != nil || !strings.HasPrefix(name, "cluster-") || b.known() != name {
		t.Errorf("%q, %v", name, err)
	}
}
