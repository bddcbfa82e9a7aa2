package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRightsTakenAway runs one daemon with exactly the generated rights, and takes each of them away in turn, while it
// runs: doctor, /readyz and status must name it. Once it is given back, the daemon goes on without a restart.
func TestRightsTakenAway(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	const ns, name = "taken-away", "taken-away"
	r := &rights{cluster: cluster, client: clientOf(t, cluster), dir: t.TempDir()}
	if _, err := r.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubeconfig := r.account(ctx, t, ns, name)
	config := r.write(t, "tattler.yaml", fmt.Sprintf(`apiVersion: tattler.dev/v1alpha1
kind: Config
watch:
- resources: {include: [configmaps, secrets]}
  namespaces: {include: [%s]}
- resources: {include: ["*.taken-away.example.com"]}
listen: {address: "127.0.0.1:0"}
web: {address: "127.0.0.1:0", tokens: true}
journal: {path: %s}
sinks:
- name: out
  log: {format: json}
`, ns, filepath.Join(r.dir, "journal", "journal.db")))
	roles, err := r.tattler(ctx, t, r.cluster.Kubeconfig(), "rbac", "-c", config, "--name", name, "--serviceaccount", ns+":"+name)
	if err != nil {
		t.Fatalf("%v\n%s", err, roles)
	}
	r.kubectl(ctx, t, "apply", "-f", r.write(t, "roles.yaml", roles))
	r.granted(ctx, t, kubeconfig, config)

	server := newCutter(t, strings.TrimPrefix(r.cluster.URL(), "https://"))
	d := &taken{rights: r, process: r.daemon(ctx, t, server.kubeconfig(t, r, kubeconfig), config), kubeconfig: kubeconfig, config: config}
	d.wait(t, d.err, "msg=recording")
	d.address = regexp.MustCompile(`msg="serving metrics and health" address=(\S+)`).FindStringSubmatch(d.read(t, d.err))[1]
	d.names(ctx, t, "with every right", "")
	d.whole(ctx, t)

	rules := 0
	for _, h := range r.holders(ctx, t, name) {
		for i, rule := range h.rules {
			rules++
			d.take(ctx, t, h, i, rule)
		}
	}
	if rules < 6 {
		t.Errorf("only %d rules were taken away:\n%s", rules, roles)
	}
	for _, h := range r.holders(ctx, t, name) {
		if h.where == ns {
			d.verbs(ctx, t, h)
			d.goesOn(ctx, t, h, server)
		}
	}
	d.interrupt(t)
}

// taken is a daemon whose rights are taken away.
type taken struct {
	*rights
	*process
	kubeconfig, config, address string
}

// get returns the answer of /readyz or /metrics.
func (d *taken) get(ctx context.Context, t *testing.T, path string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.address+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// names waits until /readyz names a missing right, or none if the text is empty.
func (d *taken) names(ctx context.Context, t *testing.T, why, text string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; pause() {
		got := d.get(ctx, t, "/readyz")
		if text == "" && !strings.Contains(got, "missing right") || text != "" && strings.Contains(got, text) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: /readyz after %v: %q, want %q; stderr:\n%s", why, patience, got, text, tail(d.read(t, d.err)))
		}
	}
}

