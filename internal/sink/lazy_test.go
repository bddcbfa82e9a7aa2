package sink

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// opener opens numbered connections and records what happens to them.
type opener struct {
	takes time.Duration // how long it takes to open one
	fails error
	// stubborn ignores the end of the context.
	stubborn bool

	mu     sync.Mutex
	opened int
	events []string
	broken map[int]bool
}

func (o *opener) note(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, fmt.Sprintf(format, args...))
}

func (o *opener) open(ctx context.Context) (int, error) {
	o.mu.Lock()
	o.opened++
	n := o.opened
	o.mu.Unlock()
	o.note("dial %d", n)
	ended := ctx.Done()
	if o.stubborn {
		ended = nil
	}
	select {
	case <-time.After(o.takes):
		return n, o.fails
	case <-ended:
		return 0, errors.New("cut off")
	}
}

func (o *opener) free(ctx context.Context, n int) error {
	if ctx.Err() == nil {
		o.note("close %d", n)
		return nil
	}
	o.note("drop %d", n)
	return errors.New("dropped")
}

func (o *opener) lazy(timeout time.Duration, patient bool) *Lazy[int] {
	return &Lazy[int]{
		Open: o.open, Free: o.free, Timeout: timeout, Patient: patient,
		Broken: func(n int) bool { o.mu.Lock(); defer o.mu.Unlock(); return o.broken[n] },
	}
}

// TestLazy runs a script of operations. Get shows the number of its connection or its error.
func TestLazy(t *testing.T) {
	second := func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	for _, tc := range []struct {
		why     string
		o       *opener
		timeout time.Duration
		patient bool
		script  string
		want    string
	}{
		{"opened once", &opener{}, 0, false, "get get close close", "dial 1, got 1, got 1, close 1"},
		{"not opened without a need", &opener{}, 0, false, "close get", "the sink is closed"},
		{"a context that has ended opens nothing", &opener{}, 0, false, "ended", "context canceled"},
		{"a reset opens another", &opener{}, 0, false, "get reset get close", "dial 1, got 1, drop 1, dial 2, got 2, close 2"},
		{"a late reset spares the new connection", &opener{}, 0, false, "get reset get reset1 get close", "dial 1, got 1, drop 1, dial 2, got 2, got 2, close 2"},
		{"one that broke while idle is replaced", &opener{broken: map[int]bool{1: true}}, 0, false, "get get close", "dial 1, got 1, drop 1, dial 2, got 2, close 2"},
		{"a failure is tried again", &opener{fails: errors.New("refused")}, 0, false, "get get close", "dial 1, refused, dial 2, refused"},
		{"the timeout", &opener{takes: time.Hour}, time.Second, false, "get close", "dial 1, no answer within 1s: context deadline exceeded"},
		{"the caller's context ends the attempt", &opener{takes: time.Hour}, time.Minute, false, "short short close", "dial 1, context deadline exceeded (cut off), dial 2, context deadline exceeded (cut off)"},
		{"a patient attempt continues", &opener{takes: 90 * time.Second}, 2 * time.Minute, true, "short short get close", "dial 1, context deadline exceeded, context deadline exceeded, got 1, close 1"},
		{"a patient attempt fails in the end", &opener{takes: time.Hour}, time.Minute, true, "short get get close", "dial 1, context deadline exceeded, no answer within 1m0s: context deadline exceeded, dial 2, no answer within 1m0s: context deadline exceeded"},
		{"close ends a patient attempt", &opener{takes: time.Hour}, 2 * time.Hour, true, "short close get", "dial 1, context deadline exceeded, the sink is closed"},
		{"close frees what an attempt opens nevertheless", &opener{takes: time.Minute, stubborn: true}, 0, true, "short close", "dial 1, context deadline exceeded, close 1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := tc.o
			l := o.lazy(tc.timeout, tc.patient)
			current := 0
			get := func(ctx context.Context) {
				n, err := l.Get(ctx)
				if err != nil {
					o.note("%v", err)
					return
				}
				current = n
				o.note("got %d", n)
			}
			for op := range strings.FieldsSeq(tc.script) {
				switch op {
				case "get":
					get(t.Context())
				case "short":
					get(second(t))
				case "ended":
					ctx, cancel := context.WithCancel(t.Context())
					cancel()
					get(ctx)
				case "reset":
					l.Reset(current)
				case "reset1":
					l.Reset(1)
				case "close":
					if err := l.Close(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
			if got := strings.Join(o.events, ", "); got != tc.want {
				t.Errorf("%s:\n got %s\nwant %s", tc.why, got, tc.want)
			}
		})
	}
}

// TestLazyClosing checks that Close ends an attempt that a Get waits for.
func TestLazyClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &opener{takes: time.Hour}
		l := o.lazy(0, false)
		got := make(chan error)
		go func() {
			_, err := l.Get(t.Context())
			got <- err
		}()
		synctest.Wait()
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-got; !errors.Is(err, ErrClosed) {
			t.Errorf("%v, want that it is closed", err)
		}
	})
}
