package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// TestDrain: a stop delivers the existing changes, in bounded time.
func TestDrain(t *testing.T) {
	slow := func(d time.Duration) func(context.Context, []sink.Message) (int, error) {
		return func(ctx context.Context, ms []sink.Message) (int, error) {
			select {
			case <-time.After(d):
				return len(ms), nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
	}
	some := func(ctx context.Context, _ []sink.Message) (int, error) {
		<-ctx.Done()
		return 40, ctx.Err()
	}
	for _, tc := range []struct {
		why      string
		send     func(context.Context, []sink.Message) (int, error)
		pause    bool
		want     int // messages
		at, most time.Duration
	}{
		{"all batches are sent", slow(time.Second), false, 250, 3 * time.Second, 3 * time.Second},
		{"as long as time permits", slow(4 * time.Second), false, 200, 10 * time.Second, 10*time.Second + time.Millisecond},
		{"a sink that hangs is cut off", slow(time.Hour), false, 0, 10 * time.Second, 10*time.Second + time.Millisecond},
		{"accepted messages are recorded, or they would be sent again", some, false, 40, 10 * time.Second, 10*time.Second + time.Millisecond},
		{"a sink that fails is not waited for", down, false, 0, 0, time.Millisecond},
		{"a paused one only gets the current batch", slow(time.Second), true, 100, time.Second, time.Second},
	} {
		t.Run(tc.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 250, deliver.Options{Drain: 10 * time.Second})
				r.sink.send = tc.send
				r.start() // the first batch is being sent
				if tc.pause {
					r.pump.Pause()
				}
				asked := time.Now()
				r.stop()
				if took := time.Since(asked); took < tc.at || took > tc.most {
					t.Errorf("took %s, want %s to %s", took, tc.at, tc.most)
				}
				if n := r.sink.count(); n != tc.want || r.cursor() != int64(n) || r.sink.closed != 1 {
					t.Errorf("%d messages, cursor %d, closed %d times; want %d", n, r.cursor(), r.sink.closed, tc.want)
				}
				if s := r.pump.Status(); s.State != deliver.Stopped {
					t.Errorf("state %s after the end", s.State)
				}
			})
		})
	}
}

// TestDrainEnds: changes recorded after the stop do not prolong it.
func TestDrainEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, deliver.Options{Drain: time.Hour})
		n := 1
		r.sink.send = func(_ context.Context, ms []sink.Message) (int, error) {
			time.Sleep(time.Second)
			r.append(n, 1)
			n++
			return len(ms), nil
		}
		r.start()
		asked := time.Now()
		r.stop()
		if took := time.Since(asked); took > 3*time.Second {
			t.Errorf("the drain took %s", took)
		}
	})
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, deliver.Options{Paused: true})
		r.start()
		defer r.stop()
		time.Sleep(time.Hour)
		r.want("a pump that starts paused", "[]")
		if s := r.pump.Status(); s.State != deliver.Paused {
			t.Errorf("paused: %+v", s)
		}
		r.pump.Resume()
		if s := r.pump.Status(); s.State != deliver.Running {
			t.Errorf("resumed, before the loop sees it: %+v", s)
		}
		r.want("resumed", "[1]")
		r.pump.Pause()
		r.append(1, 1)
		r.want("paused while it waited", "[1]")
		r.sink.send = down
		r.pump.Resume()
		synctest.Wait()
		r.sink.send = nil
		r.pump.Resume() // does not wait for the next attempt
		r.want("resumed while it waited for the next attempt", "[1 2]")
		if s := r.pump.Status(); s.State != deliver.Running || s.Cursor != 2 {
			t.Errorf("after all: %+v", s)
		}
	})
}

// TestRewind delivers again from a sequence number, in order and under the same ids.
func TestRewind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, deliver.Options{})
		r.start()
		r.want("at first", "[1 2 3 4]")
		if err := r.pump.Rewind(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		r.want("from there on again", "[1 2 3 4 3 4]")
		for _, seq := range []int64{-1, 5} {
			if err := r.pump.Rewind(t.Context(), seq); err == nil {
				t.Errorf("rewound to %d, of 4 changes", seq)
			}
		}
		r.pump.Pause()
		synctest.Wait()
		if err := r.pump.Rewind(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		if got := r.cursor(); got != 3 {
			t.Errorf("the cursor is at %d, want 3: a restart would forget the wish", got)
		}
		r.pump.Resume()
		r.want("asked while paused", "[1 2 3 4 3 4 4]")
		r.stop()
		if err := r.pump.Rewind(t.Context(), 0); !errors.Is(err, deliver.ErrStopped) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestDone: arrived messages count, even if that is not recorded yet.
func TestDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, deliver.Options{})
		noted := make(chan struct{})
		r.store.Fail = func(method string) error {
			if method == "SetCursor" && r.sink.count() > 0 {
				<-noted
			}
			return nil
		}
		r.start()
		defer r.stop()
		r.want("all has arrived", "[1 2 3]")
		time.AfterFunc(time.Second, func() { close(noted) })
		if seq, err := r.pump.Done(t.Context()); seq != 3 || err != nil || time.Since(r.sink.calls[0]) < time.Second {
			t.Errorf("%d, %v", seq, err)
		}
		r.sink.send = func(ctx context.Context, _ []sink.Message) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}
		r.append(3, 1)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.pump.Done(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a sink that hangs blocks the caller: %v", err)
		}
	})
}

