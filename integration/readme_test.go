package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/integration/bus"
)

// TestReadme runs the commands of README.md as one new user would: in one folder, on one journal, in order.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile("`(tattler [^`]*)`").FindAllSubmatch(text, -1)
	if len(commands) < 20 {
		t.Fatalf("README.md has only %d commands", len(commands))
	}
	r := newReader(t)
	for _, c := range commands {
		t.Run(string(c[1]), func(t *testing.T) { r.follow(t, string(c[1])) })
	}
	t.Run("a time range", func(t *testing.T) {
		out := string(r.output(t, "tattler log --since "+r.from.Format(time.RFC3339)+" --until "+r.to.Format(time.RFC3339)))
		if !strings.Contains(out, "web:1 → web:1.1\n") || strings.Contains(out, "+ default  deploy/web") || strings.Contains(out, fmt.Sprintf("→ web:1.%d\n", r.sets)) {
			t.Errorf("from %v to %v:\n%s", r.from, r.to, out)
		}
	})
}

// configuration is the README's configuration file.
const configuration = `apiVersion: tattler.dev/v1alpha1
kind: Config
sinks:
- name: everything
  file: {path: everything.jsonl}
`

// reader is a user who runs the README's commands.
type reader struct {
	env      []string
	dir      string
	hook     string    // replaces the README's webhook; accepts every request
	nats     string    // host and port of a NATS server; replaces the README's
	id       string    // of a change in the journal; replaces the README's
	sets     int       // how often the Deployment's image was set
	from, to time.Time // the seconds in which it was first set
}

func newReader(t *testing.T) *reader {
	t.Helper()
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
	}))
	t.Cleanup(hook.Close)
	nats, err := bus.Start(filepath.Join(t.TempDir(), "nats"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nats.Close)
	r := newUser(t, newSlack(t).env)
	r.hook, r.nats = hook.URL, nats.Addr()
	if err := os.WriteFile(filepath.Join(r.dir, "tattler.yaml"), []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	r.record(t)
	return r
}

// newUser returns a user with a private folder, in the shared control plane's context.
func newUser(t *testing.T, env []string) *reader {
	t.Helper()
	tattler(t) // puts it on the PATH
	dir := t.TempDir()
	return &reader{dir: dir, env: append(append(os.Environ(), env...),
		"KUBECONFIG="+cluster.Kubeconfig(), "XDG_STATE_HOME="+dir+"/state", "XDG_CONFIG_HOME="+dir+"/config")}
}

// record makes a change and starts a daemon that runs until the end.
func (r *reader) record(t *testing.T) {
	t.Helper()
	d := r.start(t, "tattler run --to - --to "+r.hook)
	t.Cleanup(func() { d.interrupt(t) })
	d.wait(t, d.err, "msg=recording")
	if out, err := runKubectl(r.dir, cluster.Kubeconfig(), "create", "deployment", "web", "--image=web:1"); err != nil {
		t.Fatal(err, out)
	}
	t.Cleanup(func() {
		if out, err := runKubectl(r.dir, cluster.Kubeconfig(), "delete", "deployment", "web"); err != nil {
			t.Error(err, out)
		}
	})
	d.wait(t, d.out, "deploy/web")
	r.id = r.deployment(t)
}

// deployment returns the id of a change of the Deployment itself: its history also has its ReplicaSet's and
// pods' changes.
func (r *reader) deployment(t *testing.T) string {
	t.Helper()
	out := r.output(t, "tattler log deploy/web -o json")
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var e struct {
			ID   string
			Data struct{ Resource struct{ Kind string } }
		}
		if err := d.Decode(&e); err != nil {
			t.Fatalf("%v: no change of the Deployment in %.2000s", err, out)
		}
		if e.Data.Resource.Kind == "Deployment" {
			return e.ID
		}
	}
}

// follow runs one command of the README.
func (r *reader) follow(t *testing.T, command string) {
	command = strings.NewReplacer("https://example.com/hook", r.hook, "nats.example:4222", r.nats,
		"--at 10:00", "--at "+r.to.Format(time.RFC3339), "--since 10:00", "--since "+r.from.Add(-time.Second).Format(time.RFC3339)).Replace(command)
	verb := strings.Fields(command)[1]
	switch {
	case strings.HasSuffix(command, "--help"):
		r.output(t, command)
	case verb == "watch":
		r.watch(t, command)
	case strings.Contains(command, "kafka://"): // no server: only check
		r.output(t, strings.Replace(command, "tattler run", "tattler config check", 1))
	case verb == "run": // besides the running daemon
		d := r.start(t, command+" --journal "+filepath.Join(t.TempDir(), "journal.db"))
		d.wait(t, d.err, "msg=recording")
		d.interrupt(t)
	case verb == "ui":
		d := r.start(t, command)
		d.wait(t, d.out, "http://127.0.0.1:")
		d.interrupt(t)
	case verb == "diff":
		if out := string(r.output(t, command+"; test $? = 1")); !strings.Contains(out, "deploy/web") || !strings.Contains(out, ".image: web:1 → web:1.") {
			t.Errorf("the image is not among the differences:\n%s", out)
		}
	case verb == "log" && strings.Contains(command, " -f"):
		l := r.start(t, command)
		l.wait(t, l.out, "web")
		l.interrupt(t)
	default:
		out := string(r.output(t, strings.ReplaceAll(command, "4k2m", r.id)))
		for _, a := range answers {
			if strings.HasPrefix(command, a.command) && strings.Contains(out, a.want) != !a.not {
				t.Errorf("%q is there: %v, in:\n%s", a.want, a.not, out)
			}
		}
	}
}

