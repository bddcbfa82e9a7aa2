package reflector

import (
	"context"
	"sync"
	"time"
)

// hurry ends a wait after a refusal early.
type hurry struct {
	mu   sync.Mutex
	wake func() // nil while the stream does not wait after a refusal
}

// Hurry makes a stream that waits after a refusal try again at once, such as when rights were given back. It does
// nothing for a stream in another state, and may be called from any goroutine.
func (r *Reflector) Hurry() {
	r.hurry.mu.Lock()
	defer r.hurry.mu.Unlock()
	if r.hurry.wake != nil {
		r.hurry.wake()
	}
}

func (h *hurry) set(wake func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wake = wake
}

// wait sleeps before the next attempt. After a refusal, Hurry ends it.
func (r *Reflector) wait(ctx context.Context, d time.Duration) Input {
	if !r.m.Refused() {
		return sleep(ctx, d)
	}
	ctx, wake := context.WithCancel(ctx)
	defer wake()
	r.hurry.set(wake)
	defer r.hurry.set(nil)
	return sleep(ctx, d)
}
