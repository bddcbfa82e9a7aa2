package recorder

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/tattler-dev/tattler/bench/harness"
	"github.com/tattler-dev/tattler/bench/sinks"
	"github.com/tattler-dev/tattler/bench/synth"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink/file"
)

// WholeJob times the whole way of updates, from the connection to a file with their events, and WholeCountJob counts its
// instructions, with and without garbage collection. The sample of the latter is empty on a machine without a counter.
const (
	WholeJob      = "tattler/whole"
	WholeCountJob = "tattler/whole-counted"
)

// whole measures the CPU of updates.
func whole(ctx context.Context, in harness.Input) (harness.Sample, error) {
	in.Events *= 10 // time needs more than a count
	var start, end harness.Usage
	err := update(ctx, in, func(do func() error) error {
		start = harness.Used()
		err := do()
		end = harness.Used()
		return err
	})
	n := float64(in.Events)
	return harness.Sample{
		"cpu s": (end.CPU - start.CPU).Seconds() / n, "allocs": (end.Allocs - start.Allocs) / n, "alloc B": (end.Bytes - start.Bytes) / n,
	}, err
}

func wholeCounted(ctx context.Context, in harness.Input) (harness.Sample, error) {
	if in.Counted != nil {
		return nil, update(ctx, in, in.Count)
	}
	s, c := harness.Sample{}, harness.FindCounter()
	if c == nil {
		return s, nil
	}
	for name, noGC := range map[string]bool{"instructions": false, "instructions without gc": true} {
		in.NoGC = noGC
		n, err := c.Run(ctx, in)
		if err != nil {
			return nil, err
		}
		s[name] = n / float64(in.Events)
	}
	return s, nil
}

// update runs the daemon with a file sink, and then lets measure call what makes in.Events updates happen and waits until the
// sink has them, after a few that warm up.
func update(ctx context.Context, in harness.Input, measure func(do func() error) error) (err error) {
	if in.Dir, err = os.MkdirTemp(in.Dir, "whole-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(in.Dir)) }()
	to, err := file.New(file.Options{Path: filepath.Join(in.Dir, "changes.jsonl")})
	if err != nil {
		return err
	}
	sink := sinks.Watch(to)
	r := start(ctx, in, deliver.Options{Name: "file", Sink: sink})
	if err := r.live(ctx); err != nil {
		return err
	}
	control, sent := synth.NewControl(in.Server.Control), 0
	send := func(count int) error {
		sent += count
		if _, err := control.Update(ctx, count, in.Server.Objects); err != nil {
			return err
		}
		return sink.Wait(ctx, sent)
	}
	if err := send(in.Server.Objects); err != nil {
		return err
	}
	if err := measure(func() error { return send(in.Events) }); err != nil {
		return err
	}
	return r.stop(ctx)
}
