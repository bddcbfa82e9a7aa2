package deliver_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// holder is a sink that delivers the accepted messages of a window, after its first message. The delivered ones
// count as received.
type holder struct {
	*receiver
	window time.Duration
	full   int // the most that it holds; 0: any number
	// flush, if set, decides.
	flush func(ctx context.Context, ms []sink.Message) error

	held    []sink.Message
	due     time.Time
	flushes []int // how many each delivered, or tried to
	sends   int
}

func (h *holder) Send(_ context.Context, ms []sink.Message) (int, error) {
	h.sends++
	if len(h.held) == 0 && len(ms) > 0 {
		h.due = time.Now().Add(h.window)
	}
	h.held = append(h.held, ms...)
	if h.full > 0 && len(h.held) >= h.full {
		h.due = time.Now()
	}
	return len(ms), nil
}

func (h *holder) Due() time.Time { return h.due }

func (h *holder) Flush(ctx context.Context) error {
	h.flushes = append(h.flushes, len(h.held))
	h.mu.Lock()
	flush := h.flush
	h.mu.Unlock()
	if flush != nil {
		if err := flush(ctx, h.held); err != nil {
			return err
		}
	}
	h.mu.Lock()
	h.got = append(h.got, h.held...)
	h.mu.Unlock()
	h.Drop()
	return nil
}

// answer sets the error of later calls of Flush; nil for success.
func (h *holder) answer(flush func(ctx context.Context, ms []sink.Message) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.flush = flush
}

func (h *holder) Drop() { h.held, h.due = nil, time.Time{} }

// holding is a rig whose sink holds messages for a duration.
func holding(t *testing.T, changes int, window time.Duration) (*rig, *holder) {
	r := newRig(t, changes, deliver.Options{})
	h := &holder{receiver: r.sink, window: window}
	r.o.Sink = h
	return r, h
}

// stands checks the cursor and the number of held messages.
func (r *rig) stands(why string, cursor, held int64) {
	r.Helper()
	synctest.Wait()
	if s := r.pump.Status(); r.cursor() != cursor || s.Cursor != cursor || s.Held != held {
		r.Errorf("%s: the cursor is at %d (status %d), held are %d; want %d and %d", why, r.cursor(), s.Cursor, s.Held, cursor, held)
	}
}

func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, h := holding(t, 0, 10*time.Second)
		quiet := sinktest.Item(0)
		quiet.Change.Quiet = true
		r.store.Append(quiet)
		r.append(1, 2)
		r.start()
		defer r.stop()
		time.Sleep(2 * time.Second) // in the bubble: the cursor is written lazily if nothing is sent
		synctest.Wait()
		r.stands("unwanted changes are done, held ones are not", 1, 2)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		r.append(3, 1)
		r.stands("it reads on", 1, 3)
		r.want("nothing is delivered before its time", "[]")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		r.want("all at once", "[2 3 4]")
		r.stands("delivered messages are done", 4, 0)
		if s := r.pump.Status(); s.Delivered != 3 || !slices.Equal(h.flushes, []int{3}) {
			t.Errorf("delivered %d, flushes %v", s.Delivered, h.flushes)
		}
		r.append(4, 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		r.want("the next window", "[2 3 4 5]")
		r.stands("is done as well", 5, 0)
	})
}

// TestHoldNothing: a Holder that delivers at once is like any sink.
func TestHoldNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, deliver.Options{})
		r.o.Sink = eager{r.sink}
		r.start()
		defer r.stop()
		r.want("at once", "[1 2 3]")
		r.stands("and done", 3, 0)
	})
}

// eager is a Holder that delivers at once.
type eager struct{ *receiver }

func (eager) Due() time.Time              { return time.Time{} }
func (eager) Flush(context.Context) error { return errors.New("there is nothing to flush") }
func (eager) Drop()                       {}

func TestHoldFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, h := holding(t, 250, time.Hour)
		h.full = 150
		r.start()
		defer r.stop()
		r.stands("a sink that is full does not wait", 200, 50)
		if !slices.Equal(h.flushes, []int{200}) {
			t.Errorf("flushes %v", h.flushes)
		}
	})
}

// TestHoldRetries: while the receiver is down, held messages are neither read again nor added to.
func TestHoldRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, h := holding(t, 3, time.Second)
		h.flush = func(context.Context, []sink.Message) error {
			return &sink.RetryAfterError{After: 7 * time.Second, Err: errDown}
		}
		r.start()
		defer r.stop()
		time.Sleep(time.Second)
		synctest.Wait()
		r.append(3, 1)
		time.Sleep(time.Hour)
		synctest.Wait()
		r.stands("down", 0, 3)
		if s := r.pump.Status(); s.State != deliver.Retrying || len(h.flushes) < 10 || s.Failures != int64(len(h.flushes)) || h.sends != 1 {
			t.Errorf("%+v; %d flushes, %d sends", s, len(h.flushes), h.sends)
		}
		h.answer(nil)
		r.pump.Resume()
		time.Sleep(time.Minute)
		synctest.Wait()
		r.want("once it works again", "[1 2 3 4]")
		r.stands("all done", 4, 0)
	})
}

// TestHoldHangs: Flush has the same time limit as Send.
func TestHoldHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, h := holding(t, 1, time.Second)
		h.answer(func(ctx context.Context, _ []sink.Message) error {
			<-ctx.Done()
			return ctx.Err()
		})
		r.start()
		defer r.stop()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if s := r.pump.Status(); s.Failures == 0 || !strings.Contains(s.Error, "deadline") {
			t.Errorf("%+v", s)
		}
		h.answer(nil)
	})
}

