package cli

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/leaktest"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

// asCommand is the variable that makes the test's binary run the command.
const asCommand = "TATTLER_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(Main(kinds.Tattler()))
	}
	leaktest.Main(m)
}

// command prepares a process of the command.
func command(t *testing.T, args ...string) (cmd *exec.Cmd, out, stderr *bytes.Buffer) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "GORACE=atexit_sleep_ms=0") // otherwise each takes a second to end
	out, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, stderr
	return cmd, out, stderr
}

// exitCode returns the exit code of a process, and -1 after a signal.
func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit == nil {
		return 0
	}
	return exit.ExitCode()
}

// TestInterrupt: Ctrl-C while the server does not answer ends the command at once, and is not a failure.
func TestInterrupt(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		asked, done := make(chan struct{}, 8), make(chan struct{})
		address := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			asked <- struct{}{}
			select {
			case <-r.Context().Done():
			case <-done:
			}
		})
		t.Cleanup(func() { close(done) })
		cmd, out, stderr := command(t, "watch", "--kubeconfig", kubeconfig(t, address))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-asked
		start := time.Now()
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if code := exitCode(t, cmd.Wait()); code != exitDone || out.Len()+stderr.Len() > 0 {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q", sig, code, out, stderr)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%v: ended after %s", sig, took)
		}
	}
}

// TestStderrIsOurs: client-go's logs do not reach stderr. It logs errors that it also returns, for example about a response
// that breaks off after redirects.
func TestStderrIsOurs(t *testing.T) {
	address := serve(t, http.RedirectHandler("/login", http.StatusFound).ServeHTTP)
	cmd, out, stderr := command(t, "watch", "--kubeconfig", kubeconfig(t, address))
	if code := exitCode(t, cmd.Run()); code != exitFailed || out.Len() > 0 {
		t.Errorf("exit code %d, stdout %q", code, out)
	}
	if got := stderr.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "tattler: ") {
		t.Errorf("stderr %q", got)
	}
}

// TestStdout: a full disk is a failure; a reader that closes the pipe is not.
func TestStdout(t *testing.T) {
	r, gone, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	r.Close()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	config := kubeconfig(t, cluster(t))
	for _, args := range [][]string{
		{"version"},
		{"watch", "cm", "--kubeconfig", config, "--initial"},
		{"watch", "cm", "--kubeconfig", config, "--initial", "-o", "json"},
	} {
		cmd, _, stderr := command(t, args...)
		cmd.Stdout = full
		code := exitCode(t, cmd.Run())
		if want := "tattler: write /dev/stdout: no space left on device\n"; code != exitFailed || !strings.HasSuffix(stderr.String(), want) {
			t.Errorf("%q, full: exit code %d, stderr %q", args, code, stderr)
		}

		cmd, _, stderr = command(t, args...)
		cmd.Stdout = gone
		if code := exitCode(t, cmd.Run()); code != exitDone || strings.Contains(stderr.String(), "tattler: ") {
			t.Errorf("%q, gone: exit code %d, stderr %q", args, code, stderr)
		}
	}
	cmd, _, _ := command(t, "nope")
	cmd.Stderr = gone
	if code := exitCode(t, cmd.Run()); code != exitUsage {
		t.Errorf("nobody reads stderr: exit code %d", code)
	}
}
