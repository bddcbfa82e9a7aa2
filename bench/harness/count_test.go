package harness

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCounters: every counter that works here counts what a process passes to Count, and nothing else.
func TestCounters(t *testing.T) {
	loop := buildLoop(t)
	for _, c := range []*Counter{&perf, &callgrind} {
		if !c.works() {
			t.Logf("%s does not work here", c.Name)
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			counts := map[int]float64{}
			for _, n := range []int{1_000_000, 3_000_000} {
				got, err := c.run(t.Context(), loop, Input{Job: "loop", Events: n, Seconds: 60})
				if err != nil {
					t.Fatal(err)
				}
				counts[n] = got
			}
			// 3 to 8 instructions for each, however the loop is compiled; the uncounted million would be a third of the first.
			per := counts[1_000_000] / 1e6
			if ratio := counts[3_000_000] / counts[1_000_000]; per < 3 || per > 8 || ratio < 2.8 || ratio > 3.2 {
				t.Errorf("%v instructions for 1,000,000, %v for 3,000,000", counts[1_000_000], counts[3_000_000])
			}
			if _, err := c.run(t.Context(), loop, Input{Job: "nothing", Seconds: 60}); err == nil {
				t.Error("a job that does not exist is counted")
			}
		})
	}
}

func buildLoop(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "loop")
	if out, err := exec.Command("go", "build", "-o", path, "./testdata/loop").CombinedOutput(); err != nil {
		t.Fatalf("build loop: %v: %s", err, out)
	}
	return path
}

// TestPerfObeys: perf counts when the process says so, also on a machine without hardware counters, where it counts page
// faults here.
func TestPerfObeys(t *testing.T) {
	faults := perf
	faults.command = func(file string) []string {
		return []string{"perf", "stat", "-x", ",", "-e", "page-faults:u", "-o", file}
	}
	faults.read = func(text string) (float64, error) { // fails for "<not counted>": perf was never enabled
		return perf.read(strings.ReplaceAll(text, "page-faults", "instructions"))
	}
	if exec.Command("perf", "stat", "-e", "page-faults:u", "true").Run() != nil {
		t.Log("perf does not work here")
		return
	}
	if _, err := faults.run(t.Context(), buildLoop(t), Input{Job: "loop", Events: 1000, Seconds: 60}); err != nil {
		t.Error(err)
	}
}

// TestFindCounter: the counter that is used works.
func TestFindCounter(t *testing.T) {
	if c := FindCounter(); c != nil && !c.works() {
		t.Errorf("%s does not work", c.Name)
	}
}

// TestReadCounts: the output of both programs, also where nothing could be counted.
func TestReadCounts(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		by         *Counter
		want       float64
		fails      bool
	}{
		{"perf", "# started on Fri\n\n123456789,,instructions:u,4000,100.00,,\nEvents enabled\n", &perf, 123456789, false},
		{"perf on a virtual machine", "<not supported>,,instructions:u,0,100.00,,\n", &perf, 0, true},
		{"perf never enabled", "<not counted>,,instructions:u,0,100.00,,\n", &perf, 0, true},
		{"callgrind", "events: Ir\nfn=(1)\n0 7\n\ntotals: 6339053\n", &callgrind, 6339053, false},
		{"callgrind was killed", "events: Ir\n", &callgrind, 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.by.read(tc.text)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("it is read as %v, %v", got, err)
			}
		})
	}
}

// TestCountUncounted: a job that is not counted runs what it passes to Count.
func TestCountUncounted(t *testing.T) {
	ran, in := false, Input{}
	if err := in.Count(func() error { ran = true; return nil }); err != nil || !ran {
		t.Errorf("ran: %v, %v", ran, err)
	}
}
