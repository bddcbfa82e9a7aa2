package gate

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// pkg is what one run of a package's tests reported. Tests are those at the top level: subtests count as part of them.
type pkg struct {
	name    string
	result  string // pass, fail, skip; empty if the run did not end
	elapsed time.Duration
	output  []string            // what was printed outside of the tests
	results map[string]string   // of each test that began: pass, fail, skip; empty if it did not end
	began   []string            // tests and subtests, in this order
	printed map[string][]string // by tests and subtests that did not pass
}

// readEvents reads a file of the events that `go test -json` printed. The packages are in the order in which they began.
func readEvents(file string) ([]*pkg, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []*pkg
	byName := map[string]*pkg{}
	for d := json.NewDecoder(bufio.NewReader(f)); ; {
		var e struct {
			Action, Package, Test, Output string
			Elapsed                       float64 // in seconds
		}
		switch err := d.Decode(&e); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", file, err)
		case e.Package == "":
			continue // output of a build
		}
		p := byName[e.Package]
		if p == nil {
			p = &pkg{name: e.Package, results: map[string]string{}, printed: map[string][]string{}}
			byName[e.Package], all = p, append(all, p)
		}
		if e.Test == "" {
			p.event(e.Action, e.Output, e.Elapsed)
		} else {
			p.testEvent(e.Action, e.Test, e.Output)
		}
	}
}

func (p *pkg) event(action, output string, elapsed float64) {
	switch action {
	case "output":
		p.output = append(p.output, output)
	case "pass", "fail", "skip":
		p.result, p.elapsed = action, time.Duration(elapsed*float64(time.Second))
	}
}

func (p *pkg) testEvent(action, test, output string) {
	isTop := !strings.Contains(test, "/")
	switch action {
	case "run":
		p.began = append(p.began, test)
		if isTop {
			p.results[test] = ""
		}
	case "output":
		if !progress.MatchString(output) {
			p.printed[test] = append(p.printed[test], output)
		}
	case "pass", "fail", "skip":
		if isTop {
			p.results[test] = action
		}
		if action != "fail" {
			delete(p.printed, test)
		}
	}
}

// progress matches lines of package testing that say which test runs.
var progress = regexp.MustCompile(`^=== (RUN|PAUSE|CONT|NAME) `)

// outputOf returns what a failed test and its failed subtests printed, after what its package printed outside of the
// tests, such as the seed of a shuffle.
func (p *pkg) outputOf(test string) string {
	out := slices.Clone(p.output)
	for _, t := range p.began {
		if t == test || strings.HasPrefix(t, test+"/") {
			out = append(out, p.printed[t]...)
		}
	}
	return strings.Join(out, "")
}

// failed returns the failed tests, sorted.
func (p *pkg) failed() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.results)), func(t string) bool { return p.results[t] != "fail" })
}

// otherFailure says what is wrong with a package that failed, other than its failed tests. It is empty if nothing is.
func (p *pkg) otherFailure() string {
	switch {
	case p.result == "":
		return "did not end"
	case len(p.failed()) == 0:
		return "failed without a failed test"
	}
	for _, t := range slices.Sorted(maps.Keys(p.results)) {
		if p.results[t] == "" {
			return t + " did not end"
		}
	}
	ended := false
	for _, line := range p.output {
		switch {
		case strings.HasPrefix(line, "WARNING: DATA RACE"):
			return "had a data race outside of its tests"
		case line == "FAIL\n": // from package testing, after the last test
			ended = true
		case ended && !strings.HasPrefix(line, "FAIL\t"+p.name): // from go test, at the end
			return "failed after its tests"
		}
	}
	if !ended {
		return "ended amid its tests"
	}
	return ""
}
