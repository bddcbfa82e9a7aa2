package deliver_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestDeliver(t *testing.T) {
	for _, tc := range []struct {
		why  string
		o    deliver.Options
		op   event.Op // of the third change
		want string   // of five, the first three of which existed before
	}{
		{"from the beginning", deliver.Options{From: deliver.Beginning}, event.Updated, "[1 2 3 4 5]"},
		{"from now", deliver.Options{From: deliver.Now}, event.Updated, "[4 5]"},
		{"snapshots only where asked", deliver.Options{From: deliver.Beginning}, event.Snapshot, "[1 2 4 5]"},
		{"and where asked", deliver.Options{From: deliver.Beginning, Snapshots: true}, event.Snapshot, "[1 2 3 4 5]"},
		{"a gap is a change", deliver.Options{From: deliver.Beginning}, event.Gap, "[1 2 3 4 5]"},
		{"a filter", deliver.Options{From: deliver.Beginning, Where: filter(func(c *change.Change) (bool, error) {
			return c.Before != nil && c.Name != "web-1", nil // it also sees changes that are not sent
		})}, event.Updated, "[1 3 4]"},
		{"a filter that fails hides nothing", deliver.Options{From: deliver.Beginning, Where: filter(func(c *change.Change) (bool, error) {
			if c.Name == "web-1" {
				return false, errors.New("no such key")
			}
			return c.Name == "web-0", nil
		})}, event.Updated, "[1 2 4 5]"},
	} {
		t.Run(tc.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 2, tc.o)
				third := sinktest.Item(2)
				third.Change.Op, third.Event().Data.Op = tc.op, tc.op
				r.store.Append(third)
				r.start()
				defer r.stop()
				r.append(3, 2)
				r.want(tc.why, tc.want)
				time.Sleep(2 * time.Second) // in the bubble: the cursor is written lazily if nothing is sent
				synctest.Wait()
				if got := r.cursor(); got != 5 {
					t.Errorf("the cursor is at %d, want 5", got)
				}
				if s := r.pump.Status(); strings.Contains(tc.why, "fails") && (s.FilterErrors != 2 || s.FilterError != "no such key") {
					t.Errorf("filter errors: %+v", s)
				}
			})
		})
	}
}

// TestQuietAndEmpty: changes that are not delivered advance the cursor.
func TestQuietAndEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, deliver.Options{})
		quiet := sinktest.Item(0)
		quiet.Change.Quiet = true
		r.store.Append(quiet, sinktest.Item(1), deliver.Item{Seq: 3})
		r.start()
		defer r.stop()
		r.want("only the change that is not quiet", "[2]")
		if got := r.cursor(); got != 3 {
			t.Errorf("the cursor is at %d, want 3", got)
		}
	})
}

// TestNowIsKept: a sink that starts now has its cursor before anything is recorded, even if it never runs: a
// second start does not skip the changes in between.
func TestNowIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, deliver.Options{From: deliver.Now})
		p, err := deliver.New(r.o)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.append(2, 1)
		r.start()
		r.want("the change recorded after Prepare", "[3]")
		r.stop()
		r.append(3, 1)
		r.start()
		defer r.stop()
		r.want("the cursor goes before from", "[3 4]")
	})
}

