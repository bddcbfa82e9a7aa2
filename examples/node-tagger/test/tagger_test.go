package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/devcluster"
	"github.com/tattler-dev/tattler/devcluster/clustertest"
)

var (
	cluster *devcluster.Cluster
	program string
)

func TestMain(m *testing.M) { os.Exit(tests(m)) }

func tests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "node-tagger")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "node-tagger")
	return clustertest.Main(m, clustertest.Options{Begin: func(ctx context.Context, c *devcluster.Cluster) error {
		cluster = c
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "..").CombinedOutput(); err != nil {
			return fmt.Errorf("build node-tagger: %w\n%s", err, out)
		}
		return nil
	}})
}

// process is node-tagger, which runs.
type process struct {
	cmd  *exec.Cmd
	done chan error
	mu   sync.Mutex
	b    strings.Builder
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.Write(b)
}

func (p *process) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.String()
}

// start starts node-tagger, for a fake EC2.
func start(t *testing.T, kubeconfig string, env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(program, args...), done: make(chan error, 1)}
	p.cmd.Env = append([]string{"KUBECONFIG=" + kubeconfig, "HOME=/nonexistent", "TZ=UTC", "AWS_EC2_METADATA_DISABLED=true"}, env...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		p.done <- p.cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("node-tagger printed:\n%s", p)
		}
	})
	return p
}

func (p *process) prints(t *testing.T, text string) {
	t.Helper()
	eventually(t, func() error {
		if !strings.Contains(p.String(), text) {
			return errors.New("it did not print " + text)
		}
		return nil
	})
}

func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.done:
		if err != nil {
			t.Errorf("after SIGTERM: %v", err)
		}
	case <-time.After(patience):
		t.Error("SIGTERM did not end it")
	}
}

// fails waits until the process has failed with an exit code, and returns its last line.
func (p *process) fails(t *testing.T, code int) string {
	t.Helper()
	select {
	case err := <-p.done:
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != code {
			t.Errorf("%v, want exit code %d", err, code)
		}
	case <-time.After(patience):
		t.Error("it did not end")
	}
	lines := strings.Split(strings.TrimSpace(p.String()), "\n")
	return lines[len(lines)-1]
}

// patience only bounds a hang.
const patience = 3 * time.Minute

func eventually(t *testing.T, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := clustertest.Poll(ctx, 50*time.Millisecond, f); err != nil {
		t.Fatal(err)
	}
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := cluster.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// user returns the kubeconfig of a user, who may do what RBAC says.
func user(t *testing.T, name string) string {
	t.Helper()
	file, err := cluster.UserKubeconfig(name)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// rights applies the manifest, and returns a kubeconfig with the rights of its service account.
func rights(t *testing.T) string {
	t.Helper()
	kubectl(t, "apply", "-f", "../manifest.yaml")
	const name = "system:serviceaccount:node-tagger:node-tagger"
	granted(t, name, "patch")
	return user(t, name)
}

// granted waits until a user may do something to nodes. The API server learns by a watch what RBAC allows, and the
// program ends if it may not list.
func granted(t *testing.T, name, verb string) {
	t.Helper()
	eventually(t, func() error {
		_, err := cluster.Kubectl(t.Context(), "auth", "can-i", verb, "nodes", "--as="+name)
		return err
	})
}

// nodes makes nodes of instances.
func nodes(t *testing.T, prefix string, from, to int) {
	t.Helper()
	var text strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&text, "apiVersion: v1\nkind: Node\nmetadata: {name: %s-%d, labels: {theirs: 'yes'}}\nspec: {providerID: 'aws:///eu-west-1a/i-%[1]s%[2]d'}\n---\n", prefix, i)
	}
	file := filepath.Join(t.TempDir(), "nodes.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "create", "-f", file)
	t.Cleanup(func() {
		if _, err := cluster.Kubectl(context.Background(), "delete", "--wait=false", "--ignore-not-found", "-f", file); err != nil {
			t.Error(err)
		}
	})
}

// labelled waits until a node has these labels, as JSON.
func labelled(t *testing.T, node, want string) {
	t.Helper()
	eventually(t, func() error {
		got, err := cluster.Kubectl(t.Context(), "get", "node", node, "-o", "jsonpath={.metadata.labels}")
		if err == nil && got != want {
			err = fmt.Errorf("%s has the labels %s, want %s", node, got, want)
		}
		return err
	})
}

// file writes a manifest.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// kubectlAtEnd is kubectl at the end of a test.
func kubectlAtEnd(t *testing.T, args ...string) {
	t.Helper()
	if _, err := cluster.Kubectl(context.Background(), args...); err != nil {
		t.Error(err)
	}
}

// sources reads the program's sources: the go command takes a cached result unless what a test has read is the same.
func sources(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("../*.*")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if _, err := os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
}
