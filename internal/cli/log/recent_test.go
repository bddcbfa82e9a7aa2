package log

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/selection"
)

var (
	mapsGVR    = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secretsGVR = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	deployGVR  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	setsGVR    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
)

// unwatched serves a cluster that nobody recorded, and points the kubeconfig and the state folder to it.
func unwatched(t *testing.T) *informertest.Server {
	t.Helper()
	s := informertest.NewServer()
	for gvr, kind := range map[schema.GroupVersionResource]string{mapsGVR: "ConfigMap", secretsGVR: "Secret", deployGVR: "Deployment", setsGVR: "ReplicaSet"} {
		s.Serve(gvr, kind)
	}
	s.Describe(mapsGVR, false, []string{"cm"}, nil)
	s.Describe(deployGVR, false, []string{"deploy"}, nil)
	listener := httptest.NewServer(s)
	t.Cleanup(listener.Close)
	dir := t.TempDir()
	config := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: prod\ncontexts: [{name: prod, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: %q}}]\n", listener.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"KUBECONFIG": config, "XDG_STATE_HOME": dir, "XDG_RUNTIME_DIR": dir, "HOME": dir, "TATTLER_JOURNAL": ""} {
		t.Setenv(name, value)
	}
	written := func(name, manager string, minute int, extra map[string]any) map[string]any {
		at := start.Add(time.Duration(minute) * time.Minute).Format(time.RFC3339)
		meta := map[string]any{"uid": name, "creationTimestamp": at, "managedFields": []any{map[string]any{"manager": manager, "operation": "Update", "time": at}}}
		for k, v := range extra {
			meta[k] = v
		}
		return map[string]any{"metadata": meta, "spec": map[string]any{}}
	}
	s.Put(deployGVR, "shop", "web", written("web", "kubectl-create", -200, nil))
	var owner any
	for _, o := range s.Objects(deployGVR) {
		owner = o["metadata"].(map[string]any)["uid"]
	}
	set := func(name, image, revision string, minute int) map[string]any {
		o := written(name, "kube-controller-manager", minute, map[string]any{
			"annotations":     map[string]any{"deployment.kubernetes.io/revision": revision},
			"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": owner, "controller": true}},
		})
		o["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "app", "image": image}}}}}
		return o
	}
	s.Put(mapsGVR, "shop", "old", written("old", "m", -120, nil))
	s.Put(mapsGVR, "shop", "new", written("new", "kubectl-create", -20, nil))
	s.Put(mapsGVR, "pay", "other", written("other", "ci", -10, nil))
	s.Put(setsGVR, "shop", "web-1", set("web-1", "app:1", "1", -200))
	s.Put(setsGVR, "shop", "web-2", set("web-2", "app:2", "2", -5))
	return s
}

// showRecent runs the verb at start.
func showRecent(ctx context.Context, o Options) (out, stderr string, err error) {
	var b, e bytes.Buffer
	o.IO = &terminal.IO{Out: &b, Err: &e, Width: func() int { return 0 }}
	o.Now = func() time.Time { return start }
	if o.Output == "" {
		o.Output = text
	}
	err = Run(ctx, &o)
	return b.String(), e.String(), err
}

func TestWithoutJournal(t *testing.T) {
	s := unwatched(t)
	for _, tc := range []struct {
		why  string
		o    Options
		want []string // parts of the lines, in order; the headings are counted, too
	}{
		{"the last hour, of everything", Options{}, []string{"── reconstructed, since 2026-03-01 09:00:00", "09:40:00Z ≈ shop     cm/new ", "09:50:00Z ≈ pay      cm/other", "replicaset/web-2 ", "deploy/web ", "app:1 → app:2", "── 4 reconstructed. Not visible:"}},
		{"a longer time", Options{Options: selection.Options{Since: "3h", Types: []string{"cm"}}}, []string{"──", "cm/old", "cm/new", "cm/other", "── 3"}},
		{"an end", Options{Options: selection.Options{Since: "3h", Until: "15m", Types: []string{"cm"}}}, []string{"──", "cm/old", "cm/new", "── 2"}},
		{"a kind: its revisions are read, but not shown themselves", Options{Options: selection.Options{Types: []string{"deploy"}}}, []string{"──", "deploy/web", "app:1 → app:2", "── 1"}},
		{"a named object, with its own", Options{Options: selection.Options{Types: []string{"deploy/web"}}}, []string{"──", "replicaset/web-2", "deploy/web", "app:1 → app:2", "── 2"}},
		{"a manager", Options{Options: selection.Options{Managers: []string{"kubectl*"}}}, []string{"──", "created                   kubectl-create", "── 1"}},
		{"the newest", Options{Options: selection.Options{Types: []string{"cm"}}, Limit: 1}, []string{"──", "cm/other", "── 1 older left out", "── 1 reconstructed."}},
		{"nothing", Options{Options: selection.Options{Since: "1m"}}, []string{"──", "── 0 reconstructed."}},
	} {
		out, stderr, err := showRecent(t.Context(), tc.o)
		if err != nil || !strings.Contains(stderr, "no journal at ") || !strings.Contains(stderr, "tattler run") {
			t.Errorf("%s: %v\n%s", tc.why, err, stderr)
			continue
		}
		got := strings.Split(strings.TrimSpace(out), "\n")
		for i, want := range tc.want {
			if len(got) != len(tc.want) || !strings.Contains(got[i], want) {
				t.Errorf("%s: got\n%s\nwant lines with %q", tc.why, out, tc.want)
				break
			}
		}
	}
	for _, r := range s.Recorded() {
		if r.Query.Get("watch") != "" || r.Method != http.MethodGet {
			t.Errorf("not a list: %+v", r)
		}
	}
}

