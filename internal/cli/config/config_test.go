package config

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
	"github.com/tattler-dev/tattler/internal/usage"
)

// api is an API server with some objects, that refuses what a test says.
type api struct {
	*informertest.Server
	kubeconfig string
	// refused are rights that are missing: "watch secrets in pay"; lists are refused accordingly.
	refused map[string]bool
	// mute has it refuse the question for rights itself.
	mute bool
}

func serve(t *testing.T) *api {
	t.Helper()
	s := &api{Server: informertest.NewServer(), refused: map[string]bool{}}
	core := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: resource}
	}
	for resource, kind := range map[string]string{"pods": "Pod", "secrets": "Secret", "configmaps": "ConfigMap", "nodes": "Node", "events": "Event"} {
		s.Serve(core(resource), kind)
	}
	s.Describe(core("nodes"), true, nil, nil)
	labels := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}}
	for i := range 3 {
		s.Put(core("pods"), "shop", fmt.Sprint("p", i), nil)
		s.Put(core("nodes"), "", fmt.Sprint("n", i), labels)
	}
	s.Put(core("pods"), "other", "p", nil)
	s.Put(core("secrets"), "pay", "s", nil)
	s.Intercept(s.refuse)
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	s.kubeconfig = write(t, "kubeconfig", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: prod,
		contexts: [{name: prod, context: {cluster: c, user: u}}], clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {token: t}}]}`, h.URL))
	return s
}

// refuse answers questions for rights, and what is refused.
func (s *api) refuse(w http.ResponseWriter, r *http.Request) bool {
	if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
		var review authorization.SelfSubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || s.mute {
			informertest.Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "no reviews")
			return true
		}
		a := review.Spec.ResourceAttributes
		review.Status.Allowed = !s.refused[right(a.Verb, a.Resource, a.Namespace)]
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
		return true
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/")
	ns := ""
	if len(parts) == 3 && parts[0] == "namespaces" {
		ns, parts = parts[1], parts[2:]
	}
	if len(parts) == 1 && s.refused[right("list", parts[0], ns)] {
		informertest.Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "no list")
		return true
	}
	return false
}

func right(verb, resource, ns string) string {
	if ns == "" {
		return verb + " " + resource
	}
	return verb + " " + resource + " in " + ns
}

// write makes a file of a test, and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func configuration(t *testing.T, text string) string {
	t.Helper()
	return write(t, "c.yaml", "apiVersion: tattler.dev/v1alpha1\nkind: Config\n"+text)
}

// run runs a command line, and returns what it wrote.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := NewCommand(&terminal.IO{Out: &out, Err: &out}, kinds.Tattler())
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&out)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestCheck(t *testing.T) {
	s := serve(t)
	for _, missing := range []string{"watch secrets in shop", "list secrets in pay", "get nodes", "get namespaces in pay"} {
		s.refused[missing] = true
	}
	key := write(t, "key", base64.StdEncoding.EncodeToString(make([]byte, 32)))
	file := configuration(t, `watch:
- resources: {include: [pods, secrets]}
  namespaces: {include: [shop, pay]}
- resources: {include: ["*", "*.example.com"], exclude: [configmaps]}
  labelSelector: app=web
quiet:
- {resources: ["*", nodez], paths: [status.images]}
redact:
- {resources: ["*.x.io"], paths: [spec.password]}
redactionKey: `+key+`
journal: {path: /var/lib/j.db}
sinks:
- name: hook
  where: op == "deleted"
  include: [patch, before]
  maxBytes: 64Ki
  snapshots: true
  from: beginning
  paused: true
  webhook: {url: "https://user:geheim@example.com/token"}
- name: out
  log: {}
listen: {address: "127.0.0.1:9"}
`)
	got, err := run(t, "check", "-c", file, "--kubeconfig", s.kubeconfig)
	if err != nil {
		t.Error(err)
	}
	want := `Context prod, in events: prod. Watched: 3 kinds
