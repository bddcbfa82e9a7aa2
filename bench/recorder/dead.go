package recorder

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"github.com/tattler-dev/tattler/bench/harness"
	"github.com/tattler-dev/tattler/bench/synth"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink/webhook"
)

// wave is the number of simultaneous changes: few enough for the watch's buffer, so that none is missed.
const wave = 5000

// liveSink measures the heap and the journal after many changes that the only sink accepted.
func liveSink(ctx context.Context, in harness.Input) (harness.Sample, error) {
	in.Dir = filepath.Join(in.Dir, "live")
	return delivered(ctx, in)
}

// deadSink measures the same beside a second sink, whose receiver refuses every connection.
func deadSink(ctx context.Context, in harness.Input) (harness.Sample, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	url := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, fmt.Errorf("close listener: %w", err)
	}
	dead, err := webhook.New("bench", webhook.Options{URL: url})
	if err != nil {
		return nil, err
	}
	in.Dir = filepath.Join(in.Dir, "dead")
	return delivered(ctx, in, deliver.Options{Name: "dead", Sink: dead})
}

// delivered makes changes until a live sink has all of them, and records the growth of the live heap and of the
// journal; then the time of a single change to the live sink.
func delivered(ctx context.Context, in harness.Input, others ...deliver.Options) (s harness.Sample, err error) {
	h, err := newHook()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	to, err := h.sink()
	if err != nil {
		return nil, err
	}
	r := start(ctx, in, append(others, to)...)
	if err := r.live(ctx); err != nil {
		return nil, err
	}
	pods := in.Server.Objects
	if err := r.recorded(ctx, pods); err != nil {
		return nil, err
	}
	control := synth.NewControl(in.Server.Control)
	if _, err := control.Update(ctx, pods, pods); err != nil { // each once, so that each is decoded and packed before the baseline
		return nil, err
	}
	if _, err := h.wait(ctx, pods); err != nil {
		return nil, err
	}
	before, err := used(ctx, r.path)
	if err != nil {
		return nil, err
	}
	m := harness.NewMeter()
	for done := 0; done < in.Events; {
		n := min(wave, in.Events-done)
		if _, err := control.Update(ctx, n, pods); err != nil {
			return nil, err
		}
		done += n
		if err := r.recorded(ctx, 2*pods+done); err != nil {
			return nil, err
		}
	}
	if _, err := h.wait(ctx, pods+in.Events); err != nil {
		return nil, err
	}
	m.Lap("delivered")
	m.AwaitIdle(ctx)
	m.Set("growth B", m.Heap())
	after, err := used(ctx, r.path)
	if err != nil {
		return nil, err
	}
	m.Set("journal B", float64(after-before))
	if err := h.time(ctx, m, control, pods, min(in.Events, maxPosts)); err != nil {
		return nil, err
	}
	return m.Sample(), r.stop(ctx)
}
