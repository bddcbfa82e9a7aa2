package recorder

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/bench/harness"
	"github.com/tattler-dev/tattler/bench/synth"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink/webhook"
)

// maxPosts limits the number of changes that are delivered one after another.
const maxPosts = 300

// hook is the receiver of a webhook sink.
type hook struct {
	url    string
	server *http.Server
	served chan error

	mu   sync.Mutex
	n    int
	last time.Time
}

func newHook() (*hook, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	h := &hook{url: "http://" + l.Addr().String(), served: make(chan error, 1)}
	h.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		now := time.Now()
		h.mu.Lock()
		defer h.mu.Unlock()
		h.n++
		h.last = now
	})}
	go func() { h.served <- h.server.Serve(l) }()
	return h, nil
}

func (h *hook) close() error {
	err := h.server.Close()
	if end := <-h.served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

// heard returns the number of requests and the time of the last.
func (h *hook) heard() (int, time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.n, h.last
}

// sink returns a sink that delivers to the hook.
func (h *hook) sink() (deliver.Options, error) {
	s, err := webhook.New("bench", webhook.Options{URL: h.url})
	return deliver.Options{Name: "hook", Sink: s}, err
}

// wait waits for a number of requests and returns the time of the last.
func (h *hook) wait(ctx context.Context, count int) (at time.Time, err error) {
	err = harness.Wait(ctx, func() bool {
		var n int
		n, at = h.heard()
		return n >= count
	})
	if err != nil {
		n, _ := h.heard()
		return at, fmt.Errorf("hear of %d changes, and of %d so far: %w", count, n, err)
	}
	return at, nil
}

// time makes changes one after another and records the time from each to its request.
func (h *hook) time(ctx context.Context, m *harness.Meter, control *synth.Control, pods, count int) error {
	before, _ := h.heard()
	var took []float64
	for i := range count {
		start := time.Now()
		if _, err := control.Update(ctx, 1, pods); err != nil {
			return err
		}
		at, err := h.wait(ctx, before+i+1)
		if err != nil {
			return err
		}
		took = append(took, float64(at.Sub(start).Microseconds())/1000)
	}
	slices.Sort(took)
	m.Set("median ms", took[len(took)/2])
	m.Set("p99 ms", took[len(took)*99/100])
	return nil
}

// webhooks measures the time from a change to the webhook's request.
func webhooks(ctx context.Context, in harness.Input) (s harness.Sample, err error) {
	h, err := newHook()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	to, err := h.sink()
	if err != nil {
		return nil, err
	}
	in.Dir = filepath.Join(in.Dir, "webhook") // not the journal of the round's other jobs
	r := start(ctx, in, to)
	if err := r.live(ctx); err != nil {
		return nil, err
	}
	if err := r.recorded(ctx, in.Server.Objects); err != nil {
		return nil, err
	}
	m := harness.NewMeter()
	if err := h.time(ctx, m, synth.NewControl(in.Server.Control), in.Server.Objects, min(in.Events, maxPosts)); err != nil {
		return nil, err
	}
	return m.Sample(), r.stop(ctx)
}