// refuse refuses messages by sequence number, permanently.
func refuse(poison ...int) func(context.Context, []sink.Message) (int, error) {
	bad := map[string]bool{}
	for _, n := range poison {
		bad[id(n-1)] = true
	}
	return func(_ context.Context, ms []sink.Message) (int, error) {
		for i, m := range ms {
			if bad[m.ID] {
				return i, &sink.PermanentError{Err: errors.New("400 bad request")}
			}
		}
		return len(ms), nil
	}
}

func TestPoison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 6, deliver.Options{Retry: deliver.Retry{Attempts: 4}})
		damaged := sinktest.Item(6)
		damaged.Err = errors.New("checksum differs")
		r.store.Append(damaged, sinktest.Item(7))
		r.sink.send = refuse(3, 5)
		r.start()
		defer r.stop()
		r.want("nothing overtakes it while it is tried", "[1 2]")
		time.Sleep(time.Minute)
		r.want("all but the poison", "[1 2 4 6 8]")
		dead := r.store.Dead()
		if len(dead) != 3 || dead[0].ID != id(2) || dead[1].ID != id(4) || dead[2].ID != id(6) {
			t.Fatalf("dead letters: %+v", dead)
		}
		if d := dead[0]; d.Seq != 3 || d.Attempts != 4 || d.Reason != "400 bad request" || d.Sink != "test" || d.Subject != sinktest.Event(2).Subject || d.At.IsZero() {
			t.Errorf("dead letter: %+v", d)
		}
		if d := dead[2]; d.Attempts != 0 || d.Reason != "checksum differs" {
			t.Errorf("dead letter: %+v", d)
		}
		if s := r.pump.Status(); s.Dead != 3 || s.Delivered != 5 || s.Cursor != 8 {
			t.Errorf("%+v", s)
		}
	})
}

func TestReplayDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, deliver.Options{Retry: deliver.Retry{Attempts: 1}, Where: filter(func(c *change.Change) (bool, error) { return true, nil })})
		r.sink.send = refuse(1, 2, 3)
		r.start()
		r.want("without the poison", "[4]")
		r.pump.Pause()
		synctest.Wait()
		replay := func(why string, ids []string, taken int, wrong string, left ...int64) {
			t.Helper()
			n, err := r.pump.ReplayDead(t.Context(), ids...)
			if n != taken || (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
				t.Errorf("%s: took %d, %v; want %d, %q", why, n, err, taken, wrong)
			}
			dead := r.store.Dead()
			for i := range max(len(dead), len(left)) {
				if i >= len(dead) || i >= len(left) || dead[i].Seq != left[i] {
					t.Errorf("%s: left are %+v, want %v", why, dead, left)
					break
				}
			}
		}
		replay("an unknown one", []string{"nonsense"}, 0, "no such dead letter", 1, 2, 3)
		r.sink.send = down
		replay("a sink that is down ends it", nil, 0, errDown.Error(), 1, 2, 3)
		r.sink.send = refuse(2)
		replay("a letter refused again stays", nil, 2, "", 2)
		if d := r.store.Dead()[0]; d.Attempts != 2 {
			t.Errorf("attempts: %d, want 2", d.Attempts)
		}
		r.sink.send = nil
		replay("by id", []string{id(1)}, 1, "")
		r.want("each once, also while paused", "[4 1 3 2]")

		if err := r.store.SetAside(t.Context(), deliver.DeadLetter{ID: "gone", Seq: 99}); err != nil {
			t.Fatal(err)
		}
		replay("a change removed by retention", nil, 0, "no longer has", 99)
		r.stop()
		replay("after the end", nil, 0, deliver.ErrStopped.Error(), 99)
	})
}

// TestReplayIsCutOff: a replay that hangs does not prevent Run's end.
func TestReplayIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, deliver.Options{Retry: deliver.Retry{Attempts: 1}, SendTimeout: time.Hour})
		r.sink.send = refuse(1)
		r.start()
		r.sink.send = func(ctx context.Context, _ []sink.Message) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}
		ended := make(chan error)
		go func() {
			_, err := r.pump.ReplayDead(t.Context())
			ended <- err
		}()
		synctest.Wait()
		r.stop()
		if err := <-ended; err == nil || len(r.store.Dead()) != 1 {
			t.Errorf("%v; %d dead letters", err, len(r.store.Dead()))
		}
	})
}

// TestReplayTakenAtTheEnd: a letter accepted while the sink was interrupted is no longer a dead letter.
func TestReplayTakenAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, deliver.Options{Retry: deliver.Retry{Attempts: 1}, SendTimeout: time.Hour})
		r.sink.send = refuse(1)
		r.start()
		r.sink.send = func(ctx context.Context, ms []sink.Message) (int, error) {
			<-ctx.Done()
			return len(ms), nil
		}
		taken := make(chan int)
		go func() {
			n, err := r.pump.ReplayDead(t.Context())
			if err != nil {
				t.Error(err)
			}
			taken <- n
		}()
		synctest.Wait()
		r.stop()
		if n := <-taken; n != 1 || len(r.store.Dead()) != 0 {
			t.Errorf("took %d; %d dead letters", n, len(r.store.Dead()))
		}
	})
}

// TestAgain: a sink learns which messages a user requested again, also from the next process.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, deliver.Options{})
		again := func(why, want string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for _, m := range r.sink.got {
				got = append(got, fmt.Sprint(m.Again))
			}
			if s := strings.Join(got, " "); s != want {
				t.Errorf("%s: %s, want %s", why, s, want)
			}
			r.sink.got = nil
		}
		r.start()
		again("the first time", "false false false false")
		if err := r.pump.Rewind(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		again("a replay", "true true true")
		r.pump.Pause()
		if err := r.pump.Rewind(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		r.stop()
		r.append(4, 1)
		r.start()
		defer r.stop()
		again("one that a restart came between", "true true false")
	})
}
