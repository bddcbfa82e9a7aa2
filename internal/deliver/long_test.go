package deliver_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// long is a change whose event is longer than a number of bytes.
func long(n, bytes int) deliver.Item {
	item := sinktest.Item(n)
	e := *item.Event()
	e.Data.Op = event.Created
	e.Data.After = map[string]any{"data": strings.Repeat("x", bytes)}
	item.Change.Op, item.Event = event.Created, func() *event.Event { return &e }
	return item
}

// bounded refuses messages of more than most bytes, and states the limit limit (0: none).
func bounded(most, limit int) func(context.Context, []sink.Message) (int, error) {
	return func(_ context.Context, ms []sink.Message) (int, error) {
		for i, m := range ms {
			if len(m.Body) > most {
				return i, &sink.TooLargeError{Limit: limit, Err: errors.New("too long")}
			}
		}
		return len(ms), nil
	}
}

func TestTooLargeIsCut(t *testing.T) {
	for _, tc := range []struct {
		why         string
		most, limit int
	}{
		{"to the limit that the receiver states", 10_000, 10_000},
		{"by halves if it states no limit", 10_000, 0},
		{"by halves if it counts bytes that we do not see", 10_000, 2_000_000},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 1, deliver.Options{})
			r.store.Append(long(1, 1_000_000))
			r.append(2, 1)
			r.sink.send = bounded(tc.most, tc.limit)
			r.start()
			defer r.stop()
			r.want(tc.why, "[1 2 3]")
			if m := r.sink.got[1]; !m.Event.Data.Truncated || m.ID != id(1) || len(m.Body) > tc.most {
				t.Errorf("%s: %d bytes, id %s, truncated %v", tc.why, len(m.Body), m.ID, m.Event.Data.Truncated)
			}
			if r.sink.got[2].Event.Data.Truncated {
				t.Errorf("%s: the next is cut, too", tc.why)
			}
			if dead := r.store.Dead(); len(dead) != 0 || len(r.sink.calls) != 2 {
				t.Errorf("%s: %d calls, dead letters %+v", tc.why, len(r.sink.calls), dead)
			}
		})
	}
}

// TestTooLargeForEver: a message that cannot be cut further is handled as refused, and its replay is cut as
// well.
func TestTooLargeForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, deliver.Options{Retry: deliver.Retry{Attempts: 2}})
		r.store.Append(long(0, 100_000))
		r.append(1, 1)
		r.sink.send = func(_ context.Context, ms []sink.Message) (int, error) {
			if ms[0].ID == id(0) {
				return 0, &sink.TooLargeError{Limit: 10, Err: errors.New("too long")}
			}
			return len(ms), nil
		}
		r.start()
		defer r.stop()
		time.Sleep(10 * time.Second) // in the bubble
		r.want("only the other arrives", "[2]")
		dead := r.store.Dead()
		if len(dead) != 1 || dead[0].ID != id(0) || dead[0].Attempts != 2 || dead[0].Reason != "too long" {
			t.Fatalf("dead letters %+v", dead)
		}
		r.sink.send = bounded(10_000, 0)
		if n, err := r.pump.ReplayDead(t.Context()); n != 1 || err != nil {
			t.Errorf("replayed %d, %v", n, err)
		}
		r.want("the replayed one is cut", "[2 1]")
	})
}

// patient is a receiver that needs a long time.
type patient struct{ *receiver }

func (p patient) MinSendTimeout() time.Duration { return 5 * time.Minute }

// TestPatient: a sink that may take long is not interrupted before that.
func TestPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, deliver.Options{})
		r.sink.send = func(ctx context.Context, ms []sink.Message) (int, error) {
			select {
			case <-time.After(4 * time.Minute): // in the bubble
				return len(ms), nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		r.o.Sink = patient{r.sink}
		r.start()
		defer r.stop()
		time.Sleep(30 * time.Minute) // in the bubble
		r.want("it arrives", "[1]")
		if n := len(r.sink.calls); n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

// TestNonsenseBlamesNobody: a sink with impossible results has not named a message that it will never accept.
func TestNonsenseBlamesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, deliver.Options{Retry: deliver.Retry{Attempts: 1}})
		calls := 0
		r.sink.send = func(_ context.Context, ms []sink.Message) (int, error) {
			if calls++; calls < 4 {
				return len(ms) + 1, &sink.PermanentError{Err: errors.New("another one")}
			}
			return len(ms), nil
		}
		r.start()
		defer r.stop()
		time.Sleep(time.Minute) // in the bubble
		synctest.Wait()
		if dead := r.store.Dead(); len(dead) != 0 {
			t.Errorf("dead letters %+v", dead)
		}
	})
}

// TestAlone: after an error, messages are sent one by one, to find the cause.
func TestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 20, deliver.Options{})
		failed := false
		r.sink.send = func(_ context.Context, ms []sink.Message) (int, error) {
			if !failed {
				failed = true
				return 0, errors.New("some of them")
			}
			return len(ms), nil
		}
		r.start()
		defer r.stop()
		time.Sleep(10 * time.Second) // in the bubble
		synctest.Wait()
		if got := r.sink.sizes; len(got) != 3 || got[0] != 20 || got[1] != 1 || got[2] != 19 {
			t.Errorf("sent %v messages at a time, want 20, 1, 19", got)
		}
	})
}
