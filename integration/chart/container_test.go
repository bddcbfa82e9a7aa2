package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// podEnv makes the test's binary become a container, in place of running tests.
const podEnv = "TATTLER_CHART_POD"

// container is a process with a root, mounts and a user, as a container runtime starts it. Without the right to mount, it
// is a plain process, with the same arguments and environment but for paths, which are prefixed with the root's.
type container struct {
	Root        string
	Mounts      []mount
	ReadOnly    bool // the root
	User, Group int
	Groups      []int
	Path        string
	Args, Env   []string
	kubeconfig  string // for a plain process, which has no files of a ServiceAccount
}

type mount struct {
	Source, Target string
	ReadOnly       bool
}

// isolated reports whether this process may mount and change its root.
func isolated() bool { return runtime.GOOS == "linux" && os.Geteuid() == 0 && mayMount() }

// command returns the container's process.
func (c *container) command(t *testing.T) *exec.Cmd {
	t.Helper()
	if !isolated() {
		t.Log("this process may not mount: the container is a plain process")
		return c.plain(t)
	}
	for _, m := range c.Mounts {
		if err := os.MkdirAll(filepath.Join(c.Root, m.Target), 0o755); err != nil { //nolint:gosec // as a runtime makes it
			t.Fatal(err)
		}
	}
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = []string{podEnv + "=" + string(b)}
	return cmd
}

// plain copies the mounts' sources into the root, and rewrites paths.
func (c *container) plain(t *testing.T) *exec.Cmd {
	t.Helper()
	rewrite := func(s string) string {
		for _, m := range c.Mounts {
			s = strings.ReplaceAll(s, m.Target, m.Source)
		}
		return s
	}
	env := append(slices.Clone(c.Env), "SSL_CERT_FILE="+c.Root+"/etc/ssl/certs/ca-certificates.crt", "KUBECONFIG="+c.kubeconfig)
	var args []string
	for _, a := range c.Args {
		args = append(args, rewrite(a))
	}
	for i := range env {
		env[i] = rewrite(env[i])
	}
	for _, m := range c.Mounts { // the configuration names them
		file := filepath.Join(m.Source, "config.yaml")
		if b, err := os.ReadFile(file); err == nil {
			if err := os.WriteFile(file, []byte(rewrite(string(b))), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(c.Root, c.Path), args...)
	cmd.Env = env
	return cmd
}

// becomePod replaces this process by the container that the environment describes. It returns only on an error.
func becomePod() int {
	var c container
	err := json.Unmarshal([]byte(os.Getenv(podEnv)), &c)
	if err == nil {
		err = c.become()
	}
	fmt.Fprintln(os.Stderr, "start the container:", err)
	return 1
}
