package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/devcluster"
)

// command runs the built command and returns its exit status and output.
func command(t *testing.T, bin string, args ...string) (int, string, string) {
	t.Helper()
	cmd := exec.Command(bin, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	t.Logf("devcluster %s: status %d\n%s%s", strings.Join(args, " "), cmd.ProcessState.ExitCode(), &stdout, &stderr)
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// build builds the command and the cluster's programs, so that the tests measure starts only.
func build(t *testing.T) string {
	t.Helper()
	if _, err := devcluster.EnsureBinaries(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "devcluster")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// pids reads the ids of the cluster's processes by name, also during a start.
func pids(dir string) map[string]int {
	data, err := os.ReadFile(filepath.Join(dir, "state.json"))
	if err != nil {
		return nil
	}
	var s struct {
		Processes []struct {
			Name string
			PID  int
		}
	}
	if json.Unmarshal(data, &s) != nil {
		return nil
	}
	ids := map[string]int{}
	for _, p := range s.Processes {
		ids[p.Name] = p.PID
	}
	return ids
}

// gone fails the test if one of the processes is left. They are not our children:
// init may need a moment to reap them.
func gone(t *testing.T, ids map[string]int) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for name, pid := range ids {
		for deadline := time.Now().Add(time.Minute); syscall.Kill(pid, 0) == nil; <-tick.C {
			if time.Now().After(deadline) {
				t.Errorf("%s, process %d, is left", name, pid)
				break
			}
		}
	}
}

func TestUpDown(t *testing.T) {
	bin := build(t)
	// The user's own kubeconfig is not touched.
	own := filepath.Join(t.TempDir(), "own-config")
	if err := os.WriteFile(own, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", own)
	dir := filepath.Join(t.TempDir(), "a dir", ".devcluster") // a space, for the quotes
	t.Cleanup(func() { _ = devcluster.Down(context.Background(), dir, os.Stderr) })

	code, stdout, _ := command(t, bin, "up", "--dir", dir)
	if code != 0 || !strings.Contains(stdout, "export KUBECONFIG='"+dir+"/kubeconfig'") || !strings.Contains(stdout, "make cluster-down") {
		t.Fatalf("up: status %d, printed %s", code, stdout)
	}
	first := pids(dir)
	if len(first) != 5 {
		t.Fatalf("processes: %v", first)
	}
	code, stdout, _ = command(t, bin, "up", "--dir", dir)
	if code != 0 || !strings.Contains(stdout, "already running") || !strings.Contains(stdout, "export KUBECONFIG=") {
		t.Errorf("second up: status %d, printed %s", code, stdout)
	}
	if code, _, _ := command(t, bin, "status", "--dir", dir); code != 0 {
		t.Errorf("status: %d", code)
	}

	b, err := devcluster.EnsureBinaries(t.Context(), nil, "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	kubectl := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(b.Path("kubectl"), append([]string{"--kubeconfig", filepath.Join(dir, "kubeconfig")}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if got := kubectl("config", "current-context"); got != "tattler-dev\n" {
		t.Errorf("context is %q", got)
	}
	kubectl("create", "configmap", "kept")

	// After a component died, up starts the cluster again, with its objects.
	if err := syscall.Kill(first["etcd"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gone(t, map[string]int{"etcd": first["etcd"]})
	if code, stdout, _ := command(t, bin, "status", "--dir", dir); code != 1 || !strings.Contains(stdout, "not whole") {
		t.Errorf("status without etcd: %d, printed %s", code, stdout)
	}
	if code, _, _ := command(t, bin, "up", "--dir", dir); code != 0 {
		t.Fatalf("up after a death: status %d", code)
	}
	gone(t, first)
	kubectl("get", "configmap", "kept")

	second := pids(dir)
	for range 2 { // the second down is not an error
		if code, _, _ := command(t, bin, "down", "--dir", dir); code != 0 {
			t.Errorf("down: status %d", code)
		}
	}
	gone(t, second)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("folder is left: %v", err)
	}
	if data, err := os.ReadFile(own); err != nil || string(data) != "mine" {
		t.Errorf("the user's kubeconfig is %q, %v", data, err)
	}
}

// Ctrl-C during the start leaves no process.
func TestInterruptedUp(t *testing.T) {
	bin := build(t)
	dir := filepath.Join(t.TempDir(), "dc")
	cmd := exec.Command(bin, "up", "--dir", dir)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var ids map[string]int
	for deadline := time.Now().Add(5 * time.Minute); ids["kube-apiserver"] == 0; <-tick.C {
		if ids = pids(dir); time.Now().After(deadline) {
			t.Fatal("no API server was started")
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("an interrupted up succeeded")
	}
	for name, pid := range pids(dir) {
		ids[name] = pid
	}
	gone(t, ids)
}

// Down must not remove a folder that is not a cluster's.
func TestForeignFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "thesis.txt")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"up", "down"} {
		var stderr bytes.Buffer
		if code := run(t.Context(), []string{verb, "--dir", dir}, &stderr, &stderr); code != 1 || !strings.Contains(stderr.String(), "not a cluster's") {
			t.Errorf("%s: status %d, %s", verb, code, &stderr)
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"frobnicate"}, {"up", "extra"}, {"down", "--no-such-flag"}} {
		var out bytes.Buffer
		if code := run(t.Context(), args, &out, &out); code != 2 || !strings.Contains(out.String(), "usage:") {
			t.Errorf("%q: status %d, %s", args, code, &out)
		}
	}
}
