package gate

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	slowest = 10 // how many packages are listed
	tail    = 40 // how many lines of a flaky test's output are printed; the file has all
)

type stepTime struct {
	name   string
	took   time.Duration
	result string
}

// flaky is a test that failed and then passed alone.
type flaky struct {
	pkg, test, file string
	output          string // of the first failure
}

// keep notes a flaky test, and writes what it printed each time it failed to a file.
func (g *gate) keep(pkg, test string, outputs []string) error {
	f := flaky{pkg, test, filepath.Join(g.Reports, "flaky", fileName(pkg)+"."+test+".txt"), outputs[0]}
	g.flaky = append(g.flaky, f)
	if err := os.MkdirAll(filepath.Dir(f.file), 0o755); err != nil {
		return fmt.Errorf("make a directory for the output of flaky tests: %w", err)
	}
	if err := os.WriteFile(f.file, []byte(strings.Join(outputs, "\n=== again, alone\n")), 0o644); err != nil {
		return fmt.Errorf("keep the output of a flaky test: %w", err)
	}
	return nil
}

// summarize prints the lists at the end of a run.
func (g *gate) summarize() {
	var all time.Duration
	fmt.Fprint(g.Out, "\nTIME PER STEP\n")
	for _, t := range g.times {
		all += t.took
		line := fmt.Sprintf("%8s  %s", short(t.took), t.name)
		if t.result != "passed" {
			line += " (" + t.result + ")"
		}
		fmt.Fprintln(g.Out, line)
	}
	fmt.Fprintf(g.Out, "%8s  in all\n", short(all))

	slices.SortStableFunc(g.packages, func(a, b *pkg) int { return cmp.Compare(b.elapsed, a.elapsed) })
	fmt.Fprint(g.Out, "\nSLOWEST PACKAGES\n")
	for _, p := range g.packages[:min(slowest, len(g.packages))] {
		fmt.Fprintf(g.Out, "%8s  %s\n", short(p.elapsed), p.name)
	}

	if len(g.flaky) > 0 {
		fmt.Fprint(g.Out, "\nFLAKY: these tests failed, and then passed alone. Each is a defect.\n")
	}
	for _, f := range g.flaky {
		fmt.Fprintf(g.Out, "\n--- %s of %s, all output in %s\n", f.test, f.pkg, f.file)
		lines := strings.SplitAfter(strings.TrimSuffix(f.output, "\n")+"\n", "\n")
		fmt.Fprint(g.Out, strings.Join(lines[max(0, len(lines)-tail-1):], ""))
	}
	fmt.Fprintln(g.Out)
}

// short formats a duration for people.
func short(d time.Duration) string {
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
