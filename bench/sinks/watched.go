package sinks

import (
	"context"
	"sync"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Watched is a sink that reports when it has acknowledged a number of messages, without polling.
type Watched struct {
	sink.Sink

	mu    sync.Mutex
	acked int
	more  chan struct{} // closed when acked grows
}

// Watch returns a sink that passes messages to another one.
func Watch(to sink.Sink) *Watched { return &Watched{Sink: to, more: make(chan struct{})} }

// Send implements sink.Sink.
func (w *Watched) Send(ctx context.Context, ms []sink.Message) (int, error) {
	n, err := w.Sink.Send(ctx, ms)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked += n
	close(w.more)
	w.more = make(chan struct{})
	return n, err
}

// Wait waits until a number of messages were acknowledged in all.
func (w *Watched) Wait(ctx context.Context, count int) error {
	for {
		w.mu.Lock()
		acked, more := w.acked, w.more
		w.mu.Unlock()
		if acked >= count {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
