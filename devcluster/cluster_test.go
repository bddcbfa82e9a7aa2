package devcluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// kubectl runs kubectl and fails the test if kubectl fails.
func kubectl(t *testing.T, c *Cluster, args ...string) string {
	t.Helper()
	out, err := c.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A whole cluster: a Deployment of 3 becomes 3 running pods.
func TestWholeCluster(t *testing.T) {
	c := startTest(t, Options{Nodes: 2})
	if v := kubectl(t, c, "version"); strings.Count(v, "Version: "+KubernetesVersion) != 2 {
		t.Errorf("client and server are not %s:\n%s", KubernetesVersion, v)
	}
	if !strings.HasPrefix(KubernetesVersion, "v1.36.") {
		t.Errorf("Kubernetes is %s, want v1.36", KubernetesVersion)
	}
	kubectl(t, c, "create", "deployment", "web", "--image=nginx", "--replicas=3")
	kubectl(t, c, "rollout", "status", "deployment/web", "--timeout=5m")
	phases := kubectl(t, c, "get", "pods", "-l", "app=web", "-o", `jsonpath={range .items[*]}{.status.phase} {.status.conditions[?(@.type=="Ready")].status};{end}`)
	if phases != "Running True;Running True;Running True;" {
		t.Errorf("pods are %q, want three that are Running and Ready", phases)
	}
	kubectl(t, c, "delete", "deployment", "web", "--cascade=foreground", "--timeout=5m")
	if left := kubectl(t, c, "get", "pods", "-o", "name"); left != "" {
		t.Errorf("pods after the Deployment's deletion: %q", left)
	}

	ids := pids(c)
	if len(ids) != 5 {
		t.Fatalf("%d processes, want 5", len(ids))
	}
	dir := c.Dir()
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	for _, pid := range ids { // Stop waits for them
		if who := identify(pid); who != "" {
			t.Errorf("process %d is left: %s", pid, who)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("temporary folder is left: %v", err)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
	if err := c.StartEtcd(t.Context()); !errors.Is(err, ErrStopped) {
		t.Errorf("StartEtcd after Stop: %v", err)
	}
}

// The parts can be stopped, killed and restarted, and keep their data.
func TestRestart(t *testing.T) {
	c := startTest(t, Options{})
	kubectl(t, c, "create", "configmap", "first", "--from-literal=a=1")
	old := kubectl(t, c, "get", "configmap", "first", "-o", "jsonpath={.metadata.resourceVersion}")
	steps := []struct {
		name string
		do   func() error
	}{
		{"stop API server", func() error { return c.StopAPIServer(t.Context()) }},
		{"stop it again", func() error { return c.StopAPIServer(t.Context()) }},
		{"start API server", func() error { return c.StartAPIServer(t.Context()) }},
		{"kill API server", c.KillAPIServer},
		{"start API server", func() error { return c.StartAPIServer(t.Context()) }},
		{"kill etcd", c.KillEtcd},
		{"start etcd", func() error { return c.StartEtcd(t.Context()) }},
		{"stop etcd", func() error { return c.StopEtcd(t.Context()) }},
		{"start etcd", func() error { return c.StartEtcd(t.Context()) }},
		{"compact", func() error { return c.Compact(t.Context()) }},
		{"compact again", func() error { return c.Compact(t.Context()) }},
	}
	url := c.URL()
	for _, s := range steps {
		begin := time.Now()
		if err := s.do(); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		t.Logf("%s: %v", s.name, time.Since(begin).Round(time.Millisecond))
		if running := c.PID("kube-apiserver") != 0 && c.PID("etcd") != 0; !running {
			continue
		}
		if v := kubectl(t, c, "get", "configmap", "first", "-o", "jsonpath={.data.a}"); v != "1" {
			t.Fatalf("%s: configmap is %q", s.name, v)
		}
	}
	if c.URL() != url {
		t.Errorf("URL was %s and is %s", url, c.URL())
	}
	if err := c.StartAPIServer(t.Context()); err == nil {
		t.Error("an API server that runs was started")
	}

	// The API server's watch cache has the compacted versions until a restart.
	kubectl(t, c, "create", "configmap", "second")
	if err := errors.Join(c.Compact(t.Context()), c.KillAPIServer(), c.StartAPIServer(t.Context())); err != nil {
		t.Fatal(err)
	}
	watch := "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=3&resourceVersion=" + old
	if out, err := c.Kubectl(t.Context(), "get", "--raw", watch); err == nil && !strings.Contains(out, `"code":410`) {
		t.Errorf("a watch from before the compaction is answered: %q", out)
	} else if err != nil && !strings.Contains(err.Error(), "too old") {
		t.Error(err)
	}
}

// An orderly stop ends watches; it does not wait for them until the kill.
func TestStopWithWatch(t *testing.T) {
	c := startTest(t, Options{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL()+"/api/v1/configmaps?watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.AdminToken())
	client := *c.http
	client.Timeout = 0
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	c.mu.Lock()
	server := c.procs["kube-apiserver"]
	c.mu.Unlock()
	if err := c.StopAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if server.err != nil {
		t.Errorf("the API server ended with %v, so it was killed", server.err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Errorf("the watch ended with an error: %v", err)
	}
}

// A user may do only what RBAC allows.
func TestUserKubeconfig(t *testing.T) {
	c := startTest(t, Options{})
	path, err := c.UserKubeconfig("jane doe/ops", "team-a")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, c.Kubeconfig()} {
		if fi, err := os.Stat(p); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want mode 0600", p, fi, err)
		}
	}
	_, err = c.Kubectl(t.Context(), "--kubeconfig", path, "get", "configmaps")
	if err == nil || !strings.Contains(err.Error(), "Forbidden") || !strings.Contains(err.Error(), "jane doe/ops") {
		t.Errorf("a user without rights: %v", err)
	}
	kubectl(t, c, "create", "role", "reader", "--verb=get,list", "--resource=configmaps")
	kubectl(t, c, "create", "rolebinding", "readers", "--role=reader", "--group=team-a")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := poll(ctx, 100*time.Millisecond, func(context.Context) (bool, error) { // the authorizer learns of it by a watch
		_, err = c.Kubectl(ctx, "--kubeconfig", path, "get", "configmaps")
		return err == nil, nil
	}); err != nil {
		t.Error(err)
	}
	if who := kubectl(t, c, "--kubeconfig", path, "auth", "whoami", "-o", "jsonpath={.status.userInfo.groups}"); !strings.Contains(who, "team-a") {
		t.Errorf("the user's groups are %s", who)
	}
	// A client without the authority does not trust the server's certificate.
	if out, err := c.Kubectl(t.Context(), "--kubeconfig", "/dev/null", "--server", c.URL(), "get", "configmaps"); err == nil {
		t.Errorf("an unknown authority was trusted: %s", out)
	}
	// A pod needs the namespace's service account, and no controller creates it.
	kubectl(t, c, "run", "p", "--image=nginx")
}

// A failed start explains why and leaves no process.
func TestStartFails(t *testing.T) {
	dir := t.TempDir()
	_, err := Start(t.Context(), Options{Dir: dir, APIServerArgs: []string{"--no-such-flag"}})
	if err == nil || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("the error lacks the log: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled start: %v", err)
	}
	// The folder of a failed start can be used again.
	startTest(t, Options{Dir: dir})
}

// A killed parent leaves no process, although it cannot clean up.
func TestDeathOfParent(t *testing.T) {
	if !diesWithParent {
		t.Log("this system cannot do that; see the package's documentation")
		return
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(2*readyLimit, func() { _ = cmd.Process.Kill() })
	defer stuck.Stop()
	line, _ := bufio.NewReader(stdout).ReadBytes('\n')
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, as intended
	var ids []int
	if err := json.Unmarshal(line, &ids); err != nil || len(ids) != 2 {
		t.Fatalf("helper printed %q, %v:\n%s", line, err, stderr.String())
	}
	waitGone(t, ids)
}
