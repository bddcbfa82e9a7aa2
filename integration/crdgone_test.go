package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// crds applies manifests, and runs daemons that record the kinds of things.example.com.
type crds struct {
	*testing.T
	ctx       context.Context
	dir, path string
}

func newCRDs(t *testing.T, plural string) *crds {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	dir := t.TempDir()
	c := &crds{t, ctx, dir, filepath.Join(dir, "journal.db")}
	t.Cleanup(func() {
		_, _ = cluster.Kubectl(context.WithoutCancel(ctx), "delete", "crd", plural+".things.example.com", "--ignore-not-found")
	})
	return c
}

// crd is the CRD of a plural, with a list of parts that has keys if keyed is set.
func (c *crds) crd(plural, kind string, keyed bool) string {
	list := ""
	if keyed {
		list = `"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["id"],`
	}
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]s.things.example.com"},
"spec":{"group":"things.example.com","scope":"Namespaced","names":{"plural":%[1]q,"kind":%[2]q},"versions":[{"name":"v1","served":true,"storage":true,
"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"parts":{"type":"array",%[3]s"items":{"type":"object",
"required":["id"],"properties":{"id":{"type":"string"},"n":{"type":"integer"}}}}}}}}}}]}}`, plural, kind, list)
}

func (c *crds) apply(text string) {
	c.Helper()
	file := filepath.Join(c.dir, "applied.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
	c.kubectl("apply", "-f", file)
}

func (c *crds) kubectl(args ...string) {
	c.Helper()
	if out, err := cluster.Kubectl(c.ctx, args...); err != nil {
		c.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func (c *crds) object(kind, name string, n int) {
	c.Helper()
	c.apply(fmt.Sprintf(`{"apiVersion":"things.example.com/v1","kind":%q,"metadata":{"name":%q,"namespace":"default"},
"spec":{"parts":[{"id":"a","n":%d},{"id":"b","n":1}]}}`, kind, name, n))
}

// run starts a daemon and waits until it records.
func (c *crds) run(args ...string) *process {
	c.Helper()
	d := start(c.T, cluster, append([]string{"run", "--journal", c.path}, args...)...)
	d.wait(c.T, d.err, "msg=recording")
	return d
}

// tattler returns the output of a command that reads the journal.
func (c *crds) tattler(args ...string) string {
	c.Helper()
	cmd := exec.CommandContext(c.ctx, tattler(c.T), append(args, "--journal", c.path)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(), "TZ=UTC")
	out, _ := cmd.CombinedOutput() // exit code 1 may mean that there is nothing
	return string(out)
}

// until waits until a command's output contains a text, and returns it.
func (c *crds) until(text string, args ...string) string {
	c.Helper()
	for began := time.Now(); ; pause() {
		out := c.tattler(args...)
		if strings.Contains(out, text) {
			return out
		}
		if time.Since(began) > patience {
			c.Fatalf("tattler %s has no %q after %v:\n%s", strings.Join(args, " "), text, patience, out)
		}
	}
}

// TestCRDGoesWhileNoDaemonRuns: the custom resources went with it, and are recorded as deleted.
func TestCRDGoesWhileNoDaemonRuns(t *testing.T) {
	c := newCRDs(t, "gizmos")
	c.apply(c.crd("gizmos", "Gizmo", false))
	awaitKind(t, cluster, "gizmos.things.example.com")
	c.object("Gizmo", "one", 1)
	c.object("Gizmo", "two", 1)
	scope := []string{"gizmos.things.example.com,configmaps", "-n", "default"}
	d := c.run(scope...)
	c.until("two", "get", "gizmos", "-n", "default")
	d.interrupt(t)
	c.kubectl("delete", "crd", "gizmos.things.example.com")
	d = c.run(scope...)
	c.until("gizmo/one", "log", "gizmos", "--op", "deleted")
	c.until("gizmo/two", "log", "gizmos", "--op", "deleted")
	if out := c.tattler("get", "gizmos", "-n", "default"); strings.Contains(out, "two") {
		t.Errorf("get lists\n%s", out)
	}
	if out := c.tattler("status"); strings.Contains(out, "gizmos") {
		t.Errorf("status has\n%s", out)
	}
	d.interrupt(t)
	d = c.run(scope...) // named, and known from the journal
	c.apply(c.crd("gizmos", "Gizmo", false))
	awaitKind(t, cluster, "gizmos.things.example.com")
	c.object("Gizmo", "three", 1)
	c.until("three", "log", "gizmos", "--since", "1h")
	d.interrupt(t)
}
