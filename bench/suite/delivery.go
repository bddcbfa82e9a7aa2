package suite

import (
	"time"

	"github.com/tattler-dev/tattler/bench/sinks"
)

// delivery measures the throughput of sinks and the cost of a dead sink.
func delivery(z Size) []Scenario { return []Scenario{eachSink(z), deadSink(z)} }

// some returns the number of changes: normal, quick or tiny.
func (z Size) some(n, quick int) int {
	switch {
	case z.Tiny:
		return 100
	case z.Quick:
		return quick
	}
	return n
}

// eachSink has rows for every kind of sink. If this machine lacks a kind's server, the row's note says so.
func eachSink(z Size) Scenario {
	sc := Scenario{Name: "sinks", Objects: 100, Events: z.some(20_000, 2000), MaxRounds: 3}
	for _, k := range sinks.Kinds() {
		sc.Jobs = append(sc.Jobs, Step{Job: k.Job, Limit: 15 * time.Minute})
		batches, singles, note := Of(k.Job, "batches/s", 1), Of(k.Job, "singles/s", 1), ""
		median, p99 := Of(k.Job, "median ms", 1), Of(k.Job, "p99 ms", 1)
		if k.Missing() {
			batches, singles, median, p99 = Measure{}, Measure{}, Measure{}, Measure{}
			note = "not measured: this machine lacks " + k.Needs
		}
		sc.Rows = append(sc.Rows,
			RowSpec{Name: "sink " + k.Name + ": changes of 1 KB, acknowledged, in batches of 100", Unit: "1/s", Ours: batches, Peer: singles, Beside: "one by one", Note: note},
			RowSpec{Name: "sink " + k.Name + ": from its append to its arrival at 100/s, median", Unit: "ms", Ours: median, Beside: Alone, Note: note},
			RowSpec{Name: "sink " + k.Name + ": from its append to its arrival at 100/s, p99", Unit: "ms", Ours: p99, Beside: Alone, Note: note})
	}
	return sc
}

// deadSink measures 1,000,000 changes with a working and a dead sink, beside the same with the working sink alone.
func deadSink(z Size) Scenario {
	without, with := "tattler/live-sink", "tattler/dead-sink"
	sc := Scenario{
		Name: "dead-sink", Objects: z.scale(5000), Events: z.some(1_000_000, 20_000), MaxRounds: 2,
		Jobs: []Step{{Job: without, Limit: time.Hour}, {Job: with, Limit: time.Hour}},
	}
	for _, r := range []struct {
		what, unit, value string
		by                float64
		aim               Aim
		note              string
	}{
		{"growth of the live heap", "MiB", "growth B", mib, below("32 MiB", 32), "the daemon whole, between one update of each pod and 1,000,000 more"},
		{"growth of the journal", "MiB", "journal B", mib, Aim{}, "nothing is retired"},
		{"until the live sink has all", "s", "delivered s", 1, Aim{}, ""},
		{"from a change to the live sink at the end, median", "ms", "median ms", 1, Aim{}, ""},
		{"from a change to the live sink at the end, p99", "ms", "p99 ms", 1, Aim{}, ""},
	} {
		sc.Rows = append(sc.Rows, RowSpec{
			Name: "one dead sink, 1,000,000 changes: " + r.what, Unit: r.unit, Ours: Of(with, r.value, r.by), Peer: Of(without, r.value, r.by),
			Aim: r.aim, Beside: "no dead sink", Note: r.note,
		})
	}
	return sc
}
