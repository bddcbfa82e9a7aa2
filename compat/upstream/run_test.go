package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// result is the result of a run of a suite.
type result struct {
	failed bool
	output string
	// passed and skipped are the names of tests, without subtests. constructed are the tests, or specs, that
	// constructed an informer or an indexer of ours.
	passed, skipped, constructed []string
	// cases is the number of tests and subtests that passed, informers the number of our informers and indexers.
	cases, informers int
}

// logEnv names a log file. The files of testdata append to it the name of the running test for each informer or indexer
// of ours.
const logEnv = "TATTLER_UPSTREAM_LOG"

// faultEnv, if "deaf", makes our informers drop notifications.
const faultEnv = "TATTLER_UPSTREAM_FAULT"

// allEnv, if set, selects the long runs, too. `make soak` sets it.
const allEnv = "TATTLER_COMPAT_ALL"

// run is runProgram with the test's context and folder. It fails the test if the program does not run.
func run(t *testing.T, program, dir string, env []string, args ...string) result {
	t.Helper()
	ctx, cancel := beforeTimeout(t)
	defer cancel()
	r, err := runProgram(ctx, t.TempDir(), program, dir, env, args...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// beforeTimeout returns a context that ends a minute before the running test times out, so that the programs can
// still stop the processes that they have started.
func beforeTimeout(t *testing.T) (context.Context, context.CancelFunc) {
	if deadline, ok := t.Deadline(); ok {
		return context.WithDeadline(t.Context(), deadline.Add(-time.Minute))
	}
	return context.WithCancel(t.Context())
}

// runProgram runs a test program in a package's directory. Failed tests are not an error. When ctx ends, it interrupts
// the program. On Linux, the program dies with this process.
func runProgram(ctx context.Context, temp, program, dir string, env []string, args ...string) (result, error) {
	log := filepath.Join(temp, filepath.Base(program)+".constructed")
	cmd := exec.CommandContext(ctx, program, append([]string{"-test.v"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), logEnv+"="+log), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 30 * time.Second
	cmd.SysProcAttr = diesWithThread()
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	runtime.LockOSThread() // for diesWithThread
	err := cmd.Run()
	runtime.UnlockOSThread()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok || ctx.Err() != nil {
		return result{}, fmt.Errorf("run %s %v: %w\n%s", filepath.Base(program), args, errors.Join(err, ctx.Err()), tail(output.String()))
	}
	r := result{failed: err != nil, output: output.String(), cases: strings.Count(output.String(), "--- PASS: ")}
	for _, found := range outcome.FindAllStringSubmatch(r.output, -1) {
		switch found[1] {
		case "PASS":
			r.passed = append(r.passed, found[2])
		case "SKIP":
			r.skipped = append(r.skipped, found[2])
		}
	}
	lines, err := os.ReadFile(log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return result{}, fmt.Errorf("read log of constructors: %w", err)
	}
	r.constructed = slices.Sorted(strings.FieldsFuncSeq(string(lines), func(c rune) bool { return c == '\n' }))
	r.informers = len(r.constructed)
	r.constructed = slices.Compact(r.constructed)
	return r, nil
}

// outcome matches the result line of a test, not of its subtests. Output of the test without a newline may precede it.
var outcome = regexp.MustCompile(`(?m)^.*--- (PASS|FAIL|SKIP): ((?:Test|Example|Fuzz)[^/\s]*) \(`)

// tail returns the output around the first failure, or its end.
func tail(output string) string {
	lines := strings.Split(output, "\n")
	if i := slices.IndexFunc(lines, func(line string) bool {
		return strings.Contains(line, "--- FAIL") || strings.HasPrefix(line, "panic:") || strings.Contains(line, "DATA RACE") || strings.Contains(line, "[FAILED]")
	}); i >= 0 {
		lines = lines[max(0, i-40):]
		return strings.Join(lines[:min(len(lines), 200)], "\n")
	}
	return strings.Join(lines[max(0, len(lines)-100):], "\n")
}
