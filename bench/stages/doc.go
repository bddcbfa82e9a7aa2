// Package stages measures the way of an update through the recorder stage by stage: in instructions, which are the same
// on a slow, a fast and a busy machine, and in CPU time, allocations and allocated bytes. There is no peer.
//
// The updates are those of the synthetic server: a kubelet reports the status of each of some pods, in turn. Before a
// stage is measured, the stages before it make its input, so that it runs alone. Each measurement has a process of its own.
//
//   - Instructions are counted by harness.Counter, after as many updates that warm up, and without garbage collection: its
//     few cycles would fall into one measurement or another by chance. Allocations stand for its cost.
//   - CPU time is the median of ten chunks, with garbage collection.
//   - Sync and cursors of sinks are left out: the pump's store is in memory. Package recorder has the whole way.
package stages

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/tattler-dev/tattler/bench/harness"
)

// Job times the stages, and CountJob counts their instructions. A sample has the values of each stage behind its name. That
// of CountJob is empty on a machine without a counter.
const (
	Job      = "tattler/stages"
	CountJob = "tattler/stages-counted"
)

// Jobs are the measurements of this package.
func Jobs() []harness.Job {
	return []harness.Job{{Name: Job, Run: times}, {Name: CountJob, Run: counts}}
}

// Names returns the names of the stages, in the order of the way.
func Names() []string {
	names := make([]string, len(stages))
	for i, s := range stages {
		names[i] = s.name
	}
	return names
}

// chunks is how many times as many updates are timed as are counted.
const chunks = 10

// counts counts the instructions of stages.
func counts(ctx context.Context, in harness.Input) (harness.Sample, error) {
	if in.Counted != nil {
		return nil, once(ctx, in)
	}
	counter := harness.FindCounter()
	if counter == nil {
		return harness.Sample{}, nil
	}
	in.NoGC = true
	return parts(in, func(in harness.Input) (harness.Sample, error) {
		n, err := counter.Run(ctx, in)
		return harness.Sample{in.Part + " instructions": n / float64(in.Events)}, err
	})
}

// times times stages.
func times(ctx context.Context, in harness.Input) (harness.Sample, error) {
	if in.Part != "" {
		return timed(ctx, in)
	}
	return parts(in, func(in harness.Input) (harness.Sample, error) { return harness.Run(ctx, in) })
}

// parts measures each stage, or only in.Part, in processes of its own, and joins the samples.
func parts(in harness.Input, measure func(harness.Input) (harness.Sample, error)) (harness.Sample, error) {
	all := harness.Sample{}
	in.Profile = ""
	in.Dir = filepath.Join(in.Dir, "stages")
	if err := write(in.Dir, in.Server.Objects, chunks*in.Events); err != nil {
		return nil, err
	}
	for _, name := range Names() {
		if in.Part != "" && in.Part != name {
			continue
		}
		of := in
		of.Part = name
		s, err := measure(of)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, s)
	}
	return all, nil
}

// once counts a stage for in.Events updates, after as many that warm up.
func once(ctx context.Context, in harness.Input) (err error) {
	i := slices.Index(Names(), in.Part)
	l, err := open(ctx, in.Dir, in.Server.Objects, 2*in.Events)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.until(i); err != nil {
		return err
	}
	if err := l.run(i, l.updates[:in.Events]); err != nil {
		return err
	}
	return in.Count(func() error { return l.run(i, l.updates[in.Events:]) })
}

// timed measures the CPU time and the allocations of a stage.
func timed(ctx context.Context, in harness.Input) (s harness.Sample, err error) {
	i := slices.Index(Names(), in.Part)
	l, err := open(ctx, in.Dir, in.Server.Objects, chunks*in.Events)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.until(i); err != nil {
		return nil, err
	}
	var took []float64
	runtime.GC()
	begin := harness.Used()
	for chunk := range slices.Chunk(l.updates, in.Events) {
		start := harness.Used()
		if err := l.run(i, chunk); err != nil {
			return nil, err
		}
		took = append(took, (harness.Used().CPU-start.CPU).Seconds()/float64(len(chunk)))
	}
	end := harness.Used()
	slices.Sort(took)
	n := float64(len(l.updates))
	return harness.Sample{
		in.Part + " cpu s": took[len(took)/2], in.Part + " allocs": (end.Allocs - begin.Allocs) / n, in.Part + " alloc B": (end.Bytes - begin.Bytes) / n,
	}, nil
}

// run runs one stage.
func (l *line) run(i int, items []*item) error {
	if err := stages[i].run(l, items); err != nil {
		return fmt.Errorf("stage %s: %w", stages[i].name, err)
	}
	return nil
}

// until makes the input of a stage, by running the stages on the way there.
func (l *line) until(i int) error {
	for k, s := range stages[:i+1] {
		if s.aside && k < i {
			continue
		}
		if s.begin != nil {
			if err := s.begin(l); err != nil {
				return fmt.Errorf("prepare stage %s: %w", s.name, err)
			}
		}
		if s.first {
			if err := l.run(k, l.seeds); err != nil {
				return err
			}
		}
		if k < i {
			if err := l.run(k, l.updates); err != nil {
				return err
			}
		}
	}
	return nil
}
