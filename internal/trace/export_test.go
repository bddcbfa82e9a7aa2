package trace

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tattler-dev/tattler/internal/sink"
)

// fake is a client that answers as a test requires.
type fake struct {
	answer               func(ctx context.Context) error
	calls, spans, closed atomic.Int64 // spans: accepted
}

func (f *fake) Export(ctx context.Context, request proto.Message) (int64, string, error) {
	f.calls.Add(1)
	if f.answer != nil {
		if err := f.answer(ctx); err != nil {
			return 0, "", err
		}
	}
	for _, r := range request.(*tracepb.TracesData).ResourceSpans {
		f.spans.Add(int64(len(r.ScopeSpans[0].Spans)))
	}
	return 0, "", nil
}

func (f *fake) Close()         { f.closed.Add(1) }
func (f *fake) String() string { return "http://fake" }

// text is a log that can be read while it is written.
type text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

// running is an exporter that runs in a bubble.
type running struct {
	*Exporter
	fake *fake
	log  text
	stop func()
}

func run(t *testing.T, answer func(context.Context) error) *running {
	t.Helper()
	r := &running{fake: &fake{answer: answer}}
	r.Exporter = newExporter(r.fake, "t/1", DefaultOptions(), slog.New(slog.NewTextHandler(&r.log, nil)))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if n := r.fake.closed.Load(); n != 1 {
			t.Errorf("closed %d times", n)
		}
	}
	return r
}

func (r *running) add(from, changes int) {
	for n := from; n < from+changes; n++ {
		r.Journaled("prod", change(n), seen)
	}
}

var errAway = errors.New("connection refused")

// TestAway: spans wait while the receiver is away, up to a limit, and are sent once it is back. There is at most one warning a
// minute.
func TestAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Bool
		r := run(t, func(context.Context) error {
			if !back.Load() {
				return errAway
			}
			return nil
		})
		r.add(0, 10)
		<-time.After(10 * time.Second)
		synctest.Wait()
		if s := r.Status(); s.Error != errAway.Error() || s.Dropped != 0 || r.fake.calls.Load() < 2 {
			t.Errorf("soon: %+v after %d attempts", s, r.fake.calls.Load())
		}
		r.add(10, 2*maxQueued) // without waiting
		if s := r.Status(); s.Queued != 10+maxQueued || s.Dropped != maxQueued {
			t.Errorf("too many: %+v", s)
		}
		const minutes = 10
		<-time.After(minutes * time.Minute)
		synctest.Wait()
		if n := strings.Count(r.log.String(), "level=WARN"); n < 2 || n > minutes+1 {
			t.Errorf("%d warnings:\n%s", n, r.log.String())
		}
		before := r.Status()
		if before.Dropped <= maxQueued || before.Exported != 0 {
			t.Errorf("requests are given up: %+v", before)
		}
		back.Store(true)
		<-time.After(time.Minute)
		synctest.Wait()
		s := r.Status()
		if s.Error != "" || s.Queued != 0 || s.Dropped != before.Dropped || s.Exported != r.fake.spans.Load() || s.Exported+s.Dropped != 10+2*maxQueued {
			t.Errorf("back: %+v, %d spans arrived", s, r.fake.spans.Load())
		}
		if !strings.Contains(r.log.String(), "exported again") {
			t.Errorf("the log:\n%s", r.log.String())
		}
		r.stop()
	})
}

// TestRefused: a request that the receiver will never take is dropped at once, and the next one is sent.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var take atomic.Bool
		r := run(t, func(context.Context) error {
			if !take.Load() {
				return &sink.PermanentError{Err: errors.New("400")}
			}
			return nil
		})
		r.add(0, 1)
		<-time.After(5 * time.Second)
		synctest.Wait()
		if s := r.Status(); s.Dropped != 1 || r.fake.calls.Load() != 1 || s.Queued != 0 {
			t.Errorf("%+v after %d attempts", s, r.fake.calls.Load())
		}
		take.Store(true)
		r.add(1, 1)
		r.stop()
		if s := r.Status(); s.Dropped != 1 || s.Exported != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestRetryAfter: the exporter waits as long as the receiver asks, within limits.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ask atomic.Int64
		ask.Store(int64(20 * time.Second))
		r := run(t, func(context.Context) error {
			return &sink.RetryAfterError{After: time.Duration(ask.Load()), Err: errors.New("429")}
		})
		r.add(0, 1)
		<-time.After(15 * time.Second)
		synctest.Wait()
		if r.fake.calls.Load() != 1 {
			t.Errorf("%d attempts before the time", r.fake.calls.Load())
		}
		ask.Store(int64(24 * time.Hour))
		<-time.After(5 * time.Minute)
		synctest.Wait()
		if s := r.Status(); s.Dropped != 1 {
			t.Errorf("a day is too long: %+v", s)
		}
		r.stop()
	})
}

// TestHangs: the end does not wait for a receiver that does not answer.
func TestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		r.add(0, 2*maxBatch)
		<-time.After(5 * time.Second)
		if s := r.Status(); s.Queued != 2*maxBatch || r.fake.calls.Load() != 1 {
			t.Errorf("spans that are being sent are neither exported nor dropped nor queued: %+v", s)
		}
		r.stop() // otherwise the bubble is deadlocked
		if s := r.Status(); s.Dropped != 2*maxBatch || s.Queued != 0 || strings.Count(r.log.String(), "dropped=512") != 2 {
			t.Errorf("%+v\n%s", s, r.log.String())
		}
	})
}
