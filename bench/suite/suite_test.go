package suite

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/bench/harness"
)

// samples returns the results of two jobs.
func samples(ours, peer []float64) Results {
	r := Results{}
	for job, values := range map[string][]float64{"a": ours, "b": peer} {
		for _, v := range values {
			r[job] = append(r[job], harness.Sample{"x": v, "half": v / 2})
		}
	}
	return r
}

func TestRow(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name       string
		ours, peer []float64
		aim        Aim
		ratio      float64 // 0: no ratio
		met        *bool
		rounds     int
	}{
		{"medians are compared, not means", []float64{9, 1, 2}, []float64{10, 4, 1000}, atMost("1/5", .2), .2, &yes, 3},
		{"an even number of rounds", []float64{1, 3}, []float64{10, 30}, atMost("1/10", .1), .1, &yes, 2},
		{"just not", []float64{21}, []float64{100}, atMost("1/5", .2), .21, &no, 1},
		{"more is better", []float64{160}, []float64{100}, Aim{Text: "≥ 1.5×", Limit: 1.5, AtLeast: true}, 1.6, &yes, 1},
		{"not more enough", []float64{140}, []float64{100}, Aim{Text: "≥ 1.5×", Limit: 1.5, AtLeast: true}, 1.4, &no, 1},
		{"an absolute aim needs no peer", []float64{4}, nil, Aim{Text: "≤ 5 s", Limit: 5, Absolute: true}, 0, &yes, 1},
		{"a relative one does", []float64{4}, nil, atMost("1/5", .2), 0, nil, 1},
		{"what failed is not met", nil, []float64{4}, atMost("1/5", .2), 0, nil, 1},
		{"without an aim nothing is met", []float64{4}, []float64{4}, Aim{}, 1, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := RowSpec{Name: "n", Unit: "s", Ours: Of("a", "x", 2), Peer: Per("b", "half", "one", 1), Aim: c.aim}
			r := samples(c.ours, c.peer)
			for _, s := range r["b"] {
				s["one"] = 1
			}
			got := row.row(r, "peer v1", 5)
			if (got.Ratio == nil) != (c.ratio == 0) || got.Ratio != nil && (*got.Ratio < c.ratio-1e-9 || *got.Ratio > c.ratio+1e-9) {
				t.Errorf("the ratio is %s, not %v", ratio(got.Ratio), c.ratio)
			}
			if (got.Met == nil) != (c.met == nil) || got.Met != nil && *got.Met != *c.met {
				t.Errorf("met is %v", got.Met)
			}
			if got.Rounds != c.rounds || got.N != 5 || got.PeerVersion != "peer v1" {
				t.Errorf("the row is %+v", got)
			}
		})
	}
}

func TestDigits(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 18085.3: "18085", 953.26: "953", 12.345: "12.3", 1: "1", 1.5: "1.5", 0.012345: "0.0123", 1000: "1000",
	} {
		if got := digits(v); got != want {
			t.Errorf("%v is %s, not %s", v, got, want)
		}
	}
}

// TestOutput: the table, and a line of JSON for each row.
func TestOutput(t *testing.T) {
	r := samples([]float64{10, 12}, []float64{100})
	rows := []Row{
		RowSpec{Name: "heap", Unit: "B", Ours: Of("a", "x", 1), Peer: Of("b", "x", 1), Aim: atMost("1/5", .2), Note: "mind this"}.row(r, "client-go v0.37.2", 5),
		RowSpec{Name: "missing", Unit: "s", Ours: Of("c", "x", 1), Peer: Of("b", "x", 1)}.row(r, "client-go v0.37.2", 5),
	}
	var b bytes.Buffer
	if err := Print(&b, rows); err != nil {
		t.Fatal(err)
	}
	want := `
what     unit  ours      peer  ratio   aim    met  beside             rounds  n
heap     B     11 ±9%    100   1/9.09  ≤ 1/5  yes  client-go v0.37.2  2       5
missing  s     -         100   -                   client-go v0.37.2  1       5
heap: mind this
`
	fold := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	if fold(b.String()) != fold(want) {
		t.Errorf("the table is\n%s", b.String())
	}
	path := filepath.Join(t.TempDir(), "out", "latest.jsonl")
	if err := Write(path, rows); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := `{"name":"heap","unit":"B","ours":11,"peer":100,"ratio":0.11,"aim":"≤ 1/5","met":true,"peerVersion":"client-go v0.37.2","rounds":2,"n":5,"oursSpread":0.18181818181818182,"peerSpread":0,"note":"mind this"}
{"name":"missing","unit":"s","ours":null,"peer":100,"ratio":null,"aim":"","met":null,"peerVersion":"client-go v0.37.2","rounds":1,"n":5,"oursSpread":0,"peerSpread":0}
`
	if string(got) != lines {
		t.Errorf("the file is\n%s", got)
	}
}

// TestScenarios: names of rows and scenarios are unique.
func TestScenarios(t *testing.T) {
	seen := map[string]bool{}
	for _, sc := range Scenarios(Size{Objects: 10}) {
		for _, name := range append([]string{"scenario " + sc.Name}, rowNames(sc)...) {
			if seen[name] {
				t.Errorf("%s is not unique", name)
			}
			seen[name] = true
		}
	}
}

func rowNames(sc Scenario) []string {
	var names []string
	for _, r := range sc.Rows {
		names = append(names, r.Name)
	}
	return names
}
