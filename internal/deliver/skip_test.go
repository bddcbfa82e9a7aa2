package deliver_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
)

// refusing accepts everything except one change, on which it fails with a temporary error.
func refusing(n int) func(context.Context, []sink.Message) (int, error) {
	return func(_ context.Context, ms []sink.Message) (int, error) {
		for i, m := range ms {
			if m.ID == id(n) {
				return i, errors.New("403: blocked by a firewall")
			}
		}
		return len(ms), nil
	}
}

// TestSkip: the change that blocks a sink is set aside, and later changes are delivered.
func TestSkip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 5, deliver.Options{})
		r.sink.send = refusing(2)
		r.start()
		defer r.stop()
		began := time.Now()
		time.Sleep(time.Hour)
		r.want("up to it", "[1 2]")
		s := r.pump.Status().Stuck
		if s == nil || s.ID != id(2) || s.Subject == "" || !s.Since.Equal(began) || s.Attempts < 10 || s.Error != "403: blocked by a firewall" {
			t.Fatalf("the blocking change: %+v", s)
		}
		if _, err := r.pump.Skip(t.Context(), id(3)); !errors.Is(err, deliver.ErrNotStuck) {
			t.Errorf("another change: %v", err)
		}
		if got, err := r.pump.Skip(t.Context(), id(2)); err != nil || got.ID != id(2) {
			t.Errorf("%+v, %v", got, err)
		}
		r.want("at once", "[1 2 4 5]")
		dead := r.store.Dead()
		if len(dead) != 1 || dead[0].Seq != 3 || dead[0].ID != id(2) || dead[0].Attempts != s.Attempts || dead[0].Subject != s.Subject ||
			dead[0].Reason != "skipped: 403: blocked by a firewall" {
			t.Errorf("%+v", dead)
		}
		if s := r.pump.Status(); s.Stuck != nil || s.State != deliver.Running || s.Dead != 1 || r.cursor() != 5 {
			t.Errorf("afterwards: %+v, cursor %d", s, r.cursor())
		}
		if _, err := r.pump.Skip(t.Context(), id(2)); !errors.Is(err, deliver.ErrNotStuck) {
			t.Errorf("twice: %v", err)
		}
		if taken, err := r.pump.ReplayDead(t.Context()); taken != 0 || err == nil {
			t.Errorf("a replay sends it: %d, %v", taken, err)
		}
	})
}

// TestSkipCutsOff: a receiver that hangs on the change does not hang the caller.
func TestSkipCutsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, deliver.Options{SendTimeout: time.Hour})
		r.sink.send = func(ctx context.Context, ms []sink.Message) (int, error) {
			if ms[0].ID == id(0) {
				<-ctx.Done()
				return 0, errors.New("no answer")
			}
			return len(ms), nil
		}
		r.start()
		defer r.stop()
		time.Sleep(90 * time.Minute) // the second attempt is under way
		began := time.Now()
		if _, err := r.pump.Skip(t.Context(), id(0)); err != nil {
			t.Error(err)
		}
		r.want("the later change", "[2]")
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// TestSkipIsWhole: the dead letter and the cursor are written together, or neither is.
func TestSkipIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, deliver.Options{})
		r.sink.send = refusing(0)
		var full atomic.Bool
		full.Store(true)
		r.store.Fail = func(method string) error {
			if full.Load() && method == "Skip" {
				return errors.New("disk full")
			}
			return nil
		}
		r.start()
		time.Sleep(time.Minute)
		if _, err := r.pump.Skip(t.Context(), id(0)); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("%v", err)
		}
		if r.cursor() != 0 || len(r.store.Dead()) != 0 {
			t.Errorf("the cursor is at %d, %d dead letters", r.cursor(), len(r.store.Dead()))
		}
		full.Store(false)
		if _, err := r.pump.Skip(t.Context(), id(0)); err != nil {
			t.Error(err)
		}
		if r.cursor() != 1 || len(r.store.Dead()) != 1 { // before the pump continues
			t.Errorf("the cursor is at %d, %d dead letters", r.cursor(), len(r.store.Dead()))
		}
		r.stop()
	})
}

// TestGiveUp: if the options limit it, nothing blocks a sink for longer.
func TestGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 5, deliver.Options{Retry: deliver.Retry{GiveUp: 24 * time.Hour}})
		r.sink.send = refusing(2)
		r.start()
		defer r.stop()
		time.Sleep(23 * time.Hour)
		r.want("not yet", "[1 2]")
		time.Sleep(2 * time.Hour)
		r.want("given up", "[1 2 4 5]")
		if dead := r.store.Dead(); len(dead) != 1 || dead[0].ID != id(2) || dead[0].Reason != "set aside after 24h0m0s: 403: blocked by a firewall" {
			t.Errorf("%+v", dead)
		}
	})
}

// TestPassingIsForEver: without the option, nothing is given up.
func TestPassingIsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, deliver.Options{})
		r.sink.send = refusing(0)
		r.start()
		defer r.stop()
		time.Sleep(30 * 24 * time.Hour)
		if dead := r.store.Dead(); len(dead) != 0 || r.cursor() != 0 {
			t.Errorf("%+v, cursor %d", dead, r.cursor())
		}
	})
}

// TestSkipHeld: the first of a sink's held messages is skipped; the rest is delivered, and nothing is lost.
func TestSkipHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, h := holding(t, 4, time.Minute)
		h.answer(func(_ context.Context, ms []sink.Message) error {
			if ms[0].ID == id(0) {
				return errors.New("403: blocked by a firewall")
			}
			return nil
		})
		r.start()
		defer r.stop()
		time.Sleep(time.Hour)
		s := r.pump.Status().Stuck
		if s == nil || s.ID != id(0) {
			t.Fatalf("the blocking change: %+v", s)
		}
		if _, err := r.pump.Skip(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		if dead := r.store.Dead(); len(dead) != 1 || dead[0].ID != id(0) || r.cursor() != 1 {
			t.Errorf("%+v, cursor %d", dead, r.cursor())
		}
		time.Sleep(time.Hour)
		r.want("the rest", "[2 3 4]")
		r.stands("all is done", 4, 0)
	})
}

// TestStuckIsForgotten: a rewind, and a sink that works again, clear it.
func TestStuckIsForgotten(t *testing.T) {
	for _, rewind := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 3, deliver.Options{})
			var works atomic.Bool
			fails := refusing(1)
			r.sink.send = func(ctx context.Context, ms []sink.Message) (int, error) {
				if works.Load() {
					return len(ms), nil
				}
				return fails(ctx, ms)
			}
			r.start()
			defer r.stop()
			time.Sleep(time.Minute)
			r.pump.Pause()
			synctest.Wait()
			if s := r.pump.Status(); s.Stuck == nil {
				t.Errorf("a pause forgets it: %+v", s)
			}
			if rewind {
				if err := r.pump.Rewind(t.Context(), 0); err != nil {
					t.Error(err)
				}
			} else {
				works.Store(true)
				r.pump.Resume()
				synctest.Wait()
			}
			if s := r.pump.Status(); s.Stuck != nil {
				t.Errorf("rewind %v: %+v", rewind, s.Stuck)
			}
		})
	}
}
