package examples

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tattler-dev/tattler/devcluster/clustertest"
)

// patience is how long a test waits for what must happen. It only bounds a hang.
const patience = 2 * time.Minute

var applying sync.Mutex

// kubectl runs kubectl as the administrator.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := cluster.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// rights applies an example's manifest and returns a kubeconfig with the rights of its service account, which is named
// as the example, in a namespace of that name.
func rights(t *testing.T, example string) string {
	t.Helper()
	applying.Lock() // two applies of what does not exist yet both create it, and one fails
	defer applying.Unlock()
	file := filepath.Join(example, "manifest.yaml")
	kubectl(t, "apply", "-f", file)
	name := "system:serviceaccount:" + example + ":" + example
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	docs := yaml.NewYAMLOrJSONDecoder(in, 4096)
	for rules := 0; ; {
		var role rbacv1.ClusterRole
		if err := docs.Decode(&role); errors.Is(err, io.EOF) && rules > 0 {
			return user(t, name)
		} else if err != nil {
			t.Fatalf("%s: %d rules, %v", file, rules, err)
		}
		if role.Kind != "ClusterRole" {
			continue
		}
		for _, r := range role.Rules {
			rules++
			a := authorizationv1.ResourceAttributes{Verb: r.Verbs[0], Group: r.APIGroups[0]}
			a.Resource, a.Subresource, _ = strings.Cut(r.Resources[0], "/")
			if len(r.ResourceNames) > 0 {
				a.Name = r.ResourceNames[0]
			}
			granted(t, name, a)
		}
	}
}

// granted waits until a user may do something. The API server learns by a watch what RBAC allows, so it can still refuse
// what was granted a moment ago, and a program ends if it may not read what it needs.
func granted(t *testing.T, name string, a authorizationv1.ResourceAttributes) {
	t.Helper()
	api := client(t).AuthorizationV1().SubjectAccessReviews()
	eventually(t, func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: name, ResourceAttributes: &a}}
		got, err := api.Create(t.Context(), review, metav1.CreateOptions{})
		if err == nil && !got.Status.Allowed {
			err = fmt.Errorf("%s may not %+v: %s", name, a, got.Status.Reason)
		}
		return err
	})
}

// lists waits until a user may list a resource in a namespace, or everywhere.
func lists(t *testing.T, name, namespace, group, resource string) {
	t.Helper()
	granted(t, name, authorizationv1.ResourceAttributes{Verb: "list", Namespace: namespace, Group: group, Resource: resource})
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

// namespace makes a namespace, whose name begins with prefix, that is deleted after the test.
func namespace(t *testing.T, prefix string) string {
	t.Helper()
	name := prefix + "-" + strings.ToLower(rand.Text()[:6])
	kubectl(t, "create", "namespace", name)
	t.Cleanup(func() {
		if _, err := cluster.Kubectl(context.Background(), "delete", "namespace", name, "--wait=false"); err != nil {
			t.Error(err)
		}
	})
	return name
}

// eventually waits until f returns nil.
func eventually(t *testing.T, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := clustertest.Poll(ctx, 50*time.Millisecond, f); err != nil {
		t.Fatal(err)
	}
}

// output is what a process printed.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// process is a program that runs. All that it prints is in out.
type process struct {
	cmd  *exec.Cmd
	out  *output
	done chan error
}

// command is an example's program with arguments, for a kubeconfig, and variables of its environment.
func command(example, kubeconfig string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(built, example), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME=/nonexistent", "TZ=UTC")
	return cmd
}

// start starts an example's program. It is killed at the end of the test if it still runs.
func start(t *testing.T, example, kubeconfig string, args ...string) *process {
	t.Helper()
	return launch(t, command(example, kubeconfig, args...))
}

func launch(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, out: &output{}, done: make(chan error, 1)}
	cmd.Stdout, cmd.Stderr = p.out, p.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		p.done <- cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("%s printed:\n%s", filepath.Base(cmd.Path), p.out)
		}
	})
	return p
}

// prints waits until the process has printed a text.
func (p *process) prints(t *testing.T, text string) {
	t.Helper()
	eventually(t, func() error {
		if !strings.Contains(p.out.String(), text) {
			return errors.New("it did not print " + text)
		}
		return nil
	})
}

// stop ends the process by SIGTERM, which must end it without a failure.
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

// fails runs a program that must end by itself with that exit code, and returns its last line.
func fails(t *testing.T, cmd *exec.Cmd, code int) string {
	t.Helper()
	p := launch(t, cmd)
	select {
	case err := <-p.done:
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != code {
			t.Errorf("%s: %v, want exit code %d", filepath.Base(cmd.Path), err, code)
		}
	case <-time.After(patience):
		t.Errorf("%s: it did not end", filepath.Base(cmd.Path))
	}
	lines := strings.Split(strings.TrimSpace(p.out.String()), "\n")
	return lines[len(lines)-1]
}

// manifest writes a manifest to a file.
func manifest(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// remove deletes an object at the end of a test.
func remove(t *testing.T, args ...string) {
	t.Helper()
	if _, err := cluster.Kubectl(context.Background(), append([]string{"delete", "--wait=false", "--ignore-not-found"}, args...)...); err != nil {
		t.Error(err)
	}
}

// serviceAccount waits until pods can be created in a namespace.
func serviceAccount(t *testing.T, namespace string) {
	t.Helper()
	eventually(t, func() error {
		_, err := cluster.Kubectl(t.Context(), "get", "serviceaccount", "default", "-n", namespace)
		return err
	})
}

// client is the administrator's.
func client(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
