package reflector

import (
	"context"
	"errors"
	"sync"
	"time"
)

// requests are the pending requests for a parked stream.
type requests struct {
	mu            sync.Mutex
	retire, retry bool
	wake          func() // called by a request; nil while the stream is not parked
}

// Retry makes a parked stream list at once. Like Retire, it does nothing for a stream that is not parked, and may
// be called from any goroutine, even by a Sink.
func (r *Reflector) Retry() { r.requests.add(false, true) }

// Retire makes a parked stream drop its objects. It comes before a pending Retry.
func (r *Reflector) Retire() { r.requests.add(true, false) }

func (q *requests) add(retire, retry bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.wake != nil {
		q.retire, q.retry = q.retire || retire, q.retry || retry
		q.wake()
	}
}

// open sets the function that a request calls, and calls it if one is pending. nil drops all requests.
func (q *requests) open(wake func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wake = wake
	if wake == nil {
		q.retire, q.retry = false, false
	} else if q.retire || q.retry {
		wake()
	}
}

// take returns the next request, or Timer.
func (q *requests) take() Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.retire:
		q.retire = false
		return Retire
	case q.retry:
		return Returned
	}
	return Timer
}

// park sleeps, then lists one object to see whether the kind is served again; the sink does not see it. A request
// ends both.
func (r *Reflector) park(ctx context.Context, d time.Duration) Input {
	ctx, wake := context.WithCancel(ctx)
	defer wake()
	r.requests.open(wake)
	sleep(ctx, d)
	err := ctx.Err()
	if err == nil {
		_, err = r.peek(ctx)
	}
	e := r.requests.take()
	if e == Timer && (err == nil || errors.Is(err, ErrReplaced)) { // another history only needs a list
		e = Returned
	}
	if e == Returned { // it may be another server
		r.m.Paged, r.bookmarks, r.versioned, r.goal, r.until = r.Paged, false, false, "", ""
	}
	return Input{Event: e}
}
