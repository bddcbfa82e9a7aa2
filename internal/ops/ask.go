package ops

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/internal/control"
)

// patience is how long the daemon may take to tell its status: less than Prometheus waits for a scrape
// (10 s, if nobody says otherwise).
const patience = 5 * time.Second

// errSilent says that the daemon did not answer in time.
var errSilent = errors.New("the daemon does not report its state")

// asker asks for the status, one question at a time: who asks while one is under way waits for its
// answer. So a daemon that does not answer costs one goroutine, however many ask and however often.
type asker struct {
	ask func(context.Context) (control.Status, error)
	end context.Context // of the server, and so of every question
	log *slog.Logger

	asking sync.WaitGroup

	mu       sync.Mutex
	question *question // under way; nil if none is
	// silent is when the first question was asked that got no answer in time; zero where the last one did.
	silent  time.Time
	failing bool // the last answer was an error
}

// question is asked once, and answered for all who wait.
type question struct {
	done   chan struct{} // closed with the answer
	status control.Status
	err    error
}

// status waits for an answer; errSilent says that there was none before ctx ended, or in time.
func (a *asker) status(ctx context.Context) (control.Status, error) {
	q := a.begin()
	select {
	case <-q.done:
		return q.status, q.err
	case <-ctx.Done():
		return control.Status{}, errSilent
	}
}

// begin returns the question that is under way, a new one if there is none.
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

// answered ends a question. An error is logged when it comes and when it has gone.
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
		a.log.Warn("metrics and health cannot be reported", "err", q.err)
	case !failing && a.failing:
		a.log.Info("metrics and health are reported again")
	}
	a.failing = q.err != nil
	a.question = nil
	close(q.done)
}

// silence is how long the daemon has not answered; 0 where it does.
func (a *asker) silence() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.silent.IsZero() {
		return 0
	}
	return time.Since(a.silent)
}
