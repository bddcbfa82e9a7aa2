package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tattler-dev/tattler/devcluster"
)

// ownCluster starts a separate control plane for a test, and a client of it.
func ownCluster(ctx context.Context, t *testing.T) (*devcluster.Cluster, *kubernetes.Clientset) {
	t.Helper()
	own, err := devcluster.Start(ctx, devcluster.Options{Out: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	return own, clientOf(t, own)
}

// clientOf returns a client of a control plane.
func clientOf(t *testing.T, c *devcluster.Cluster) *kubernetes.Clientset {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// awaitKind waits until kubectl finds a new kind. The API server announces it some time after it has accepted it.
func awaitKind(t *testing.T, c *devcluster.Cluster, kind string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; pause() {
		out, err := c.Kubectl(t.Context(), "get", kind)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not served after %v: %v: %s", kind, patience, err, out)
		}
	}
}

// process is a running tattler whose output goes to files.
type process struct {
	cmd      *exec.Cmd
	out, err string
	done     chan error
	ended    chan struct{} // closed after the end
}

func start(t *testing.T, c *devcluster.Cluster, args ...string) *process {
	t.Helper()
	return startProgram(t, c, tattler(t), nil, args...)
}

// startProgram is start for another program, with additional environment variables.
func startProgram(t *testing.T, c *devcluster.Cluster, program string, env []string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), "TZ=UTC"), env...)
	return launched(t, cmd)
}

func launched(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	dir := t.TempDir()
	p := &process{cmd: cmd, out: filepath.Join(dir, "out"), err: filepath.Join(dir, "err"), done: make(chan error, 1), ended: make(chan struct{})}
	out, err := os.Create(p.out)
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := os.Create(p.err)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = out, stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		p.done <- p.cmd.Wait()
		out.Close()
		stderr.Close()
	}()
	t.Cleanup(func() { // before its folder is removed
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

func (p *process) read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// wait waits until a file contains a text.
func (p *process) wait(t *testing.T, file, text string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !strings.Contains(p.read(t, file), text) {
		if time.Now().After(deadline) {
			t.Fatalf("no %q after %v in %s; stderr:\n%s", text, patience, tail(p.read(t, file)), tail(p.read(t, p.err)))
		}
		pause()
	}
}

func (p *process) interrupt(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.done:
		if err != nil {
			t.Errorf("%v\n%s", err, tail(p.read(t, p.err)))
		}
	case <-time.After(patience):
		t.Errorf("did not end within %v of an interrupt", patience)
	}
}

func tail(s string) string {
	if len(s) > 2000 {
		return "…" + s[len(s)-2000:]
	}
	return s
}