func TestWithoutJournalForPrograms(t *testing.T) {
	unwatched(t)
	out, stderr, err := showRecent(t.Context(), Options{Options: selection.Options{Types: []string{"deploy"}}, Output: "json"})
	if err != nil || strings.Count(out, "\n") != 1 || !strings.Contains(out, `"type":"dev.tattler.reconstructed.v1"`) || !strings.Contains(stderr, "1 reconstructed.") {
		t.Errorf("%v\n%s\n%s", err, out, stderr)
	}
}

// TestWithoutJournalOrCluster: what cannot be shown is an error that names the missing journal or the cause.
func TestWithoutJournalOrCluster(t *testing.T) {
	s := unwatched(t)
	dir := t.TempDir()
	for _, tc := range []struct {
		why  string
		o    Options
		want string
	}{
		{"a journal that the user names", Options{Past: past.Flags{Path: filepath.Join(dir, "none.db")}}, "there is no journal at"},
		{"--follow", Options{Follow: true}, "-f needs a journal, and there is none at"},
		{"--op", Options{Options: selection.Options{Ops: []string{"deleted"}}}, "--op needs a journal"},
		{"--where", Options{Options: selection.Options{Where: "true"}}, "--where needs a journal"},
		{"-o oneline", Options{Output: oneline}, "-o oneline needs a journal"},
		{"--related", Options{Options: selection.Options{Types: []string{"cm/a"}}, Related: true}, "--related needs a journal"},
		{"--tree", Options{Options: selection.Options{Types: []string{"cm/a"}}, Tree: true}, "--tree needs a journal"},
		{"--stat", Options{Stat: true}, "--stat needs a journal"},
		{"--html", Options{HTML: "-"}, "--html needs a journal"},
		{"an unknown kind", Options{Options: selection.Options{Types: []string{"deplyments"}}}, "deplyments"},
	} {
		out, _, err := showRecent(t.Context(), tc.o)
		if err == nil || !strings.Contains(err.Error(), tc.want) || out != "" || tc.why == "an unknown kind" && strings.Contains(err.Error(), "journal") {
			t.Errorf("%s: %v\n%s", tc.why, err, out)
		}
	}

	end := s.Misbehave(informertest.Fault{On: informertest.Lists, Resource: secretsGVR, Code: http.StatusForbidden})
	out, stderr, err := showRecent(t.Context(), Options{})
	if err != nil || !strings.Contains(stderr, "could not list secrets") || !strings.Contains(out, "cm/new") {
		t.Errorf("a forbidden kind: %v\n%s\n%s", err, out, stderr)
	}
	if _, _, err = showRecent(t.Context(), Options{Options: selection.Options{Types: []string{"secrets"}}}); err == nil || !strings.Contains(err.Error(), "may not list secrets") {
		t.Errorf("only forbidden kinds: %v", err)
	}
	end()

	s.Misbehave(informertest.Fault{On: informertest.Discovery, Code: http.StatusInternalServerError})
	if _, _, err = showRecent(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "there is no journal at ") || !strings.Contains(err.Error(), "and the cluster cannot be read: ") {
		t.Errorf("no server: %v", err)
	}

	t.Setenv("TATTLER_JOURNAL", filepath.Join(dir, "named.db"))
	if _, _, err = showRecent(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "there is no journal at") {
		t.Errorf("a journal that the environment names: %v", err)
	}
}
