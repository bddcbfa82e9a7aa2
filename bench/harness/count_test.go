package harness

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestCounters: every counter that works here counts what a process passes to Count, and nothing else.
func TestCounters(t *testing.T) {
	loop := filepath.Join(t.TempDir(), "loop")
	build := exec.Command("go", "build", "-o", loop, "./testdata/loop")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build loop: %v: %s", err, out)
	}
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
