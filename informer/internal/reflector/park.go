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
	parked        bool // requests are accepted
	retire, retry bool
	wake          context.CancelFunc // ends the wait for requests; nil before the first
}

// Retry makes a parked stream list at once. Like Retire, it does nothing for a stream that is not parked, and may
// be called from any goroutine, even by a Sink.
func (r *Reflector) Retry() { r.requests.add(false, true) }

// Retire makes a parked stream drop its objects. It comes before a pending Retry.
func (r *Reflector) Retire() { r.requests.add(true, false) }

func (q *requests) add(retire, retry bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.parked {
		return
	}
	q.retire, q.retry = q.retire || retire, q.retry || retry
	if q.wake != nil {
		q.wake()
	}
}

// wakes sets what a request calls, and calls it if one is pending.
func (q *requests) wakes(wake context.CancelFunc) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.wake = wake; q.retire || q.retry {
		wake()
	}
}

// take returns the next request, if one is pending.
func (q *requests) take() (e Event, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.retire:
		q.retire = false
		return Retire, true
	case q.retry:
		q.retry = false
		return Retry, true
	}
	return 0, false
}

// accept starts or stops accepting requests. When it stops, it drops those that came too late.
func (q *requests) accept(parked bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.parked = parked; !parked {
		q.retire, q.retry = false, false
	}
}

// park sleeps, then lists one object to see whether the kind is served again; the sink does not see it. A request
// ends both.
func (r *Reflector) park(ctx context.Context, d time.Duration) Input {
	ctx, wake := context.WithCancel(ctx)
	defer wake()
	r.requests.wakes(wake)
	sleep(ctx, d)
	err := ctx.Err()
	if err == nil {
		_, err = r.peek(ctx)
	}
	in := Input{Event: Timer}
	if e, ok := r.requests.take(); ok {
		in.Event = e
	} else if err == nil || errors.Is(err, ErrRewritten) { // another history only needs a list
		in.Event = Returned
	}
	if in.Event == Returned || in.Event == Retry { // it may be another server
		r.m.Paged, r.bookmarks, r.versioned, r.goal, r.until = r.Paged, false, false, "", ""
	}
	return in
}