// watched has the output of each watch recipe after the Deployment's image is set; empty: nothing about it. NEW
// stands for the image.
var watched = map[string]string{
	"tattler watch":                                 "~ deploy/web",
	"tattler watch -A":                              "~ default  deploy/web",
	"tattler watch deploy,cm -n shop,pay":           "",
	"tattler watch -A --exclude-namespace 'kube-*'": "~ default  deploy/web",
	"tattler watch deploy/web":                      "rolled out",
	"tattler watch -l app=web":                      "~ deploy/web",
	"tattler watch -A --path 'spec.**.image'":       ".image: NEW",
	"tattler watch events":                          "ScalingReplicaSet",
	"tattler watch deploy,rs,pods,events":           "rolled out",
	"tattler watch --since 1h":                      "~ deploy/web",
	"tattler watch -A -o json":                      `"to":"NEW"`,
}

// watch runs a command while the image of the Deployment is set.
func (r *reader) watch(t *testing.T, command string) {
	want, known := watched[command]
	if !known {
		t.Fatalf("its expected output is not listed")
	}
	w := r.start(t, command+" --timeout 10m")
	w.wait(t, w.err, "Waiting for changes")
	if r.sets++; r.sets == 1 {
		wait(2 * time.Second) // the Deployment was created in an earlier second
		r.from = time.Now().Truncate(time.Second)
	}
	image := fmt.Sprintf("web:1.%d", r.sets)
	if out, err := runKubectl(r.dir, cluster.Kubeconfig(), "set", "image", "deployment/web", "web="+image); err != nil {
		t.Fatal(err, out)
	}
	if r.sets == 1 {
		r.to = time.Now().Truncate(time.Second).Add(time.Second)
	}
	if want == "" {
		wait(time.Second)
		if out := w.read(t, w.out); strings.Contains(out, "web") {
			t.Errorf("it prints\n%s", out)
		}
	} else {
		w.wait(t, w.out, strings.ReplaceAll(want, "NEW", image))
	}
	w.interrupt(t)
}

// answers lists expected output of commands about the created Deployment.
var answers = []struct {
	command, want string
	not           bool
}{
	{"tattler log --since 10m", "+ default  deploy/web", false},
	{"tattler log --since 10m", "deploy/web                     rolled out", false},
	{"tattler log deploy/web --path", ".image: web:1", false},
	{"tattler log --since yesterday --humans", "deploy/web", false},
	{"tattler log --since yesterday --humans", "rolled out", true},
	{"tattler log --since yesterday --humans", "pod/web-", true},
	{"tattler log --since 1h --severity failure", "deploy/web", true},
	{"tattler log --since 10m", "web:1 → web:1.1", false},
	{"tattler log deploy/web --path", "web:1 → web:1.1", false},
	{"tattler log --since yesterday --humans", "kubectl-set", false},
	{"tattler log --since yesterday --humans", "kube-controller-manager", true},
	{"tattler config check -c tattler.yaml", "everything", false},
	{"tattler rbac -c tattler.yaml", "kind: ClusterRole", false},
	{"tattler sinks", "hook", false},
	{"tattler show", "deployments.apps/web in default", false},
	{"tattler status", "records ", false},
	{"tattler get deploy/web --at", "- image: web:1.", false},
	{"tattler blame deploy/web", "kubectl-set", false},
	{"tattler journal verify", "is not damaged", false},
}

// start starts a command that keeps running.
func (r *reader) start(t *testing.T, command string) *process {
	t.Helper()
	cmd := exec.Command("sh", "-c", "exec "+command)
	cmd.Env, cmd.Dir = r.env, r.dir
	return launched(t, cmd)
}

// output returns the output of a command that ends.
func (r *reader) output(t *testing.T, command string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Env, cmd.Dir = r.env, r.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // the shell and its command
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, &stderr)
	}
	return out
}
