package devcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// helperEnv turns the test binary into a program that starts a cluster, prints the
// ids of its processes, and waits to be killed; see TestDeathOfParent.
const helperEnv = "DEVCLUSTER_TEST_HELPER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperEnv); dir != "" {
		os.Exit(helper(dir))
	}
	goleak.VerifyTestMain(settled{m})
}

// settled waits after passing tests until ended goroutines of libraries are gone, which goleak does not on a busy machine.
type settled struct{ m *testing.M }

func (s settled) Run() int {
	code := s.m.Run()
	if code == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = poll(ctx, 50*time.Millisecond, func(context.Context) (bool, error) { return goleak.Find() == nil, nil }) // the caller reports them
	}
	return code
}

func helper(dir string) int {
	c, err := Start(context.Background(), Options{Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_ = json.NewEncoder(os.Stdout).Encode(pids(c))
	select {} // killed by the test
}

// programNames are the programs that a cluster can run.
var programNames = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}

// pids are the ids of a cluster's running processes.
func pids(c *Cluster) []int {
	var ids []int
	for _, name := range programNames {
		if pid := c.PID(name); pid != 0 {
			ids = append(ids, pid)
		}
	}
	return ids
}

// waitGone waits until all the processes have ended.
func waitGone(t *testing.T, ids []int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, pid := range ids {
		if err := poll(ctx, 20*time.Millisecond, func(context.Context) (bool, error) { return identify(pid) == "", nil }); err != nil {
			t.Errorf("process %d is still there: %s", pid, identify(pid))
		}
	}
}

// startTest starts a cluster that ends with the test.
func startTest(t *testing.T, o Options) *Cluster {
	t.Helper()
	o.Out = testWriter{t}
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// testWriter sends progress to the test's log.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", p)
	return len(p), nil
}
