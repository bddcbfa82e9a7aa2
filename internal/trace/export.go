package trace

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

const (
	// batchDelay is how long spans wait for others to join their request.
	batchDelay = time.Second
	// firstWait and lastWait are the waits between attempts; each is twice as long as the one before.
	firstWait = time.Second
	lastWait  = 30 * time.Second
	// giveUp is how long spans are sent again before they are dropped.
	giveUp = time.Minute
	// flushTime is the flush of an Exporter.
	flushTime = 2 * time.Second
	// logEvery is the interval between warnings.
	logEvery = time.Minute
)

// Run exports until ctx ends. Then it sends what is left, for a short time, and drops the rest. It returns nil.
func (e *Exporter) Run(ctx context.Context) error {
	defer e.client.Close()
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		t := time.AfterFunc(e.flush, cancel)
		context.AfterFunc(work, func() { t.Stop() })
	})()
	for e.gather(ctx) {
		e.send(ctx, work, e.take())
	}
	for batch := e.take(); len(batch) > 0; batch = e.take() {
		e.send(ctx, work, batch)
	}
	e.warn(true)
	return nil
}

// gather waits until there are spans to send; false if ctx ended.
func (e *Exporter) gather(ctx context.Context) bool {
	for e.queued() == 0 {
		select {
		case <-ctx.Done():
			return false
		case <-e.wake:
		}
	}
	for delay := time.After(batchDelay); e.queued() < maxBatch; {
		select {
		case <-ctx.Done():
			return false
		case <-delay:
			return true
		case <-e.wake:
		}
	}
	return ctx.Err() == nil
}

// queued returns the number of waiting spans.
func (e *Exporter) queued() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.queue)
}

// take removes the next batch from the queue.
func (e *Exporter) take() (batch []record) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := min(len(e.queue), maxBatch)
	batch = append(batch, e.queue[:n]...)
	rest := copy(e.queue, e.queue[n:])
	clear(e.queue[rest:])
	e.queue, e.status.Queued = e.queue[:rest], n
	return batch
}

// send exports a batch. It retries until ctx ends, and drops the batch if that does not help.
func (e *Exporter) send(ctx, work context.Context, batch []record) {
	request, spans := e.request(batch), len(batch)
	began := time.Now()
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		rejected, said, err := e.client.Export(work, request)
		if err == nil {
			e.took(spans, rejected, said)
			return
		}
		retry := !sink.BlamesMessage(err) && ctx.Err() == nil && time.Since(began) < giveUp
		e.failed(spans, err, retry)
		if !retry {
			return
		}
		pause := wait - rand.N(wait/2) // so that exporters do not synchronize
		var after *sink.RetryAfterError
		if errors.As(err, &after) {
			pause = min(max(pause, after.After), lastWait)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done(): // one last attempt
		}
	}
}

// took records that the receiver took a request, except for some of its spans.
func (e *Exporter) took(spans int, rejected int64, said string) {
	rejected = min(max(rejected, 0), int64(spans))
	e.mu.Lock()
	e.status.Exported += int64(spans) - rejected
	e.status.Dropped += rejected
	e.status.Queued = 0
	if e.status.Error = ""; rejected > 0 {
		e.status.Error, e.status.ErrorAt = fmt.Sprintf("the receiver rejected %d of %d spans: %s", rejected, spans, said), time.Now()
	}
	recovered := e.warned && rejected == 0
	e.mu.Unlock()
	if e.warn(false); recovered && e.warned {
		e.warned = false
		e.log.Info("traces are exported again", "to", e.client)
	}
}

// failed records a failed attempt; without retry, the spans are dropped.
func (e *Exporter) failed(spans int, err error, retry bool) {
	e.mu.Lock()
	e.status.Error, e.status.ErrorAt = err.Error(), time.Now()
	if !retry {
		e.status.Dropped += int64(spans)
		e.status.Queued = 0
	}
	e.mu.Unlock()
	e.warn(false)
}

// warn logs that something fails or was dropped, at most once in logEvery, or at the end.
func (e *Exporter) warn(end bool) {
	s := e.Status()
	dropped := s.Dropped - e.reported
	due := e.logged.IsZero() || time.Since(e.logged) >= logEvery
	if dropped == 0 && (s.Error == "" || end) || !due && !end {
		return
	}
	text := "traces are incomplete: spans were dropped"
	if dropped == 0 {
		text = "spans cannot be exported now; trying again"
	}
	e.log.Warn(text, "to", s.To, "dropped", dropped, "queued", s.Queued, "error", s.Error)
	e.logged, e.reported, e.warned = time.Now(), s.Dropped, s.Error != ""
}