func TestBackoff(t *testing.T) {
	for _, tc := range []struct {
		why   string
		err   error
		least []time.Duration // of the waits; at most twice that
	}{
		{"twice as long each time, up to the limit", errDown, []time.Duration{500e6, 1e9, 2e9, 4e9, 5e9, 5e9}},
		{"the receiver's wish is kept", &sink.RetryAfterError{After: 4 * time.Second, Err: errDown}, []time.Duration{4e9, 4e9, 4e9, 4e9, 5e9, 5e9}},
		{"but it cannot stop us for ever", &sink.RetryAfterError{After: 1e6 * time.Hour, Err: errDown}, []time.Duration{3600e9}},
		{"a shorter wish than ours is ignored", &sink.RetryAfterError{After: time.Millisecond, Err: errDown}, []time.Duration{500e6, 1e9}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 1, deliver.Options{Retry: deliver.Retry{Min: time.Second, Max: 10 * time.Second}})
				left := len(tc.least)
				r.sink.send = func(_ context.Context, ms []sink.Message) (int, error) {
					if left--; left < 0 {
						return len(ms), nil
					}
					return 0, tc.err
				}
				r.start()
				defer r.stop()
				if s := r.pump.Status(); s.State != deliver.Retrying || s.Error != errDown.Error() || s.Failures != 1 || s.Retry.Before(time.Now()) {
					t.Errorf("after a failure: %+v", s)
				}
				time.Sleep(2 * time.Hour)
				r.want("delivered at last", "[1]")
				for i, least := range tc.least {
					if wait := r.sink.calls[i+1].Sub(r.sink.calls[i]); wait < least || wait > 2*least {
						t.Errorf("wait %d took %s, want %s to %s", i, wait, least, 2*least)
					}
				}
				if s := r.pump.Status(); s.State != deliver.Running || !s.Retry.IsZero() || s.Attempts != int64(len(tc.least))+1 {
					t.Errorf("after the recovery: %+v", s)
				}
			})
		})
	}
}

// TestPartial: messages acknowledged before an error are not sent again, also by the next process.
func TestPartial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 5, deliver.Options{})
		first := true
		r.sink.send = func(_ context.Context, ms []sink.Message) (int, error) {
			if first {
				first = false
				return 3, errDown
			}
			return len(ms), nil
		}
		r.start()
		defer r.stop()
		if got := r.cursor(); got != 3 {
			t.Errorf("the cursor is at %d, want 3", got)
		}
		time.Sleep(time.Minute)
		r.want("the rest, once", "[1 2 3 4 5]")
	})
}

// TestBrokenSink: a sink that breaks the contract only causes repetitions.
func TestBrokenSink(t *testing.T) {
	for _, tc := range []struct {
		why   string
		acked int
		err   error
		want  string
	}{
		{"more than there are", 9, nil, "[1 2 1 2]"},
		{"fewer than none", -1, errDown, "[1 2]"},
		{"some, and no error", 1, nil, "[1 2]"},
		{"all, and an error", 2, errDown, "[1 2]"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 2, deliver.Options{})
			first := true
			r.sink.send = func(_ context.Context, ms []sink.Message) (int, error) {
				if first {
					first = false
					return tc.acked, tc.err
				}
				return len(ms), nil
			}
			r.start()
			defer r.stop()
			time.Sleep(time.Minute)
			r.want(tc.why, tc.want)
		})
	}
}

// TestSlow: a sink that only manages part of a batch in time is slow, not broken.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, deliver.Options{SendTimeout: time.Second})
		r.sink.send = func(ctx context.Context, ms []sink.Message) (int, error) {
			if len(ms) == 1 {
				return 1, nil
			}
			<-ctx.Done()
			return 1, ctx.Err()
		}
		r.start()
		defer r.stop()
		time.Sleep(2 * time.Second)
		r.want("one at a time", "[1 2 3]")
		if s := r.pump.Status(); s.Failures != 0 || s.Delivered != 3 {
			t.Errorf("%+v", s)
		}
	})
}

// TestBatches: memory is bounded by messages, by bytes, and by the number of changes read.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 250, deliver.Options{})
		for n := range 3 {
			item := sinktest.Item(250 + n)
			item.Size = 600 << 10
			r.store.Append(item)
		}
		r.start()
		defer r.stop()
		if s := r.pump.Status(); s.Delivered != 253 {
			t.Errorf("delivered %d", s.Delivered)
		}
		got := r.sink.sizes
		if len(got) != 4 || got[0] != 100 || got[1] != 100 || got[2] != 52 || got[3] != 1 {
			t.Errorf("batches of %v, want 100, 100, 50 small ones and two big, one big", got)
		}
	})
}