// TestHoldPoison: of messages refused together, only the one that is the cause is set aside.
func TestHoldPoison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, h := holding(t, 40, time.Second)
		bad := refuse(7, 30)
		h.answer(func(ctx context.Context, ms []sink.Message) error {
			if _, err := bad(ctx, ms); err != nil {
				return err
			}
			return nil
		})
		r.start()
		defer r.stop()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		dead := r.store.Dead()
		if len(dead) != 2 || dead[0].ID != id(6) || dead[0].Seq != 7 || dead[0].Attempts != 3 || dead[0].Reason != "400 bad request" || dead[1].ID != id(29) {
			t.Errorf("dead letters %+v", dead)
		}
		r.stands("all done", 40, 0)
		if s := r.pump.Status(); s.Delivered != 38 || r.sink.count() != 38 || len(h.flushes) > 30 {
			t.Errorf("%+v; flushes %v", s, h.flushes)
		}
		r.append(40, 3)
		time.Sleep(time.Minute)
		synctest.Wait()
		if last := h.flushes[len(h.flushes)-1]; last != 3 {
			t.Errorf("later messages are delivered %d at a time, want all 3", last)
		}
		h.answer(nil)
		if n, err := r.pump.ReplayDead(t.Context(), id(6)); n != 1 || err != nil {
			t.Errorf("replayed %d, %v", n, err)
		}
		if got := h.flushes[len(h.flushes)-1]; got != 1 || len(r.store.Dead()) != 1 {
			t.Errorf("the replay delivered %d, left are %+v", got, r.store.Dead())
		}
	})
}

// TestHoldDamaged: a change that cannot be read, after a held one, is set aside, and the cursor stays.
func TestHoldDamaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := holding(t, 1, time.Minute)
		damaged := sinktest.Item(1)
		damaged.Err = errors.New("checksum differs")
		r.store.Append(damaged, sinktest.Item(2))
		r.start()
		defer r.stop()
		r.stands("held", 0, 2)
		if dead := r.store.Dead(); len(dead) != 1 || dead[0].Seq != 2 {
			t.Errorf("dead letters %+v", dead)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		r.want("delivered", "[1 3]")
		r.stands("done", 3, 0)
	})
}

// TestHoldIsDropped: whenever the pump moves, held messages are sent again, and delivered in time.
func TestHoldIsDropped(t *testing.T) {
	for _, tc := range []struct {
		why  string
		do   func(r *rig)
		want string
	}{
		{"a restart", func(r *rig) { r.stop(); r.start() }, "[1 2 3]"},
		{"a pause", func(r *rig) {
			r.pump.Pause()
			synctest.Wait()
			r.stands("paused", 0, 0)
			<-time.After(time.Hour)
			synctest.Wait()
			r.want("a paused sink delivers nothing", "[]")
			r.pump.Resume()
		}, "[1 2 3]"},
		{"a rewind", func(r *rig) {
			if err := r.pump.Rewind(r.Context(), 1); err != nil {
				r.Error(err)
			}
		}, "[2 3]"},
		{"a replay, which is delivered at once", func(r *rig) {
			if err := r.store.SetAside(r.Context(), deliver.DeadLetter{Sink: "test", Seq: 3, ID: id(2)}); err != nil {
				r.Error(err)
			}
			if n, err := r.pump.ReplayDead(r.Context()); n != 1 || err != nil {
				r.Errorf("replayed %d, %v", n, err)
			}
			r.want("at once", "[3]")
		}, "[3 1 2 3]"},
		{"a replay that fails", func(r *rig) {
			h := r.o.Sink.(*holder)
			h.answer(func(context.Context, []sink.Message) error { return errDown })
			if err := r.store.SetAside(r.Context(), deliver.DeadLetter{Sink: "test", Seq: 3, ID: id(2)}); err != nil {
				r.Error(err)
			}
			if n, err := r.pump.ReplayDead(r.Context()); n != 0 || !errors.Is(err, errDown) {
				r.Errorf("replayed %d, %v", n, err)
			}
			h.answer(nil)
		}, "[1 2 3]"},
	} {
		t.Run(tc.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, h := holding(t, 3, time.Minute)
				r.start()
				defer func() { r.stop() }()
				time.Sleep(30 * time.Second)
				synctest.Wait()
				r.stands("held", 0, 3)
				tc.do(r)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				r.want(tc.why, tc.want)
				r.stands("done", 3, 0)
				if len(h.held) != 0 {
					t.Errorf("the sink still holds %d", len(h.held))
				}
			})
		})
	}
}

// TestHoldEnds: at the end, held messages are neither delivered nor done.
func TestHoldEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, h := holding(t, 3, time.Hour)
		r.start()
		asked := time.Now()
		r.stop()
		if r.cursor() != 0 || r.sink.count() != 0 || r.sink.closed != 1 || len(h.held) != 0 || time.Since(asked) != 0 {
			t.Errorf("cursor %d, %d delivered, closed %d times, %d held, after %s", r.cursor(), r.sink.count(), r.sink.closed, len(h.held), time.Since(asked))
		}
	})
}

// TestHoldFilter: the filter is not applied twice while messages are held.
func TestHoldFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := holding(t, 0, time.Minute)
		asked := 0
		r.o.Where = filter(func(c *change.Change) (bool, error) {
			asked++
			return c.Name == "web-0", nil
		})
		r.start()
		defer r.stop()
		for n := range 30 {
			r.append(n, 1)
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if asked != 30 {
			t.Errorf("asked %d times about 30 changes", asked)
		}
	})
}
