package gate

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// runTests runs the tests of a step, and the failed ones again.
func (g *gate) runTests(ctx context.Context, s Step) error {
	packages, failure := g.goTest(ctx, s, fileName(s.Name), s.Packages, s.Flags...)
	g.packages = append(g.packages, packages...)
	if failure == nil {
		return nil
	}
	if err := judge(packages, failure); err != nil {
		return err
	}
	type test struct {
		pkg  *pkg
		name string
	}
	var failed []test
	for _, p := range packages {
		for _, t := range p.failed() {
			failed = append(failed, test{p, t})
		}
	}
	if g.again+len(failed) > maxAgain {
		return fmt.Errorf("%d tests failed. At most %d of all steps are run again, and %d were", len(failed), maxAgain, g.again)
	}
	g.again += len(failed)
	var errs []error
	for _, t := range failed {
		if ctx.Err() != nil {
			break
		}
		errs = append(errs, g.runAgain(ctx, s, t.pkg, t.name))
	}
	return errors.Join(append(errs, ctx.Err())...)
}

// goTest runs `go test` through gotestsum, and returns what it reported, also if it failed.
func (g *gate) goTest(ctx context.Context, s Step, report, packages string, flags ...string) ([]*pkg, error) {
	events := filepath.Join(g.Reports, report+".json")
	args := []string{
		g.Gotestsum, "--format=pkgname-and-test-fails", "--format-hide-empty-pkg", "--hide-summary=skipped",
		"--jsonfile=" + events, "--packages=" + packages, "--",
	}
	failure := g.command(ctx, s, append(args, flags...))
	read, err := readEvents(events)
	if err != nil {
		return nil, errors.Join(failure, err)
	}
	for _, p := range read {
		if p.result == "fail" && len(p.failed()) > 0 { // gotestsum prints this only if no test failed
			fmt.Fprintf(g.Out, "\n=== %s, outside of its tests\n%s\n", p.name, strings.Join(p.output, ""))
		}
	}
	return read, failure
}

// judge returns an error if a run of `go test` failed for other reasons than failed tests.
func judge(packages []*pkg, failure error) error {
	var exit *exec.ExitError
	if !errors.As(failure, &exit) || exit.ExitCode() != 1 {
		return failure // go test was interrupted or killed, or could not begin
	}
	failed := 0
	for _, p := range packages {
		if p.result == "pass" || p.result == "skip" {
			continue
		}
		failed++
		if why := p.otherFailure(); why != "" {
			return fmt.Errorf("%s %s", p.name, why)
		}
	}
	if failed == 0 {
		return fmt.Errorf("go test failed, but no package: %w", failure)
	}
	return nil
}

// runAgain runs a failed test of a package alone, until it passes, at most twice.
func (g *gate) runAgain(ctx context.Context, s Step, p *pkg, test string) error {
	outputs := []string{p.outputOf(test)}
	for i := range attempts {
		g.say("%s of %s failed; running it again alone (%d of %d)", test, p.name, i+1, attempts)
		flags := slices.Concat(s.Flags, []string{"-count=1", "-run=^" + regexp.QuoteMeta(test) + "$"})
		report := fmt.Sprintf("%s-%s-again%d", fileName(p.name), test, i+1)
		packages, failure := g.goTest(ctx, s, report, p.name, flags...)
		now := find(packages, p.name)
		switch {
		case failure == nil && now.results[test] == "pass":
			return g.keep(p.name, test, outputs)
		case failure == nil:
			return fmt.Errorf("%s of %s failed, and did not run when it was run again alone", test, p.name)
		}
		if err := judge(packages, failure); err != nil {
			return fmt.Errorf("run %s again alone: %w", test, err)
		}
		outputs = append(outputs, now.outputOf(test))
	}
	return fmt.Errorf("%s of %s failed again in %d runs alone", test, p.name, attempts)
}

// find returns the package of a name. If there is none, it returns one without results.
func find(packages []*pkg, name string) *pkg {
	for _, p := range packages {
		if p.name == name {
			return p
		}
	}
	return &pkg{name: name}
}

// fileName makes a file's name of a step's or a package's.
func fileName(name string) string { return strings.NewReplacer("/", "_", " ", "_").Replace(name) }
