package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
)

// deliveries records what a pump reports.
type deliveries struct {
	began time.Time

	mu    sync.Mutex
	lines []string
	lost  int
}

func (d *deliveries) options() deliver.Options {
	d.began = time.Now()
	return deliver.Options{Traces: d, Retry: deliver.Retry{Attempts: 2}}
}

func (d *deliveries) Follows(string) bool { return true }

func (d *deliveries) Untraced() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost++
}

func (d *deliveries) Delivered(one deliver.Delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := -1
	for i := range 50 {
		if id(i) == one.ID {
			n = i + 1
		}
	}
	line := fmt.Sprintf("%d attempts=%d", n, one.Attempts)
	if one.Err != nil {
		line += " err=" + one.Err.Error()
	}
	if one.SetAside {
		line += " set aside"
	}
	if one.Again {
		line += " again"
	}
	if one.Taken.Before(d.began) || one.Done.Before(one.Taken) {
		line += fmt.Sprintf(" at an impossible time: %s to %s", one.Taken, one.Done)
	}
	d.lines = append(d.lines, line)
}

// take returns what was reported since it was last called.
func (d *deliveries) take() (lines []string, lost int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines, d.lines = d.lines, nil
	return lines, d.lost
}

func (d *deliveries) want(t *testing.T, why, text string) {
	t.Helper()
	synctest.Wait()
	var want []string
	if text != "" {
		want = strings.Split(text, "\n")
	}
	lines, _ := d.take()
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("%s (-want +got):\n%s", why, diff)
	}
}

// TestDelivered: each change is reported once, when its delivery ends, with its attempts and last error.
func TestDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, calls := &deliveries{}, 0
		r := newRig(t, 3, d.options())
		r.sink.send = func(_ context.Context, ms []sink.Message) (int, error) {
			if calls++; calls == 1 {
				return 1, errDown
			}
			for i, m := range ms {
				if m.ID == id(2) {
					return i, &sink.PermanentError{Err: errors.New("no")}
				}
			}
			return len(ms), nil
		}
		r.start()
		defer r.stop()
		d.want(t, "the first is acknowledged", "1 attempts=1")
		<-time.After(time.Hour)
		d.want(t, "the second is sent again; the third is refused", "2 attempts=2 err=the receiver is down\n3 attempts=3 err=no set aside")
		r.sink.send = nil
		if n, err := r.pump.ReplayDead(t.Context()); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		d.want(t, "a dead letter is replayed", "3 attempts=1 again")
		if err := r.pump.Rewind(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		d.want(t, "a replay", "2 attempts=1 again\n3 attempts=1 again")
		r.append(3, 1)
		d.want(t, "a later change", "4 attempts=1")
		if d.lost != 0 {
			t.Errorf("%d are lost", d.lost)
		}
	})
}

// TestDeliveredRefused: the error of a change that the sink refuses is not that of the changes in the same batch.
func TestDeliveredRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deliveries{}
		r := newRig(t, 3, d.options())
		r.sink.send = func(_ context.Context, ms []sink.Message) (int, error) {
			for i, m := range ms {
				if m.ID == id(1) {
					return i, &sink.PermanentError{Err: errors.New("no")}
				}
			}
			return len(ms), nil
		}
		r.start()
		defer r.stop()
		<-time.After(time.Hour)
		d.want(t, "the second is refused", "1 attempts=1\n2 attempts=2 err=no set aside\n3 attempts=3")
	})
}

// TestDeliveredSkip: a change that was skipped was set aside.
func TestDeliveredSkip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deliveries{}
		r := newRig(t, 2, d.options())
		r.sink.send = refusing(0)
		r.start()
		defer r.stop()
		<-time.After(2500 * time.Millisecond)
		synctest.Wait()
		attempts := r.pump.Status().Stuck.Attempts
		if _, err := r.pump.Skip(t.Context(), id(0)); err != nil {
			t.Fatal(err)
		}
		d.want(t, "it is skipped", fmt.Sprintf("1 attempts=%d err=403: blocked by a firewall set aside\n2 attempts=2 err=403: blocked by a firewall", attempts))
	})
}

// TestDeliveredHeld: a change that the sink holds is reported when the sink has sent it, or when it was set aside.
func TestDeliveredHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deliveries{}
		r, h := holding(t, 3, time.Minute)
		o := d.options()
		r.o.Traces, r.o.Retry = o.Traces, o.Retry
		h.answer(func(context.Context, []sink.Message) error { return errDown })
		r.start()
		defer r.stop()
		d.want(t, "it is held", "")
		<-time.After(90 * time.Second)
		d.want(t, "the flush fails", "")
		h.answer(nil)
		<-time.After(time.Hour)
		synctest.Wait()
		if lines, lost := d.take(); len(lines) != 3 || !strings.HasPrefix(lines[0], "1 attempts=") || !strings.HasSuffix(lines[2], " err=the receiver is down") || lost != 0 {
			t.Errorf("%q, %d lost", lines, lost)
		}
		h.answer(func(_ context.Context, ms []sink.Message) error {
			for _, m := range ms {
				if m.ID == id(4) {
					return &sink.PermanentError{Err: errors.New("no")}
				}
			}
			return nil
		})
		r.append(3, 3)
		<-time.After(time.Hour)
		synctest.Wait()
		lines, _ := d.take()
		got := strings.Join(lines, "\n")
		for _, want := range []string{"4 attempts=", "5 attempts=", "6 attempts="} {
			if strings.Count(got, want) != 1 {
				t.Errorf("%q is not reported once:\n%s", want, got)
			}
		}
		if strings.Count(got, "set aside") != 1 || !strings.Contains(got, "err=no set aside") {
			t.Errorf("the refused one:\n%s", got)
		}
	})
}
