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
	var start, end harness.Usage
	err := update(ctx, in, func() { start = harness.Used() }, func() { end = harness.Used() })
	n := float64(in.Events)
	return harness.Sample{
		"cpu s": (end.CPU - start.CPU).Seconds() / n, "allocs": (end.Allocs - start.Allocs) / n, "alloc B": (end.Bytes - start.Bytes) / n,
	}, err
}

func wholeCounted(ctx context.Context, in harness.Input) (harness.Sample, error) {
	if in.Counted {
		return nil, update(ctx, in, func() {}, func() {})
	}
	c := harness.FindCounter()
	if c == nil {
		return harness.Sample{}, nil
	}
	with, err := c.PerEvent(ctx, in)
	if err != nil {
		return nil, err
	}
	in.NoGC = true
	without, err := c.PerEvent(ctx, in)
	return harness.Sample{"instructions": with, "instructions without gc": without}, err
}

// update runs the daemon with a file sink while the server sends in.Events updates.
func update(ctx context.Context, in harness.Input, begin, end func()) (err error) {
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
	begin()
	if _, err := synth.NewControl(in.Server.Control).Update(ctx, in.Events, in.Server.Objects); err != nil {
		return err
	}
	if err := sink.Wait(ctx, in.Events); err != nil {
		return err
	}
	end()
	return r.stop(ctx)
}
