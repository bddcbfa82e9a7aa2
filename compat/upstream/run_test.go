package upstream

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// result is what a run of a suite has shown.
type result struct {
	failed bool
	output string
	// passed and skipped are tests without their subtests. constructed are the tests, or specs,
	// that have made an informer or an indexer of ours.
	passed, skipped, constructed []string
}

// logEnv names the file that the files of ours append a line to for each informer or indexer of ours: the test
// that has made it.
const logEnv = "TATTLER_UPSTREAM_LOG"

// faultEnv, if "deaf", keeps events from the handlers of our informers.
const faultEnv = "TATTLER_UPSTREAM_FAULT"

// allEnv, if set, has everything run: `make soak` sets it.
const allEnv = "TATTLER_COMPAT_ALL"

// run runs the tests of a package. It interrupts them before the test that runs them times out, so that they can
// stop the processes that they have started.
func run(t *testing.T, program, dir string, env []string, args ...string) result {
	t.Helper()
	ctx := t.Context()
	if deadline, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-time.Minute))
		defer cancel()
	}
	log := filepath.Join(t.TempDir(), "constructed")
	cmd := exec.CommandContext(ctx, program, append([]string{"-test.v"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), logEnv+"="+log), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 30 * time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok || ctx.Err() != nil {
		t.Fatalf("run %v: %v\n%s", args, errors.Join(err, ctx.Err()), tail(output.String()))
	}
	r := result{failed: err != nil, output: output.String()}
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
		t.Fatal(err)
	}
	r.constructed = strings.Split(strings.TrimSpace(string(lines)), "\n")
	slices.Sort(r.constructed)
	r.constructed = slices.Compact(r.constructed)
	r.constructed = slices.DeleteFunc(r.constructed, func(name string) bool { return name == "" })
	return r
}

// outcome matches the line of a test, not of its subtests. A test that writes without a newline may have put its
// own text before it.
var outcome = regexp.MustCompile(`(?m)^.*--- (PASS|FAIL|SKIP): ((?:Test|Example)[^/\s]*) \(`)

// tail returns the lines of a failure, or the last ones.
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
