package recorder

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/bench/harness"
	"github.com/tattler-dev/tattler/bench/synth"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/daemon"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/journal"
)

// running is a running daemon.
type running struct {
	path   string
	ready  chan struct{}
	cancel context.CancelFunc
	ended  chan error
}

// start starts the daemon on the server's pods, as tattler run does.
func start(ctx context.Context, in harness.Input, sinks ...deliver.Options) *running {
	ctx, cancel := context.WithCancel(ctx)
	r := &running{path: filepath.Join(in.Dir, "journal.db"), ready: make(chan struct{}), cancel: cancel, ended: make(chan error, 1)}
	o := daemon.Options{
		Config:  &rest.Config{Host: in.Server.URL, BearerToken: in.Server.Token, TLSClientConfig: rest.TLSClientConfig{CAFile: in.Server.CAFile}, QPS: 50, Burst: 300},
		Cluster: "bench", Scopes: []capture.Scope{{Types: []string{"pods"}}},
		Journal: r.path, Key: filepath.Join(in.Dir, "key"), Sinks: sinks,
		OnMessage: func(m capture.Message) {
			if m.Ready != nil {
				close(r.ready)
			}
		},
	}
	go func() { r.ended <- daemon.Run(ctx, o) }()
	return r
}

// live waits until the daemon is live.
func (r *running) live(ctx context.Context) error {
	select {
	case <-r.ready:
		return nil
	case err := <-r.ended:
		return fmt.Errorf("the daemon ended: %w", err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// recorded waits until the journal has a number of changes and no gap.
func (r *running) recorded(ctx context.Context, changes int) error {
	reader, err := journal.OpenReader(ctx, r.path)
	if err != nil {
		return err
	}
	defer reader.Close()
	var last int64
	err = harness.Wait(ctx, func() bool {
		last, err = reader.Last(ctx)
		return err != nil || last >= int64(changes)
	})
	if err == nil && last != int64(changes) {
		err = fmt.Errorf("there are %d changes, not %d", last, changes)
	}
	return err
}

func (r *running) stop(ctx context.Context) error {
	r.cancel()
	select {
	case err := <-r.ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("stop: %w", context.Cause(ctx))
	}
}

// record measures the first start: the time until the daemon is live and until everything is recorded, and the CPU.
func record(ctx context.Context, in harness.Input) (harness.Sample, error) {
	m := harness.NewMeter()
	r := start(ctx, in)
	if err := r.live(ctx); err != nil {
		return nil, err
	}
	m.Lap("live")
	if err := r.recorded(ctx, in.Server.Objects); err != nil {
		return nil, err
	}
	m.Lap("recorded")
	m.AwaitIdle(ctx)
	m.Lap("settled")
	m.Memory("steady")
	return m.Sample(), r.stop(ctx)
}

// restart measures the start from the journal of record.
func restart(ctx context.Context, in harness.Input) (harness.Sample, error) {
	control := synth.NewControl(in.Server.Control)
	if _, err := control.Requests(ctx); err != nil { // discard those of earlier jobs
		return nil, err
	}
	m := harness.NewMeter()
	r := start(ctx, in)
	if err := r.live(ctx); err != nil {
		return nil, err
	}
	m.Lap("live")
	m.AwaitIdle(ctx)
	m.Lap("settled")
	requests, err := control.Requests(ctx)
	if err != nil {
		return nil, err
	}
	m.Set("lists", float64(lists(requests)))
	if err := r.recorded(ctx, in.Server.Objects+1); err != nil { // the restart is recorded as a change
		return nil, err
	}
	m.Memory("steady")
	return m.Sample(), r.stop(ctx)
}

// lists counts the requests that list more than one pod.
func lists(requests []string) int {
	n := 0
	for _, r := range requests {
		path, query, _ := strings.Cut(r, "?")
		q, err := url.ParseQuery(query)
		if err != nil || !strings.HasSuffix(path, "/pods") {
			continue
		}
		watch := q.Get("watch") == "true" || q.Get("watch") == "1"
		if watch && q.Get("sendInitialEvents") == "true" || !watch && q.Get("limit") != "1" {
			n++
		}
	}
	return n
}

// events measures the rate at which pending updates are recorded durably.
func events(ctx context.Context, in harness.Input) (harness.Sample, error) {
	r := start(ctx, in)
	if err := r.live(ctx); err != nil {
		return nil, err
	}
	if err := r.recorded(ctx, in.Server.Objects); err != nil {
		return nil, err
	}
	m := harness.NewMeter()
	if _, err := synth.NewControl(in.Server.Control).Update(ctx, in.Events, in.Server.Objects); err != nil {
		return nil, err
	}
	if err := r.recorded(ctx, in.Server.Objects+in.Events); err != nil {
		return nil, err
	}
	m.Lap("events")
	m.Set("sent", float64(in.Events))
	m.Memory("after")
	return m.Sample(), r.stop(ctx)
}