// TestIdleCommits: changes that do not match cause few writes, and the cursor lags only briefly.
func TestIdleCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, deliver.Options{Where: filter(func(*change.Change) (bool, error) { return false, nil })})
		writes := 0
		r.store.Fail = func(method string) error {
			if method == "SetCursor" {
				writes++
			}
			return nil
		}
		r.start()
		defer r.stop()
		for n := range 1000 { // ten seconds
			r.append(n, 1)
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if writes < 10 || writes > 13 || r.cursor() != 1000 {
			t.Errorf("%d writes in ten seconds, want about one each; the cursor is at %d", writes, r.cursor())
		}
	})
}

// TestUnreadable: changes before an unreadable entry are delivered.
func TestUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, deliver.Options{})
		r.store.Append(deliver.Item{Seq: 4, Err: errors.New("no such page")})
		r.append(4, 1)
		r.start()
		defer r.stop()
		time.Sleep(time.Minute)
		r.want("up to it", "[1 2 3]")
		if s := r.pump.Status(); s.State != deliver.Retrying || !strings.Contains(s.Error, "no such page") {
			t.Errorf("%+v", s)
		}
	})
}

// TestStoreFails: while the cursor cannot be written, nothing is sent after the last message; other methods are
// retried.
func TestStoreFails(t *testing.T) {
	for _, method := range []string{"Cursor", "Read", "Wait", "SetCursor", "Skip"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 150, deliver.Options{})
				item := sinktest.Item(150)
				item.Err = errors.New("damaged")
				r.store.Append(item)
				var broken atomic.Bool
				broken.Store(true)
				r.store.Fail = func(m string) error {
					if broken.Load() && m == method {
						return errors.New("disk full")
					}
					return nil
				}
				r.start()
				time.Sleep(time.Hour)
				synctest.Wait()
				sent := r.sink.count()
				if method == "SetCursor" && sent > 100 {
					t.Errorf("%d messages were sent while the cursor was stuck", sent)
				}
				broken.Store(false)
				if s := r.pump.Status(); s.Failures == 0 || s.Failures > 30 {
					t.Errorf("failures: %+v", s)
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if dead := r.store.Dead(); r.sink.count() != 150 || r.cursor() != 151 || len(dead) != 1 {
					t.Errorf("%d messages, cursor %d, %d dead letters", r.sink.count(), r.cursor(), len(dead))
				}
				r.stop()
			})
		})
	}
}

func TestValidate(t *testing.T) {
	ok := func() deliver.Options {
		return deliver.Options{Name: "a", Sink: &receiver{}, Store: &sinktest.Store{}}
	}
	for _, tc := range []struct {
		why   string
		spoil func(*deliver.Options)
		want  string
	}{
		{"the least there must be", func(*deliver.Options) {}, ""},
		{"a cursor has a name", func(o *deliver.Options) { o.Name = "" }, "name"},
		{"a pump has a sink", func(o *deliver.Options) { o.Sink = nil }, "sink"},
		{"and a store", func(o *deliver.Options) { o.Store = nil }, "store"},
		{"from is a word", func(o *deliver.Options) { o.From = "yesterday" }, `from: "yesterday"`},
		{"include has three words", func(o *deliver.Options) { o.Include = []deliver.Include{"before", "diff"} }, `include: "diff"`},
		{"the names must fit", func(o *deliver.Options) { o.MaxBytes = 100 }, "maxBytes: at least 4096"},
		{"waits go up", func(o *deliver.Options) { o.Retry.Max = time.Millisecond }, "retry: max: 1ms is less than min: 1s"},
		{"time goes forward", func(o *deliver.Options) { o.Drain = -1 }, "timeout"},
		{"attempts are a number of times", func(o *deliver.Options) { o.Retry.Attempts = -1 }, "not be negative"},
	} {
		o := ok()
		tc.spoil(&o)
		_, err := deliver.New(o)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.why, err, tc.want)
		}
	}
}