// doctor runs the verb as the service account, and returns the titles of its findings with a level.
func (d *taken) doctor(ctx context.Context, t *testing.T, level string) []string {
	t.Helper()
	cmd := d.command(ctx, t, d.kubeconfig, "doctor", "-c", d.config, "-o", "json")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var report struct {
		Findings []struct{ Check, Level, Title string }
		Summary  map[string]int
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if wrong := report.Summary["warning"]+report.Summary["error"] > 0; wrong != (cmd.ProcessState.ExitCode() == 1) {
		t.Errorf("exit code %d with %v", cmd.ProcessState.ExitCode(), report.Summary)
	}
	var titles []string
	for _, f := range report.Findings {
		if f.Level == level && f.Check == "rights.missing" {
			titles = append(titles, f.Title)
		}
	}
	return titles
}

// whole requires a doctor with nothing to say about rights.
func (d *taken) whole(ctx context.Context, t *testing.T) {
	t.Helper()
	if got := slices.Concat(d.doctor(ctx, t, "error"), d.doctor(ctx, t, "warning")); len(got) > 0 {
		t.Errorf("with every right, doctor says %q", got)
	}
}

// take removes a rule, and gives it back.
func (d *taken) take(ctx context.Context, t *testing.T, h holder, i int, rule rbacv1.PolicyRule) {
	t.Helper()
	if err := h.set(slices.Delete(slices.Clone(h.rules), i, i+1)); err != nil {
		t.Fatal(err)
	}
	kind := rule.Resources[0]
	if g := rule.APIGroups[0]; g != "" {
		kind += "." + g
	}
	why := fmt.Sprintf("in %s without %v", h.where, rule)
	d.names(ctx, t, why, "missing right: "+strings.Join(rule.Verbs, ", ")+" "+kind+"\n")
	status, err := d.tattler(ctx, t, d.kubeconfig, "status", "-c", d.config)
	if err != nil || !strings.Contains(status, "Rights ") || !strings.Contains(status, kind) {
		t.Errorf("%s: status prints (%v)\n%s", why, err, status)
	}
	level := "warning"
	if len(rule.Verbs) == 3 && kind != "*.taken-away.example.com" {
		level = "error" // the kind cannot be watched
	}
	if got := strings.Join(d.doctor(ctx, t, level), "\n"); !strings.Contains(got, kind) {
		t.Errorf("%s: doctor has the findings %q with the level %s", why, got, level)
	}
	if err := h.set(h.rules); err != nil {
		t.Fatal(err)
	}
	d.names(ctx, t, why+", given back", "")
}

// verbs leaves one verb of each rule.
func (d *taken) verbs(ctx context.Context, t *testing.T, h holder) {
	t.Helper()
	for verb, missing := range map[string]string{"get": "list, watch", "list": "get, watch", "watch": "get, list"} {
		rules := slices.Clone(h.rules)
		for i := range rules {
			rules[i].Verbs = []string{verb}
		}
		if err := h.set(rules); err != nil {
			t.Fatal(err)
		}
		d.names(ctx, t, "with "+verb+" alone", "missing right: "+missing+" configmaps\n")
	}
	if err := h.set(h.rules); err != nil {
		t.Fatal(err)
	}
	d.names(ctx, t, "with all verbs", "")
}

// goesOn takes the rights away and cuts the connections, so that the streams are refused. A change made meanwhile arrives
// once the rights are given back.
func (d *taken) goesOn(ctx context.Context, t *testing.T, h holder, server *cutter) {
	t.Helper()
	if err := h.set(nil); err != nil {
		t.Fatal(err)
	}
	d.names(ctx, t, "without rights in "+h.where, "missing right: get, list, watch configmaps\n")
	server.cut()
	d.shows(ctx, t, "2 forbidden")
	if got := d.get(ctx, t, "/metrics"); !strings.Contains(got, "\ntattler_stream_revoked{resource=\"configmaps\"} 1\n") {
		t.Errorf("the revoked streams are missing in\n%s", got)
	}
	d.kubectl(ctx, t, "create", "configmap", "meanwhile", "-n", h.where, "--from-literal=a=1")
	if err := h.set(h.rules); err != nil {
		t.Fatal(err)
	}
	d.shows(ctx, t, "2 live")
	d.wait(t, d.out, `"name":"meanwhile"`)
	if strings.Contains(d.read(t, d.out), `"op":"gap"`) {
		t.Errorf("a gap:\n%s", tail(d.read(t, d.out)))
	}
	d.names(ctx, t, "at the end", "")
	d.whole(ctx, t)
}

// shows waits until status prints a text.
func (d *taken) shows(ctx context.Context, t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; pause() {
		status, err := d.tattler(ctx, t, d.kubeconfig, "status", "-c", d.config)
		if strings.Contains(status, text) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %q in the status after %v (%v):\n%s", text, patience, err, status)
		}
	}
}

// cutter passes connections to the API server, until it cuts them all.
type cutter struct {
	address string
	mu      sync.Mutex
	open    map[net.Conn]bool
}

func newCutter(t *testing.T, target string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{address: l.Addr().String(), open: map[net.Conn]bool{}}
	var serving sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		c.cut()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", target)
			if err != nil {
				_ = from.Close()
				continue
			}
			c.mu.Lock()
			c.open[from], c.open[to] = true, true
			c.mu.Unlock()
			for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
				serving.Go(func() {
					_, _ = io.Copy(pair[0], pair[1])
					_, _ = pair[0].Close(), pair[1].Close()
				})
			}
		}
	})
	return c
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		_ = conn.Close()
	}
	clear(c.open)
}

// kubeconfig returns a copy of a kubeconfig that leads through the cutter.
func (c *cutter) kubeconfig(t *testing.T, r *rights, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return r.write(t, "cut.kubeconfig", strings.ReplaceAll(string(text), r.cluster.URL(), "https://"+c.address))
}
