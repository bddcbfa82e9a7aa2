package torture

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/devcluster"
	"github.com/tattler-dev/tattler/internal/journal"
)

// TestForms: a canary is found in every encoding.
func TestForms(t *testing.T) {
	value := "cnry" + rand.Text()[:10]
	for _, before := range []string{"", "a", "ab", "abc", `{"password":"`} {
		once := base64.StdEncoding.EncodeToString([]byte(before + value + rand.Text()))
		for _, text := range []string{before + value, once, base64.StdEncoding.EncodeToString([]byte(before + once))} {
			found := false
			for _, f := range forms(value) {
				found = found || strings.Contains(text, string(f))
			}
			if !found {
				t.Errorf("%s is not found in %s", value, text)
			}
		}
	}
}

// TestCanary plants values that must be hidden wherever the daemon could meet them, makes it record, deliver,
// fail and crash, and searches everything that it leaves behind.
func TestCanary(t *testing.T) {
	t.Parallel() // to tests that leave the servers alone
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	a := newCanaries(t)
	api, err := newAPI()
	if err != nil {
		t.Fatal(err)
	}
	ns := fmt.Sprintf("canary-%x", time.Now().UnixNano())
	if err := makeNamespaces(ctx, api, ns); err != nil {
		t.Fatal(err)
	}
	header, secret, password := a.plant("the webhook's header"), a.plant("the webhook's secret"), a.plant("the webhook's password")
	token := a.plant("the header of traces")
	hook, traces, address := newEchoHook(t), newCollector(t, chance(t)), freeAddress(t)
	dir := t.TempDir()
	changes := filepath.Join(dir, "changes.jsonl")
	d := newDaemon(t, filepath.Join(dir, "state", "journal.db"), tokenKubeconfig(t, a), fields{
		"cluster": fields{"name": "canary"},
		"watch":   []fields{{"resources": fields{"include": kindNames()}, "namespaces": fields{"include": []string{ns}}}},
		"redact":  []fields{{"resources": []string{"configmaps"}, "paths": []string{"data.innocent"}}, {"resources": []string{"gadgets.*"}, "paths": []string{"spec.deep[*].pin"}}},
		"journal": fields{"path": filepath.Join(dir, "state", "journal.db")},
		"log":     fields{"level": "debug"},
		"listen":  fields{"address": address, "pprof": true},
		"traces": fields{
			"endpoint": strings.Replace(traces.URL, "http://", "http://user:${env:CANARY_PASSWORD}@", 1), "timeout": "500ms",
			"headers": fields{"X-Api-Token": "${env:CANARY_TRACES}"},
		},
		"sinks": []fields{
			{"name": "file", "snapshots": true, "include": []string{"before", "after", "patch"}, "file": fields{"path": changes}},
			{"name": "text", "log": fields{"format": "text"}},
			{"name": "hook", "snapshots": true, "include": []string{"before", "after"}, "retry": fields{"min": "20ms", "max": "100ms"}, "webhook": fields{
				"url": strings.Replace(hook.URL, "http://", "http://user:${env:CANARY_PASSWORD}@", 1), "timeout": "2s",
				"secret": "${env:CANARY_SECRET}", "headers": fields{"X-Api-Token": "${env:CANARY_HEADER}"},
			}},
		},
	})
	d.env = []string{"CANARY_HEADER=" + header, "CANARY_SECRET=" + secret, "CANARY_PASSWORD=" + password, "CANARY_TRACES=" + token}

	a.objects(ctx, api, ns, 0) // for the first list
	d.ready(ctx)
	for n := 1; n <= 12; n++ { // enough for contents of every form
		a.objects(ctx, api, ns, n)
		if n%4 == 0 {
			d.kill()
			d.ready(ctx)
		}
	}
	a.remove(ctx, api, ns)
	last := &hand{api: api, watcher: &watcher{past: past{objects: map[identity]*timeline{}}, last: map[string]string{}}, rng: chance(t)}
	for _, r := range kinds {
		if err := last.create(ctx, r, ns, "last"); err != nil {
			t.Fatal(err)
		}
	}
	// Every way to crash, with the log open.
	for _, signal := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGABRT} {
		d.ready(ctx)
		for _, r := range kinds {
			if err := within(ctx, 2*time.Minute, func() error {
				for name, text := range map[string][]byte{"the file": read(t, changes), "the webhook": hook.received()} {
					if !bytes.Contains(text, []byte("/"+r.plural+"/last\"")) {
						return fmt.Errorf("%s has not received %s/last", name, r.plural)
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		a.alive(d, address)
		p := d.running
		d.running = nil
		if err := p.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		<-p.done
		if !strings.Contains(p.errors.String(), "goroutine ") {
			t.Errorf("%v leaves no stacks: %s", signal, tail(p.errors.String(), 500))
		}
	}
	a.everywhere(ctx, d, dir, hook, traces)
}

// objects writes an object with each canary; n numbers the versions.
func (a *canaries) objects(ctx context.Context, api *api, ns string, n int) {
	a.Helper()
	plant := func(where string) string { return a.plant(fmt.Sprint(where, ", version ", n)) }
	applied := func(value string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","data":{"k":%q},"stringData":{"s":%q}}`, base64.StdEncoding.EncodeToString([]byte(value)), value)
	}
	release := base64.StdEncoding.EncodeToString([]byte(`{"config":{"password":"` + plant("a Helm release") + `"},"filler":"` + strings.Repeat("x", 400) + `"}`))
	long := strings.Repeat("the same long text ", 30)
	const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	for _, o := range []struct {
		r resource
		o fields
	}{
		{secrets, fields{
			"metadata":   fields{"name": "data", "annotations": fields{"note": plant("an annotation of a Secret"), lastApplied: applied(plant("last-applied of a Secret"))}},
			"data":       fields{"k": base64.StdEncoding.EncodeToString([]byte(long + plant("data of a Secret")))},
			"stringData": fields{"s": plant("stringData of a Secret")},
		}},
		{secrets, fields{
			"metadata": fields{"name": "sh.helm.release.v1.shop.v1", "labels": fields{"owner": "helm"}}, "type": "helm.sh/release.v1",
			"data": fields{"release": base64.StdEncoding.EncodeToString([]byte(release))},
		}},
		{configMaps, fields{"metadata": fields{"name": "rule"}, "data": fields{
			"innocent": long + plant("a path that a rule names"), "password": plant("a key that looks like a credential's"), "open": fmt.Sprint("seen ", n),
		}}},
		{configMaps, fields{"metadata": fields{"name": "helm", "labels": fields{"owner": "helm"}}, "data": fields{"release": plant("a Helm release in a ConfigMap")}}},
		{deployments, fields{
			"metadata": fields{"name": "env", "annotations": fields{lastApplied: `{"env":[{"name":"API_TOKEN","value":"` + plant("last-applied of a Deployment") + `"}]}`}},
			"spec": fields{"selector": fields{"matchLabels": fields{"app": "a"}}, "template": fields{
				"metadata": fields{"labels": fields{"app": "a"}},
				"spec": fields{"containers": []fields{{
					"name": "app", "image": "app", "args": []string{"--password=" + plant("an argument"), "--n=" + fmt.Sprint(n)},
					"env": []fields{{"name": "API_TOKEN", "value": plant("an environment variable")}, {"name": "URL", "value": "https://user:" + plant("a URL") + "@example.com/"}},
				}}},
			}},
		}},
		{gadgets, fields{"metadata": fields{"name": "deep"}, "spec": fields{"deep": []fields{{"pin": plant("a custom resource's field")}}, "n": n}}},
	} {
		o.o["apiVersion"], o.o["kind"] = o.r.apiVersion(), o.r.kind
		name := o.o["metadata"].(fields)["name"].(string)
		body, err := json.Marshal(o.o)
		if err == nil {
			_, err = api.do(ctx, "PATCH", o.r.path(ns, name), "application/merge-patch+json", body)
		}
		if isRefusal(err, 404) {
			err = api.create(ctx, o.r, ns, o.o)
		}
		if err != nil {
			a.Fatal(err)
		}
	}
}

// remove deletes the objects.
func (a *canaries) remove(ctx context.Context, api *api, ns string) {
	a.Helper()
	for r, names := range map[resource][]string{
		secrets: {"data", "sh.helm.release.v1.shop.v1"}, configMaps: {"rule", "helm"}, deployments: {"env"}, gadgets: {"deep"},
	} {
		for _, name := range names {
			if _, err := api.do(ctx, "DELETE", r.path(ns, name), "", nil); err != nil {
				a.Fatal(err)
			}
		}
	}
}

// alive searches the running daemon's endpoints and commands.
func (a *canaries) alive(d *daemon, address string) {
	a.Helper()
	for _, path := range []string{
		"/metrics", "/healthz", "/readyz", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1", "/debug/pprof/cmdline", "/",
	} {
		resp, err := http.Get("http://" + address + path)
		if err != nil {
			a.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			a.Fatal(err)
		}
		a.search("HTTP "+path, body)
	}
	for _, args := range [][]string{
		{"status", "--journal", d.journal}, {"status", "--journal", d.journal, "-o", "json"}, {"sinks", "--journal", d.journal},
		{"sinks", "dead", "hook", "--journal", d.journal}, {"config", "check", "-c", d.config()}, {"config", "check", "--offline", "-c", d.config()}, {"rbac", "-c", d.config()},
	} {
		stdout, stderr := d.tattler(args...)
		a.search("tattler "+args[0], []byte(stdout+stderr))
	}
}

// everywhere searches everything that a daemon leaves behind.
func (a *canaries) everywhere(ctx context.Context, d *daemon, dir string, hook *echoHook, traces *collector) {
	a.Helper()
	a.search("the log", []byte(d.errors.String()))
	a.search("the webhook's messages", hook.received())
	a.search("traces", traces.exported())
	for _, root := range []string{dir, d.dir} { // before the journal is opened, which checkpoints its log
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			what, _, _ := strings.Cut(e.Name(), "-0") // there is one stdout file per run
			a.search("the file "+what, read(a.T, path))
			return nil
		})
		if err != nil {
			a.Fatal(err)
		}
	}
	ids, marked := a.contents(ctx, d.journal)
	if marked < 100 {
		a.Errorf("only %d hidden values are in the journal: the planted values did not arrive", marked)
	}
	for _, args := range [][]string{
		{"log", "-o", "json", "--limit", "0", "--noise"}, {"log", "-o", "yaml", "--limit", "0", "--noise"},
		{"log", "--limit", "0", "--noise", "--full", "--flat"}, {"log", "--limit", "0", "--where", `has(before.data) && before.data.k == "x"`},
	} {
		stdout, stderr := d.tattler(append(args, "--journal", d.journal)...)
		a.search("tattler log", []byte(stdout+stderr))
	}
	for i, id := range ids {
		if i%7 == 0 { // each is a process
			stdout, stderr := d.tattler("show", id, "--journal", d.journal)
			a.search("tattler show", []byte(stdout+stderr))
		}
	}
	for _, what := range []string{
		"the log", "the webhook's messages", "the file journal.db", "the file journal.db-wal", "the file journal.db-shm", "the file changes.jsonl",
		"the file out", "traces", "HTTP /metrics", "HTTP /debug/pprof/goroutine?debug=2", "tattler status", "tattler sinks", "contents of the journal", "tattler log", "tattler show",
	} {
		if a.looked[what] == 0 {
			a.Errorf("%s is empty: nothing was searched", what)
		}
	}
}

// contents searches every object of the journal, decompressed.
func (a *canaries) contents(ctx context.Context, path string) (ids []string, marked int) {
	a.Helper()
	r, err := journal.OpenReader(ctx, path)
	if err != nil {
		a.Fatal(err)
	}
	defer r.Close()
	for e, err := range r.Rows(ctx, journal.Query{Quiet: true, Snapshots: true}) {
		if err != nil {
			a.Fatal(err)
		}
		before, after, err := e.Contents(ctx)
		if err != nil {
			a.Fatal(err)
		}
		if e.Op.HasObject() {
			a.search("contents of the journal", append(append(before, '\n'), after...))
		}
		marked += bytes.Count(after, []byte("hidden #"))
		ids = append(ids, e.ID)
	}
	return ids, marked
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return data
}

// tokenKubeconfig connects to the plane with a bearer token, which is a canary.
func tokenKubeconfig(t *testing.T, a *canaries) string {
	t.Helper()
	a.all = append(a.all, canary{"the kubeconfig", plane.AdminToken()})
	a.needles = append(a.needles, forms(plane.AdminToken())...)
	var c fields
	if err := json.Unmarshal(read(t, plane.Kubeconfig()), &c); err != nil {
		t.Fatal(err)
	}
	for _, user := range c["users"].([]any) {
		user.(fields)["user"] = fields{"token": plane.AdminToken()}
	}
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// freeAddress returns an unused address.
func freeAddress(t *testing.T) string {
	t.Helper()
	ports, err := devcluster.FreePorts(1) // each run listens there
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("127.0.0.1:", ports[0])
}