KIND      WHERE                         OBJECTS
pods      namespaces shop, pay          3
secrets   namespaces shop, pay          ?
nodes     the cluster, labels app=web   some
Left out as noisy (to include a kind, name it or set noise: true): events
No kind matches (yet): *.example.com
Journal: /var/lib/j.db, for 30d, up to 1Gi
Room: at least 8 KiB for the last states of 4 objects; what is left of 1Gi holds 3.6 million to 15 million changes, which is 30d of 1.4 to 5.9 a second
Redaction key: KEY
Listening: 127.0.0.1:9
SINK   TO                            GETS
hook   webhook https://example.com   changes where op == "deleted"; what exists at the start; with patch, before; cut at 64Ki; from the journal's beginning; paused
out    log stdout                    every change
warning: secrets: may not list in pay
warning: secrets: may not watch in shop
warning: nodes: may not get
warning: namespaces/pay: may not get: a missing namespace looks like an empty one
warning: FILE:9:21: quiet[0].resources[1]: the server has no resource type "nodez"; did you mean "nodes"?
warning: FILE:11:16: redact[0].resources[0]: the server has no resource type "*.x.io" (yet); ` + "`kubectl api-resources` lists the types\n"
	if diff := cmp.Diff(want, strings.NewReplacer(file, "FILE", key, "KEY").Replace(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, asked := range s.Recorded() {
		if asked.Query.Get("limit") == "1" && !strings.Contains(asked.Accept, "PartialObjectMetadataList") {
			t.Errorf("asked for more than metadata: %+v", asked)
		}
	}
}

// TestCheckFails: what tattler run would not do is an error, and nothing that is only doubtful is.
func TestCheckFails(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	broken, open := write(t, "key", "c2hvcnQ="), write(t, "key", base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		why     string
		text    string
		flags   string
		refused []string
		want    string // of the error; empty: none
		says    string // of the output
		warns   int    // how often it does
	}{
		{"an unknown kind, at its place", "watch:\n- resources: {include: [pods, secrts]}\n", "", nil,
			`c.yaml:4:31: watch[0].resources.include[1]: the server has no resource type "secrts"; did you mean "secrets"?`, "", 0},
		{"a mistyped kind in a redaction rule", "redact:\n- {resources: [configmap, secrts], paths: [data.a]}\n", "", nil,
			`c.yaml:4:27: redact[0].resources[1]: the server has no resource type "secrts"; did you mean "secrets"?; for a custom resource that does not exist yet, write PLURAL.GROUP`, "", 0},
		{"one with a built-in group", "redact:\n- {resources: [deploymnts.apps], paths: [data.a]}\n", "", nil, `c.yaml:4:16: redact[0].resources[0]: the server has no resource type "deploymnts.apps"`, "", 0},
		{"a redaction rule by singular, kind and short name", "redact:\n- {resources: [configmap, Node, pods.], paths: [data.a]}\n", "", nil, "", "Watched: ", 0},
		{"a redaction rule for a kind that may come", "redact:\n- {resources: [widgets.example.com], paths: [data.a]}\n", "", nil, "",
			`c.yaml:4:16: redact[0].resources[0]: the server has no resource type "widgets.example.com" (yet)`, 1},
		{"nothing left", "watch:\n- resources: {include: [\"po*\"], exclude: [\"p*\"]}\n", "", nil, "nothing would be watched", "", 0},
		{"nothing may be watched", "watch:\n- resources: {include: [pods, secrets]}\n", "", []string{"watch pods", "list secrets"},
			"nothing of this may be watched; tattler rbac prints", "warning: pods: may not watch\n", 2},
		{"something may", "watch:\n- resources: {include: [pods, secrets]}\n", "", []string{"watch pods"}, "", "warning: pods: may not watch\n", 1},
		{"several lack the same", "watch:\n- resources: {include: [pods, secrets, configmaps]}\n", "", []string{"watch pods", "watch secrets"}, "",
			"warning: pods, secrets: may not watch; tattler rbac prints the roles to grant\n", 1},
		{"get alone does not stop it", "watch:\n- resources: {include: [pods]}\n", "", []string{"get pods"}, "", "warning: pods: may not get\n", 1},
		{"a glob that waits", "watch:\n- resources: {include: [\"*.x.io\"]}\n", "", nil, "", "No kind matches (yet): *.x.io\n", 0},
		{"an element for which nothing is left", "watch:\n- {}\n- resources: {include: [pods]}\n", "", nil, "", "c.yaml:5:3: watch[1]: no kind is left for it", 1},
		{"a glob of namespaces", "watch:\n- resources: {include: [pods]}\n  namespaces: {include: [\"sh*\"]}\n", "", nil, "", "namespaces sh*   at most 4\n", 0},
		{"a folder that is not there", "sinks:\n- name: x\n  file: {path: " + none + "/f}\n", "", nil, "sink x: check the file's directory, which must exist: stat ", "file ", 0},
		{"a key that is not there", "redactionKey: " + none + "\n", "", nil, "redactionKey: stat " + none, "", 0},
		{"a key on another machine", "redactionKey: " + none + "\n", "--offline", nil, "", "Redaction key: " + none + "\n", 0},
		{"credentials on another machine", "sinks:\n- name: x\n  webhook: {url: \"${env:TATTLER_NONE}\", headers: {authorization: \"${file:" + none + "}\"}}\n", "--offline", nil, "", "x      webhook   every change\n", 0},
		{"the same, on this machine, before anything is asked", "sinks:\n- name: x\n  webhook: {url: \"https://a.example/\", headers: {authorization: \"${file:" + none + "}\"}}\n", "--offline=false", nil, "read credential: open " + none, "", 0},
		{"a mistake beside a credential", "sinks:\n- name: x\n  webhook: {urk: \"${env:TATTLER_NONE}\"}\n", "--offline", nil, "urk: unknown key", "", 0},
		{"a credential in clear text", "sinks:\n- name: x\n  webhook: {url: \"http://a.example/${env:TATTLER_NONE}\"}\n", "--offline", nil, "in clear text", "", 0},
		{"a credential of an unknown form", "sinks:\n- name: x\n  webhook: {url: \"${vault:x}\"}\n", "--offline", nil, "${vault:x} is unknown", "", 0},
		{"a certificate of a sink on another machine", "sinks:\n- name: x\n  webhook: {url: \"https://a.example/\", tls: {ca: " + none + "}}\n", "--offline", nil, "", "webhook", 0},
		{"a certificate of traces on another machine", "traces: {endpoint: \"https://a.example\", tls: {ca: " + none + "}}\n", "--offline", nil, "", "Traces: 100% of changes\n", 0},
		{"a folder on another machine", "sinks:\n- name: x\n  file: {path: " + none + "/f}\n", "--offline", nil, "", "file", 0},
		{"an invalid key", "redactionKey: " + broken + "\n", "", nil, broken + " is not 32 bytes in base64: restore it", "Redaction key: " + broken + "\n", 0},
		{"a key that others may read", "redactionKey: " + open + "\n", "", nil, open + " is readable by others (mode 0644): chmod 600 it", "", 0},
		{"a folder in place of the key", "redactionKey: " + filepath.Dir(broken) + "\n", "", nil, "read redaction key: ", "", 0},
		{"a wrong file", "sinks: 3\n", "--offline", nil, "c.yaml:3:8: sinks: want a list", "", 0},
		{"what the file alone says", "watch:\n- resources: {include: [nope], exclude: [x]}\n  namespaces: {include: [a]}\n", "--offline", nil, "",
			"Watched: nope without x, namespace a\n", 0},
		{"no bounds", "journal: {path: /j.db, retain: {age: 0s, size: 0}}\n", "--offline", nil, "", "Journal: /j.db, without bounds\n", 0},
		{"an open web page", "web: {address: \"localhost:8081\"}\n", "--offline", nil, "", "Web page: localhost:8081, everyone on this machine sees everything\n", 0},
		{"a web page that may not review", "web: {address: \"localhost:8081\", tokens: true}\n", "", []string{"create tokenreviews"}, "",
			"warning: tokenreviews: may not create: the web page refuses viewers with bearer tokens\n", 1},
		{"a web page without its certificate", "web: {address: \":8443\", tokens: true, tls: {cert: " + none + ", key: " + none + "}}\n", "", nil, "protect the web page: read " + none, "Web page: :8443, viewers see what they may get\n", 0},
		{"a web page's certificate on another machine", "web: {address: \":8443\", tokens: true, tls: {cert: " + none + ", key: " + none + "}}\n", "--offline", nil, "", "Web page: :8443, viewers see what they may get\n", 0},
		{"a web page without TLS", "web: {address: \":8443\", tokens: true}\n", "--offline", nil, "web", "", 0},
		{"no sinks", "", "--offline", nil, "", "No sinks: changes are journaled only.\n", 0},
	} {
		t.Run(tc.why, func(t *testing.T) {
			t.Setenv("XDG_CONFIG_HOME", t.TempDir())
			t.Setenv("XDG_STATE_HOME", t.TempDir())
			s := serve(t)
			for _, r := range tc.refused {
				s.refused[r] = true
			}
			args := append([]string{"check", "-c", configuration(t, tc.text), "--kubeconfig", s.kubeconfig}, strings.Fields(tc.flags)...)
			out, err := run(t, args...)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%v, want %q", err, tc.want)
			}
			if !strings.Contains(out, tc.says) {
				t.Errorf("no %q in\n%s", tc.says, out)
			}
			if n := strings.Count(out, "warning: "); n != tc.warns {
				t.Errorf("%d warnings, want %d:\n%s", n, tc.warns, out)
			}
			if offline := len(s.Requests()) == 0; offline != strings.HasPrefix(tc.flags, "--offline") {
				t.Errorf("asked %v", s.Requests())
			}
		})
	}
}

// TestCheckTheCommandLine: without a file, the flags of run.
func TestCheckTheCommandLine(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	s := serve(t)
	s.mute = true
	out, err := run(t, "check", "pods/p1", "pod/p2", "-n", "shop", "--kubeconfig", s.kubeconfig, "--journal", "/j.db")
	for _, want := range []string{
		"pods   namespace shop, named p1, p2   2\n", "Journal: /j.db, ", "redaction.key, to be made at the first start\n",
		"log    log stdout   every change\n", "warning: pods/p1, pods/p2: rights not known: ask for rights: ",
	} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("no %q, %v:\n%s", want, err, out)
		}
	}
}

func TestInit(t *testing.T) {
	out, err := run(t, "init")
	if err != nil || !strings.Contains(out, "kind: Config\n") {
		t.Errorf("%v\n%s", err, out)
	}
	file := filepath.Join(t.TempDir(), "c.yaml")
	if _, err := run(t, "init", file); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(file)
	if err != nil || string(written) != out {
		t.Errorf("%v: the file differs from what goes to stdout", err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := run(t, "init", file); err == nil || !strings.Contains(err.Error(), "exists and was left alone") {
		t.Errorf("written over: %v", err)
	}
	if _, err := run(t, "init", filepath.Join(file, "x")); err == nil || !strings.Contains(err.Error(), "write configuration: ") {
		t.Errorf("below a file: %v", err)
	}
	if _, err := run(t, "check", "--offline", "-c", file); err != nil {
		t.Errorf("what init writes is wrong: %v", err)
	}
}

func TestExplain(t *testing.T) {
	if out, err := run(t, "explain", "journal.retain"); err != nil || !strings.Contains(out, "journal.retain.age") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := run(t, "explain"); err != nil || !strings.Contains(out, "sinks: ") {
		t.Errorf("%v\n%s", err, out)
	}
	_, err := run(t, "explain", "jurnal")
	var wrong *usage.Error
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "journal") {
		t.Error(err)
	}
}
