package ops

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/internal/control"
)

// patience is how long the daemon may take to return its status: less than Prometheus waits for a scrape (10 s
// by default).
const patience = 5 * time.Second

// errSilent means that the daemon did not answer in time.
var errSilent = errors.New("the daemon does not report its state")

// asker requests the status, one request at a time: concurrent callers share a request. So a daemon that does
// not answer costs one goroutine, however many callers there are.
type asker struct {
	ask func(context.Context) (control.Status, error)
	end context.Context // of the server, and so of every request
	log *slog.Logger

	asking sync.WaitGroup

	mu       sync.Mutex
	question *question // the current one, or nil
	// silent is when the first request without a timely answer was made; zero if the last one was answered.
	silent  time.Time
	failing bool // the last answer was an error
}

// question is a single request for all callers that wait for it.
type question struct {
	done   chan struct{} // closed with the answer
	status control.Status
	err    error
}

// status waits for an answer; errSilent if none came before ctx ended, or in time.
func (a *asker) status(ctx context.Context) (control.Status, error) {
	q := a.begin()
	select {
	case <-q.done:
		return q.status, q.err
	case <-ctx.Done():
		return control.Status{}, errSilent
	}
}

// begin returns the current request, or a new one.
func (a *asker) begin() *question {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.question != nil {
		return a.question
	}
	q := &question{done: make(chan struct{})}
	a.question = q
	if a.silent.IsZero() {
		a.silent = time.Now()
	}
	a.asking.Go(func() {
		ctx, cancel := context.WithTimeout(a.end, patience)
		defer cancel()
		q.status, q.err = a.ask(ctx)
		a.answered(ctx, q)
	})
	return q
}

// answered ends a request. It logs an error when it starts and when it is over.
func (a *asker) answered(ctx context.Context, q *question) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if q.err != nil && ctx.Err() != nil {
		q.err = errSilent
	} else {
		a.silent = time.Time{}
	}
	switch failing := q.err != nil; {
	case a.end.Err() != nil: // it failed because the server ends
	case failing && !a.failing:
		a.log.Warn("metrics and health cannot be reported", "error", q.err)
	case !failing && a.failing:
		a.log.Info("metrics and health are reported again")
	}
	a.failing = q.err != nil
	a.question = nil
	close(q.done)
}

// silence returns how long the daemon has not answered; 0 if it does.
func (a *asker) silence() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.silent.IsZero() {
		return 0
	}
	return time.Since(a.silent)
}
