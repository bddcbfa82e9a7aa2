package suite

import (
	"strings"
	"time"

	"github.com/tattler-dev/tattler/bench/harness"
	"github.com/tattler-dev/tattler/bench/recorder"
	"github.com/tattler-dev/tattler/bench/stages"
)

// stageRow is a stage in the table.
type stageRow struct {
	name, note string
	// of is the stage's name in package stages; without is a part of it that has its own row.
	of, without string
	// beside marks a stage that the recorder does not have.
	beside bool
}

// stageRows are the stages in the order of an update's way.
var stageRows = []stageRow{
	{name: "cut", of: "cut"},
	{name: "drop managed fields", of: "drop", beside: true, note: "informers can do this; the recorder needs them for attribution, so it is not in the sum"},
	{name: "checksum", of: "sum"},
	{name: "redact", of: "redact"},
	{name: "pack", of: "pack"},
	{name: "unpack", of: "unpack", note: "both versions"},
	{name: "decode", of: "decode", note: "both versions"},
	{name: "compare", of: "compare"},
	{name: "attribute", of: "build", without: "compare"},
	{name: "encode", of: "encode"},
	{name: "append", of: "append", without: "encode", note: "100 changes in a transaction"},
	{name: "deliver", of: "deliver", note: "100 changes in a write to a file"},
}

// value returns a stage's value without that of its part.
func (s *stageRow) value(sample harness.Sample, what string) (float64, bool) {
	v, ok := sample[s.of+" "+what]
	if s.without != "" && ok {
		var part float64
		part, ok = sample[s.without+" "+what]
		v -= part
	}
	return v, ok
}

// sumOf adds up the stages of the recorder.
func sumOf(sample harness.Sample, what string) (sum float64, ok bool) {
	for i := range stageRows {
		if s := &stageRows[i]; !s.beside {
			v, ok := s.value(sample, what)
			if !ok {
				return 0, false
			}
			sum += v
		}
	}
	return sum, true
}

// perStage has rows for each stage of the recorder, their sum, and the whole way of an update.
func perStage(z Size) Scenario {
	counted := Step{Job: stages.CountJob, Limit: 30 * time.Minute}
	if z.Tiny { // callgrind is slow: one stage shows that counting works
		counted.Part = "cut"
	}
	sc := Scenario{Name: "stages", Objects: 100, Events: z.some(200, 100), MaxRounds: 3, Jobs: []Step{
		{Job: stages.Job, Limit: 15 * time.Minute}, {Job: recorder.WholeJob}, counted,
	}}
	if !z.Tiny {
		sc.Jobs = append(sc.Jobs, Step{Job: recorder.WholeCountJob, Limit: 30 * time.Minute})
	}
	for i := range stageRows {
		s := &stageRows[i]
		skip := counted.Part != "" && counted.Part != s.of
		sc.Rows = append(sc.Rows, stageRowsOf("stage "+s.name, s.note, skip, stages.Job, stages.CountJob, s.value)...)
	}
	sc.Rows = append(sc.Rows, stageRowsOf("all stages", "without garbage collection", z.Tiny, stages.Job, stages.CountJob, sumOf)...)
	plain := func(s harness.Sample, what string) (float64, bool) { v, ok := s[what]; return v, ok }
	sc.Rows = append(sc.Rows, stageRowsOf("the whole way", "also the connection, the engine's queues, the daemon, garbage collection", z.Tiny, recorder.WholeJob, recorder.WholeCountJob, plain)...)
	without := func(s harness.Sample, what string) (float64, bool) { return plain(s, what+" without gc") }
	rest := stageRowsOf("the whole way, without garbage collection", "", z.Tiny, "", recorder.WholeCountJob, without)
	sc.Rows = append(sc.Rows, rest[0])
	return sc
}

// stageRowsOf has the rows of a stage. skip leaves its instructions out.
func stageRowsOf(name, note string, skip bool, job, countJob string, value func(s harness.Sample, what string) (float64, bool)) []RowSpec {
	of := func(job, what string, by float64) Measure {
		return Measure{job, func(s harness.Sample) (float64, bool) {
			v, ok := value(s, what)
			return v / by, ok
		}}
	}
	count := RowSpec{Name: name + ": instructions of an update", Ours: of(countJob, "instructions", 1)}
	counter := harness.FindCounter()
	switch {
	case counter == nil:
		count.Ours, note = Measure{}, join(note, "not counted: this machine has neither hardware counters nor valgrind")
	case skip:
		count.Ours = Measure{}
	default:
		note = join(note, "counted by "+counter.Name)
	}
	count.Note = note
	return []RowSpec{
		count,
		{Name: name + ": CPU", Unit: "µs", Ours: of(job, "cpu s", 1e-6)},
		{Name: name + ": allocations", Ours: of(job, "allocs", 1)},
		{Name: name + ": allocated", Unit: "B", Ours: of(job, "alloc B", 1)},
	}
}

func join(notes ...string) string { return strings.TrimPrefix(strings.Join(notes, "; "), "; ") }
