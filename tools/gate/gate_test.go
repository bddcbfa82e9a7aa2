package gate

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var gotestsum string // the program

func TestMain(m *testing.M) { os.Exit(withGotestsum(m)) }

func withGotestsum(m *testing.M) int {
	dir, err := os.MkdirTemp("", "gate")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	gotestsum = filepath.Join(dir, "gotestsum")
	if out, err := exec.CommandContext(context.Background(), "go", "build", "-o", gotestsum, "gotest.tools/gotestsum").CombinedOutput(); err != nil {
		panic(string(out))
	}
	return m.Run()
}

// Bodies of tests. A test that is flaky fails once for each of its names.
const (
	passes = `func Test%(t *testing.T) {}`
	fails  = `func Test%(t *testing.T) { t.Error("% is broken") }`
	flakes = `func Test%(t *testing.T) { if first("%") { t.Error("% was unlucky") } }`
	common = `
// first reports whether it is called with a name for the first time, in any process.
func first(name string) bool {
	f, err := os.OpenFile(filepath.Join(os.Getenv("STATE"), name), os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		f.Close()
	}
	return err == nil
}

// attempt returns how often it was called with a name, in all processes.
func attempt(name string) int {
	n := 1
	for !first(name + string(rune('0'+n))) {
		n++
	}
	return n
}
`
)

// test returns the source of a test with a name.
func test(body, name string) string { return strings.ReplaceAll(body, "%", name) }

// module writes a module whose packages have the given functions, and returns its directory.
func module(t *testing.T, packages map[string][]string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/m\n\ngo 1.26\n")
	for name, functions := range packages {
		imports := "import (\n\t\"fmt\"\n\t\"os\"\n\t\"path/filepath\"\n\t\"testing\"\n)\n\nvar _ = fmt.Sprint\n"
		write(name+"/a_test.go", "package "+name+"\n\n"+imports+common+strings.Join(functions, "\n\n")+"\n")
	}
	return dir
}

// outcome is what a run printed and returned.
type outcome struct {
	out     string
	err     error
	reports string
}

// run runs steps in the directory of modules.
func run(t *testing.T, root string, steps ...Step) outcome {
	t.Helper()
	t.Setenv("STATE", t.TempDir())
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	var out bytes.Buffer
	o := outcome{reports: filepath.Join(t.TempDir(), "reports")}
	o.err = Run(t.Context(), Options{Root: root, Gotestsum: gotestsum, Reports: o.reports, Out: &out}, steps)
	o.out = out.String()
	return o
}

func unit(dir string, flags ...string) Step {
	return Step{Name: "unit " + filepath.Base(dir), Dir: dir, Packages: "./...", Flags: append([]string{"-shuffle=on"}, flags...)}
}

