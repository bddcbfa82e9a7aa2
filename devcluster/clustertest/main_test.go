package clustertest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tattler-dev/tattler/devcluster"
)

// idleEnv turns the test binary into a program that ends when its standard input does.
const idleEnv = "CLUSTERTEST_IDLE"

func TestMain(m *testing.M) {
	if os.Getenv(idleEnv) != "" {
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	goleak.VerifyTestMain(m)
}

// tests stands for a package's tests.
type tests func() int

func (f tests) Run() int { return f() }

// idle starts a child process. It ends with the test, or when the returned function is called.
func idle(t *testing.T) (cmd *exec.Cmd, end func()) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), idleEnv+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = func() {
		stdin.Close()
		_ = cmd.Wait()
	}
	t.Cleanup(end)
	return cmd, end
}

// gone reports whether no server answers at a URL.
func gone(t *testing.T, url string) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err == nil {
		resp.Body.Close()
	}
	return err != nil
}

// TestRun runs tests that pass, fail or leave something behind, and a Begin that fails.
func TestRun(t *testing.T) {
	refused := errors.New("refused")
	hold := make(chan struct{})
	held := func() { <-hold }
	for _, tc := range []struct {
		name  string
		begin error
		tests func(*testing.T) int
		code  int
		err   string
		leaks []string
		after func() // ends what the tests left
	}{
		{name: "they pass", tests: func(*testing.T) int { return 0 }},
		{name: "they fail, and what they leave is no news", tests: func(t *testing.T) int { idle(t); return 3 }, code: 3},
		{name: "nothing is run where Begin fails", begin: refused, err: "refused"},
		{name: "a goroutine is left", tests: func(*testing.T) int { go held(); return 0 }, err: "left goroutines"},
		{
			name: "one of others", tests: func(*testing.T) int { go held(); return 0 },
			leaks: []string{"github.com/tattler-dev/tattler/devcluster/clustertest.TestRun.func1"}, after: func() { close(hold) },
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			url, ran, end := "", false, endLimit
			if tc.err != "" {
				end = time.Second // what remains, remains
			}
			code, err := run(tests(func() int {
				ran = true
				if gone(t, url) {
					t.Error("the API server does not answer while the tests run")
				}
				return tc.tests(t)
			}), Options{
				Cluster:      devcluster.Options{Out: t.Output()},
				PodsAnywhere: true,
				Leaks:        tc.leaks,
				end:          end,
				Begin: func(ctx context.Context, c *devcluster.Cluster) error {
					url = c.EtcdURL() + "/version"
					_, err := c.Kubectl(ctx, "run", "p", "--image=none", "--namespace=kube-public")
					return errors.Join(err, tc.begin)
				},
			})
			if tc.after != nil {
				tc.after()
			}
			if code != tc.code || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %d, %v; want %d, %q", code, err, tc.code, tc.err)
			}
			if ran != (tc.tests != nil) {
				t.Errorf("the tests ran: %t", ran)
			}
			if !gone(t, url) {
				t.Error("etcd is still there")
			}
		})
	}
}

// TestFails: if the control plane cannot start, Main returns an exit code and runs no test.
func TestFails(t *testing.T) {
	t.Setenv("CLUSTERTEST_SIZE", "many")
	size := uint64(1)
	never := tests(func() int { t.Error("the tests ran"); return 0 })
	if code := Main(never, Options{Numbers: map[string]*uint64{"CLUSTERTEST_SIZE": &size}}); code != 1 {
		t.Errorf("the exit code is %d", code)
	}
	_, err := run(never, Options{Cluster: devcluster.Options{APIServerArgs: []string{"--no-such-flag"}}})
	if err == nil || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("the error is %v", err)
	}
}

// TestPrepare: the environment overrides a number; a variable that is not set leaves the default.
func TestPrepare(t *testing.T) {
	t.Setenv("CLUSTERTEST_SIZE", "20000")
	t.Setenv("CLUSTERTEST_SEED", "")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "")
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "")
	size, seed := uint64(1), uint64(2)
	args := append(make([]string, 0, 8), "--a")
	o := Options{
		Cluster:      devcluster.Options{APIServerArgs: args},
		PodsAnywhere: true, FastPings: true,
		Numbers: map[string]*uint64{"CLUSTERTEST_SIZE": &size, "CLUSTERTEST_SEED": &seed},
	}
	if err := o.prepare(); err != nil {
		t.Fatal(err)
	}
	if size != 20000 || seed != 2 {
		t.Errorf("the numbers are %d and %d", size, seed)
	}
	if os.Getenv("HTTP2_PING_TIMEOUT_SECONDS") != "2" || os.Getenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS") != "2" {
		t.Error("pings are slow")
	}
	if want := []string{"--a", "--disable-admission-plugins=ServiceAccount"}; !slices.Equal(o.Cluster.APIServerArgs, want) || args[:2][1] != "" {
		t.Errorf("the API server gets %q", o.Cluster.APIServerArgs)
	}
}

// TestPoll: the first call is immediate; the error contains the last error.
func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, calls := time.Now(), 0
		if err := Poll(t.Context(), time.Second, func() error {
			if calls++; calls < 3 {
				return errors.New("not yet")
			}
			return nil
		}); err != nil || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		late, wrong := errors.New("late"), errors.New("wrong")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, late)
		defer cancel()
		if err := Poll(ctx, time.Second, func() error { return wrong }); !errors.Is(err, late) || !errors.Is(err, wrong) {
			t.Errorf("the error is %v", err)
		}
	})
}
