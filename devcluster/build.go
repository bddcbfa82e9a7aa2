package devcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const modulePath = "github.com/tattler-dev/tattler/devcluster"

// goBuild builds p with go build. Tests of the cache replace it.
func goBuild(ctx context.Context, p program, dest string, out io.Writer) error {
	src, err := sourceDir(ctx)
	if err != nil {
		return err
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("find go command: %w", err)
	}
	cmd := exec.CommandContext(ctx, goTool, "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w"+p.ldflags, "-o", dest, p.pkg)
	cmd.Dir = filepath.Join(src, "build", p.module)
	cmd.Env = goEnv()
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	// The compilers are children of go: kill the whole group.
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	cmd.WaitDelay = 5 * time.Second
	done, err := startProcess(cmd, false)
	if err != nil {
		return fmt.Errorf("run go build: %w", err)
	}
	start, tick := time.Now(), time.NewTicker(30*time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return buildError(ctx, err, output.String())
		case <-tick.C:
			fmt.Fprintf(out, "devcluster: still building %s (%.0f s)\n", p.name, time.Since(start).Seconds())
		}
	}
}

// goEnv is the environment of go commands: the user's proxies, caches and
// toolchain, without the variables that would change the result. GOFLAGS is set
// to its default, not to "": an empty variable yields to `go env -w`.
func goEnv() []string {
	return append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "GO111MODULE=on", "CGO_ENABLED=0",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
}

// buildError makes the error of a build from its output. It returns nil if err is nil.
func buildError(ctx context.Context, err error, output string) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("run go build: %w", context.Cause(ctx))
	}
	hint := ""
	switch {
	case strings.Contains(output, "signal: killed"):
		hint = "\n(a compiler or linker was killed: most likely memory ran out; the largest needs about 2 GB)"
	case strings.Contains(output, "no space left on device"):
		hint = "\n(the disk is full: Go's caches and temporary folder need about 6 GB)"
	case strings.Contains(output, "toolchain not available"), strings.Contains(output, "requires go >="):
		hint = "\n(the go command is too old and may not fetch a newer one)"
	}
	return fmt.Errorf("run go build: %w\n%s%s", err, lastLines(output, 25), hint)
}

// sourceDir finds this module's folder, which contains the modules to build. It
// uses the path of this file that the compiler recorded. Under -trimpath it asks
// go in the current folder, which works in any module of this repository that
// requires and replaces this one.
func sourceDir(ctx context.Context) (string, error) {
	ok := func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "build", "kubernetes", "go.mod"))
		return err == nil
	}
	if _, file, _, known := runtime.Caller(0); known && filepath.IsAbs(file) {
		if dir := filepath.Dir(file); ok(dir) {
			return dir, nil
		}
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", modulePath)
	cmd.Env = goEnv()
	stdout, err := cmd.Output()
	if err != nil {
		detail := ""
		if ee, is := errors.AsType[*exec.ExitError](err); is {
			detail = "\n" + lastLines(string(ee.Stderr), 5)
		}
		return "", fmt.Errorf("find source of devcluster: %w%s", err, detail)
	}
	dir := strings.TrimSpace(string(stdout))
	if !ok(dir) {
		return "", fmt.Errorf("find source of devcluster: %q has no build folder; run this inside a checkout of the repository", dir)
	}
	return dir, nil
}

// lastLines returns the end of text: at most n lines, without trailing space.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n "), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