// TestJudgement runs the tests of small modules.
func TestJudgement(t *testing.T) {
	main := func(after string) string {
		return "func TestMain(m *testing.M) {\n\tcode := m.Run()\n\t" + after + "\n\tos.Exit(code)\n}"
	}
	const race = `x, done := 0, make(chan bool); go func() { x++; done <- true }(); x++; <-done`
	for _, tc := range []struct {
		name     string
		packages map[string][]string
		flags    []string
		err      string   // in the error; empty: the run passes
		flaky    []string // in the last list
		again    int      // how many runs of single tests there are
		says     []string // in the output, before the lists
	}{
		{
			name:     "all pass",
			packages: map[string][]string{"a": {test(passes, "A")}, "b": {test(passes, "B")}},
		},
		{
			name:     "a flaky test",
			packages: map[string][]string{"a": {test(passes, "A")}, "b": {test(passes, "B"), test(flakes, "Flaky")}},
			flaky:    []string{"Flaky of example.com/m/b", "Flaky was unlucky"}, again: 1,
			says: []string{"Flaky was unlucky"},
		},
		{
			name:     "a test that passes at its third attempt",
			packages: map[string][]string{"a": {`func TestThird(t *testing.T) { if n := attempt("Third"); n < 3 { t.Error("attempt", n) } }`}},
			flaky:    []string{"TestThird of example.com/m/a", "attempt 1"}, again: 2,
		},
		{
			name:     "a broken test, and a flaky one",
			packages: map[string][]string{"a": {test(fails, "Broken"), test(flakes, "Flaky")}},
			err:      "TestBroken of example.com/m/a failed again in 2 runs alone",
			flaky:    []string{"TestFlaky of example.com/m/a"}, again: 3,
			says: []string{"Broken is broken"},
		},
		{
			name: "a flaky subtest among many",
			packages: map[string][]string{"a": {`func TestTable(t *testing.T) {
				for i := range 200 {
					t.Run(fmt.Sprint(i), func(t *testing.T) { if i%30 == 3 && first("Table") { t.Error(i, "was unlucky") } })
				}
			}`}},
			flaky: []string{"TestTable of example.com/m/a", "3 was unlucky"}, again: 1,
		},
		{
			name: "flaky subtests count as their test, which runs whole",
			packages: map[string][]string{"a": {`func TestTable(t *testing.T) {
				for i := range 7 {
					t.Run(fmt.Sprint(i), func(t *testing.T) { if first(fmt.Sprint("Table", i)) { t.Error(i, "was unlucky") } })
				}
			}`}},
			flaky: []string{"TestTable of example.com/m/a", "0 was unlucky", "6 was unlucky"}, again: 1,
		},
		{
			name: "a test that fails only after another one",
			packages: map[string][]string{"a": {
				"var ran bool", `func TestA(t *testing.T) { if ran { t.Error("B was first") }; ran = true }`,
				`func TestB(t *testing.T) { if ran { t.Error("A was first") }; ran = true }`,
			}},
			flaky: []string{"was first"}, again: 1,
		},
		{
			name:     "five flaky tests",
			packages: map[string][]string{"a": {test(flakes, "1"), test(flakes, "2"), test(flakes, "3")}, "b": {test(flakes, "4"), test(flakes, "5")}},
			flaky:    []string{"Test1 of", "Test2 of", "Test3 of", "Test4 of", "Test5 of"}, again: 5,
		},
		{
			name:     "six flaky tests",
			packages: map[string][]string{"a": {test(flakes, "1"), test(flakes, "2"), test(flakes, "3")}, "b": {test(flakes, "4"), test(flakes, "5"), test(flakes, "6")}},
			err:      "6 tests failed. At most 5 of all steps are run again",
		},
		{
			name:     "a test that is skipped when it runs again",
			packages: map[string][]string{"a": {`func TestA(t *testing.T) { if first("A") { t.Fatal("first") }; t.Skip() }`}},
			err:      "TestA of example.com/m/a failed, and did not run", again: 1,
		},
		{
			name:     "a panic",
			packages: map[string][]string{"a": {test(flakes, "Flaky"), `func TestA(t *testing.T) { if first("A") { panic("boom") } }`}},
			err:      "example.com/m/a ",
			says:     []string{"panic: boom"},
		},
		{
			name: "a panic of a goroutine",
			packages: map[string][]string{"a": {
				`func TestA(t *testing.T) { if first("A") { go func() { panic("boom") }(); select {} } }`,
			}, "b": {test(flakes, "Flaky")}},
			err:  "example.com/m/a failed without a failed test",
			says: []string{"panic: boom"},
		},
		{
			name:     "an exit amid the tests",
			packages: map[string][]string{"a": {test(flakes, "Flaky"), `func TestZ(t *testing.T) { if first("A") { os.Exit(1) } }`}},
			flags:    []string{"-shuffle=off"},
			err:      "example.com/m/a TestZ did not end",
		},
		{
			name:     "a panic when it runs again",
			packages: map[string][]string{"a": {`func TestA(t *testing.T) { if first("A") { t.Fatal("first") }; panic("boom") }`}},
			err:      "run TestA again alone: example.com/m/a ended amid its tests", again: 1,
		},
		{
			name:     "a leak that TestMain finds after passing tests",
			packages: map[string][]string{"a": {test(passes, "A"), main(`if first("leak") { fmt.Println("found a leak"); code = 1 }`)}, "b": {test(flakes, "Flaky")}},
			err:      "example.com/m/a failed without a failed test",
			says:     []string{"found a leak"},
		},
		{
			name:     "a leak that TestMain finds after a flaky test",
			packages: map[string][]string{"a": {test(flakes, "Flaky"), main(`if first("leak") { fmt.Println("found a leak"); code = 1 }`)}},
			err:      "example.com/m/a failed after its tests",
			says:     []string{"found a leak"},
		},
		{
			name:     "a timeout",
			packages: map[string][]string{"a": {`func TestA(t *testing.T) { if first("A") { select {} } }`}, "b": {test(flakes, "Flaky")}},
			flags:    []string{"-timeout=5s"},
			err:      "example.com/m/a failed without a failed test",
			says:     []string{"test timed out"},
		},
		{
			name:     "a build that fails",
			packages: map[string][]string{"a": {`var x int = "text"`}, "b": {test(flakes, "Flaky")}},
			err:      "example.com/m/a failed without a failed test",
			says:     []string{"cannot use"},
		},
		{
			name:     "a finding of vet",
			packages: map[string][]string{"a": {`func TestA(t *testing.T) { t.Errorf("%d", "text") }`}},
			err:      "example.com/m/a failed without a failed test",
			says:     []string{"wrong type"},
		},
		{
			name:     "a data race outside of the tests",
			packages: map[string][]string{"a": {test(flakes, "Flaky"), "func TestMain(m *testing.M) { " + race + "; os.Exit(m.Run()) }"}},
			flags:    []string{"-race"},
			err:      "example.com/m/a had a data race outside of its tests",
			says:     []string{"WARNING: DATA RACE"},
		},
		{
			name:     "a data race in a test is its failure",
			packages: map[string][]string{"a": {`func TestA(t *testing.T) { if first("A") { ` + race + ` } }`}},
			flags:    []string{"-race"},
			flaky:    []string{"TestA of example.com/m/a", "WARNING: DATA RACE"}, again: 1,
		},
		{
			name:     "a wrong flag",
			packages: map[string][]string{"a": {test(passes, "A")}},
			flags:    []string{"-timeout=soon"},
			err:      "exit status",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := run(t, module(t, tc.packages), unit(".", tc.flags...))
			o.check(t, tc.err, tc.flaky)
			if again, err := filepath.Glob(filepath.Join(o.reports, "*-again*.json")); err != nil || len(again) != tc.again {
				t.Errorf("%d runs of single tests, want %d: %q (%v)", len(again), tc.again, again, err)
			}
			steps, _, _ := strings.Cut(o.out, "TIME PER STEP")
			for _, text := range tc.says {
				if !strings.Contains(steps, text) {
					t.Errorf("the output has no %q", text)
				}
			}
			if t.Failed() {
				t.Log("the output:\n" + o.out)
			}
		})
	}
}

