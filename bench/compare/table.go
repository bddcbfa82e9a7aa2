package compare

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// Explain writes what a run's peers lost, at most ten changes each.
func Explain(w io.Writer, results []Result) {
	for _, r := range results {
		fmt.Fprintf(w, "compare: %s lost %d of %d changes, %d requests refused\n", r.Peer.Name, r.Lost, r.Changes, r.Refused)
		for _, c := range r.Missing[:min(len(r.Missing), 10)] {
			fmt.Fprintf(w, "compare:   %s\n", c)
		}
	}
}

// rows are the table's lines: a name, and the value in one result.
var rows = []struct {
	name  string
	value func(r Result) float64
	print func(v float64) string
}{
	{"changes in the cluster", func(r Result) float64 { return float64(r.Changes) }, whole},
	{"left out by the program's rules, but recorded", func(r Result) float64 { return float64(r.Quiet) }, whole},
	{"lost", func(r Result) float64 { return float64(r.Lost) }, whole},
	{"of these, deletions", func(r Result) float64 { return float64(r.LostDeletions) }, whole},
	{"repeated, with the same id", func(r Result) float64 { return float64(r.Copies) }, whole},
	{"repeated, with no or another id", func(r Result) float64 { return float64(r.Repeats) }, whole},
	{"out of order", func(r Result) float64 { return float64(r.Disorder) }, whole},
	{"invented", func(r Result) float64 { return float64(r.Invented) }, whole},
	{"requests with the Secret's value", func(r Result) float64 { return float64(r.Leaks) }, whole},
	{"files with the Secret's value", func(r Result) float64 { return float64(r.Files) }, whole},
	{"median delay", func(r Result) float64 { return float64(r.Delay) }, func(v float64) string { return time.Duration(v).Round(time.Millisecond).String() }},
	{"CPU time, before and after the kill together", func(r Result) float64 { return float64(r.CPU) }, func(v float64) string { return time.Duration(v).Round(10 * time.Millisecond).String() }},
	{"peak memory", func(r Result) float64 { return float64(r.Peak) }, func(v float64) string { return fmt.Sprintf("%.0f MiB", v/(1<<20)) }},
}

func whole(v float64) string { return fmt.Sprintf("%.0f", v) }

// Table writes the medians of several runs as a Markdown table, and the range where the runs differ.
func Table(w io.Writer, runs [][]Result) error {
	var names, versions []string
	values := map[string][][]float64{} // by peer: of each row, by run
	for _, results := range runs {
		for _, r := range results {
			if !slices.Contains(names, r.Peer.Name) {
				names, versions = append(names, r.Peer.Name), append(versions, r.Peer.Version)
				values[r.Peer.Name] = make([][]float64, len(rows))
			}
			for i, row := range rows {
				values[r.Peer.Name][i] = append(values[r.Peer.Name][i], row.value(r))
			}
		}
	}
	out := tabwriter.NewWriter(w, 0, 0, 1, ' ', tabwriter.Debug)
	line := func(first string, rest func(peer int) string) {
		fmt.Fprintf(out, "\t %s", first)
		for i := range names {
			fmt.Fprintf(out, "\t %s", rest(i))
		}
		fmt.Fprintln(out, "\t")
	}
	line("", func(i int) string { return names[i] + " " + versions[i] })
	line("---", func(int) string { return "---" })
	for i, row := range rows {
		line(row.name, func(peer int) string {
			of := values[names[peer]][i]
			s := row.print(Median(of))
			if low, high := row.print(slices.Min(of)), row.print(slices.Max(of)); low != high {
				s += fmt.Sprintf(" (%s to %s)", low, high)
			}
			return s
		})
	}
	return out.Flush()
}
