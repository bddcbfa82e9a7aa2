// Package gate runs the steps of `make test`, prints how long each took, and judges failed tests.
//
// The tests of a module run through gotestsum, which prints a line for each package, and all output of failures. A test
// that fails is run again alone, up to twice. If it passes then, it is flaky: the run goes on, and a list at the end shows
// the test with its failing output. If it fails in both, the run fails. So it does when more than five tests failed.
//
// Only failures of tests are judged like that. Everything else ends the run at once: a build that fails, a panic, a
// timeout, a leak that TestMain found, a data race outside of the tests. This is why gotestsum's own -rerun-fails is not
// used: it repeats a package that failed without a failed test by running no test of it, and accepts the result.
//
// A step that fails ends the run. The lists at the end are printed in any case.
package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	attempts = 2 // how often a failed test is run again
	maxAgain = 5 // how many tests of a whole run are run again
)

// Step is a part of a run: commands, then the tests of a module.
type Step struct {
	Name     string
	Dir      string     // where all of it runs, relative to Options.Root
	Commands [][]string // run in order
	Packages string     // patterns of packages to test, separated by spaces; empty: no tests
	Flags    []string   // of go test
}

// Options say where a run takes place.
type Options struct {
	Root      string    // the repository
	Gotestsum string    // the program
	Reports   string    // a directory for the events of each `go test` and the output of flaky tests; it is emptied first
	Out       io.Writer // for the output of all steps, and the lists at the end
}

// gate is a run. Everything in it grows from step to step.
type gate struct {
	Options
	times    []stepTime
	packages []*pkg // those of the first run of each step's tests
	again    int    // how many tests were run again
	flaky    []flaky
}

// Run runs steps one after the other. It returns the error of the first one that fails, after it printed the lists.
func Run(ctx context.Context, o Options, steps []Step) error {
	if err := os.RemoveAll(o.Reports); err != nil {
		return fmt.Errorf("remove the reports of the last run: %w", err)
	}
	if err := os.MkdirAll(o.Reports, 0o755); err != nil {
		return fmt.Errorf("make a directory for reports: %w", err)
	}
	g := &gate{Options: o}
	var failure error
	for _, s := range steps {
		if failure != nil {
			g.times = append(g.times, stepTime{s.Name, 0, "not run"})
			continue
		}
		g.say("%s", s.Name)
		begin := time.Now()
		result := "passed"
		if err := g.step(ctx, s); err != nil {
			failure, result = fmt.Errorf("%s: %w", s.Name, err), "failed"
		}
		t := stepTime{s.Name, time.Since(begin), result}
		g.times = append(g.times, t)
		g.say("%s %s in %s", t.name, t.result, short(t.took))
	}
	g.summarize()
	return failure
}

func (g *gate) step(ctx context.Context, s Step) error {
	for _, c := range s.Commands {
		if err := g.command(ctx, s, c); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(c, " "), err)
		}
	}
	if s.Packages == "" {
		return nil
	}
	return g.runTests(ctx, s)
}

// command runs a command in the directory of a step. If the context ends, the command and its children are interrupted.
func (g *gate) command(ctx context.Context, s Step, args []string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = filepath.Join(g.Root, s.Dir)
	cmd.Stdout, cmd.Stderr = g.Out, g.Out
	if strings.Contains(strings.Join(s.Flags, " "), "-race") {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	}
	// A group of its own gets one interrupt, not a second one from the terminal, after which gotestsum would not wait.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = time.Minute
	err := cmd.Run()
	if ctx.Err() != nil {
		return errors.Join(errors.New("interrupted"), err)
	}
	return err
}

// say prints a line of the gate's own.
func (g *gate) say(format string, args ...any) {
	fmt.Fprintf(g.Out, "gate: "+format+"\n", args...)
}