// check compares a run's end: its error and the lists.
func (o outcome) check(t *testing.T, wantErr string, wantFlaky []string) {
	t.Helper()
	switch {
	case o.err == nil && wantErr != "":
		t.Errorf("the run passed, want %q", wantErr)
	case o.err != nil && (wantErr == "" || !strings.Contains(o.err.Error(), wantErr)):
		t.Errorf("the run failed: %v; want %q", o.err, wantErr)
	}
	_, lists, found := strings.Cut(o.out, "\nTIME PER STEP\n")
	if !found || !strings.Contains(lists, "in all\n") {
		t.Error("the output does not end with the time of each step")
	}
	_, list, found := strings.Cut(lists, "\nFLAKY: ")
	if found != (len(wantFlaky) > 0) {
		t.Errorf("there is a list of flaky tests: %t", found)
	}
	for _, text := range wantFlaky {
		if !strings.Contains(list, text) {
			t.Errorf("the list of flaky tests has no %q", text)
		}
	}
}

// TestBudget: the number of tests that are run again is limited over all steps, not in each.
func TestBudget(t *testing.T) {
	root := module(t, map[string][]string{
		"a": {test(flakes, "1"), test(flakes, "2"), test(flakes, "3")},
		"b": {test(flakes, "4"), test(flakes, "5")},
		"c": {test(flakes, "6")},
		"d": {test(passes, "7")},
	})
	o := run(t, root, unit("a"), unit("b"), unit("d"), unit("c"), unit("d"))
	o.check(t, "unit c: 1 tests failed. At most 5 of all steps are run again, and 5 were", []string{"Test1 ", "Test2 ", "Test3 ", "Test4 ", "Test5 "})
	if !strings.Contains(o.out, "unit d (not run)") || strings.Count(o.out, "\ngate: unit d passed in ") != 1 {
		t.Errorf("the run did not end with the step that failed:\n%s", o.out)
	}
}

// TestKept: the file of a flaky test has what it printed each time it failed, and what its package printed.
func TestKept(t *testing.T) {
	o := run(t, module(t, map[string][]string{"a": {
		`func TestMain(m *testing.M) { fmt.Println("the seed is 4711"); os.Exit(m.Run()) }`,
		`func TestA(t *testing.T) {
			for i := range 100 { t.Log("line", i) }
			if n := attempt("A"); n < 3 { t.Error("attempt", n) }
		}`, test(passes, "B"),
	}}), unit("."))
	o.check(t, "", []string{"TestA of example.com/m/a", "line 99", "attempt 1"})
	_, list, _ := strings.Cut(o.out, "FLAKY")
	if strings.Contains(list, "line 50\n") {
		t.Error("the list has all output, instead of its end")
	}
	text, err := os.ReadFile(filepath.Join(o.reports, "flaky", "example.com_m_a.TestA.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"the seed is 4711", "line 0\n", "line 99\n", "attempt 1", "attempt 2", "-test.shuffle"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the file has no %q", want)
		}
	}
	if strings.Contains(string(text), "TestB") {
		t.Error("the file has output of another test")
	}
}

// TestCommands: a command that fails ends the run, and the lists are printed.
func TestCommands(t *testing.T) {
	o := run(t, t.TempDir(),
		Step{Name: "first", Commands: [][]string{{"sh", "-c", "echo hello"}}},
		Step{Name: "second", Commands: [][]string{{"sh", "-c", "exit 3"}, {"echo", "unreachable"}}},
		Step{Name: "third", Commands: [][]string{{"echo", "unreachable"}}},
	)
	o.check(t, "second: sh -c exit 3: exit status 3", nil)
	for _, want := range []string{"hello\n", "gate: first passed in ", "gate: second failed in ", "  first\n", "  second (failed)\n", "  third (not run)\n"} {
		if !strings.Contains(o.out, want) {
			t.Errorf("the output has no %q", want)
		}
	}
	if strings.Contains(o.out, "\nunreachable") {
		t.Error("a command ran after a failure")
	}
}

// TestSlowest: the packages that took longest are listed, across steps, with the slowest first.
func TestSlowest(t *testing.T) {
	g := &gate{Options: Options{Out: &bytes.Buffer{}}}
	for i, name := range strings.Split("abcdefghijkl", "") {
		g.packages = append(g.packages, &pkg{name: name, elapsed: time.Duration(i) * time.Minute})
	}
	g.summarize()
	_, list, _ := strings.Cut(g.Out.(*bytes.Buffer).String(), "SLOWEST PACKAGES\n")
	if want := "   11m0s  l\n   10m0s  k\n"; !strings.HasPrefix(list, want) || strings.Count(list, "\n") != 10+1 {
		t.Errorf("the list is:\n%s", list)
	}
}

// TestInterrupt: the end of the context interrupts a command with its children. The lists are printed.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := &watcher{text: "started", then: cancel}
	err := Run(ctx, Options{Root: t.TempDir(), Reports: t.TempDir(), Out: out}, []Step{
		{Name: "first", Commands: [][]string{{"sh", "-c", "echo started; tail -f /dev/null; echo survived"}}},
		{Name: "second", Commands: [][]string{{"echo", "unreachable"}}},
	})
	outcome{out: out.kept.String(), err: err}.check(t, "interrupted", nil)
	if text := out.kept.String(); strings.Contains(text, "survived") || !strings.Contains(text, "second (not run)") {
		t.Errorf("the output is:\n%s", text)
	}
}

// watcher keeps what is written, and calls a function once it has a text.
type watcher struct {
	kept bytes.Buffer // not embedded: io.Copy would call its ReadFrom
	text string
	then func()
}

func (w *watcher) Write(b []byte) (int, error) {
	n, err := w.kept.Write(b)
	if w.then != nil && strings.Contains(w.kept.String(), w.text) {
		w.then()
		w.then = nil
	}
	return n, err
}
