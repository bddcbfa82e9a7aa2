package sinktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
)

// identity checks that the suite tests the intended sink.
func identity(t *testing.T, r *rig) {
	if got := fmt.Sprintf("%T", r.sink); got != r.Type {
		t.Errorf("the sink is a %s, want a %s", got, r.Type)
	}
	if got := r.sink.String(); !strings.HasPrefix(got, r.Name+" ") {
		t.Errorf("the sink calls itself %q, want %s and a place", got, r.Name)
	}
}

// order checks that all messages arrive once and in order, and that the sink does not read them after Send.
func order(t *testing.T, r *rig) {
	ms := Messages(0, 40)
	want := ids(ms)
	if _, err := r.send(t, t.Context(), nil); err != nil {
		t.Errorf("nothing to send: %v", err)
	}
	for batch := range slices.Chunk(ms, 7) {
		if _, err := r.send(t, t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		for i := range batch {
			for j := range batch[i].Body {
				batch[i].Body[j] = '!'
			}
			batch[i] = sink.Message{}
		}
	}
	r.has(t, false, want)
}

// afterClose checks that acknowledged messages are there, that nothing else arrives, and that Close works twice.
func afterClose(t *testing.T, r *rig) {
	ms := Messages(0, 5)
	if _, err := r.send(t, t.Context(), ms[:3]); err != nil {
		t.Fatal(err)
	}
	r.close(t)
	r.has(t, false, ids(ms[:3]))
	if _, err := r.send(t, t.Context(), ms[3:]); err == nil {
		t.Error("a closed sink sends")
	}
	r.close(t)
	r.open(t) // a restart
	if _, err := r.send(t, t.Context(), ms[3:]); err != nil {
		t.Fatal(err)
	}
	r.has(t, false, ids(ms))
}

// contextEnded checks that a Send whose context has already ended sends nothing and does no harm.
func contextEnded(t *testing.T, r *rig) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ms := Messages(0, 2)
	acked, err := r.send(t, ctx, ms)
	if acked != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("acknowledged %d, %v; want context.Canceled", acked, err)
	}
	passing(t, err)
	if _, err := r.send(t, t.Context(), ms); err != nil {
		t.Fatal(err)
	}
	r.has(t, true, ids(ms))
}

// passing checks that an error does not blame a message.
func passing(t *testing.T, err error) {
	t.Helper()
	var permanent *sink.PermanentError
	if err == nil || errors.As(err, &permanent) {
		t.Errorf("%v, want a passing error", err)
	}
}

// retry checks that a receiver that is down costs no message, and that the sink recovers.
func retry(t *testing.T, r *rig) {
	ms := Messages(0, 6)
	if _, err := r.send(t, t.Context(), ms[:2]); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r.receiver.Behave(Down, "")
		acked, err := r.send(t, t.Context(), ms[2:])
		passing(t, err)
		if acked != 0 {
			t.Errorf("a receiver that is down acknowledged %d", acked)
		}
	}
	r.receiver.Behave(Works, "")
	if _, err := r.send(t, t.Context(), ms[2:]); err != nil {
		t.Fatal(err)
	}
	r.has(t, false, ids(ms))
}

// quick retries fast, for tests.
var quick = deliver.Retry{Min: time.Millisecond, Max: 5 * time.Millisecond, Attempts: 2}

// downForLong checks that no message is given up, however often it failed.
func downForLong(t *testing.T, r *rig) {
	r.receiver.Behave(Down, "")
	store := r.pump(t, 150, deliver.Options{Retry: quick}, func(p *deliver.Pump) {
		Until(t, func() error {
			if n := p.Status().Failures; n < 30 {
				return fmt.Errorf("%d failures", n)
			}
			return nil
		})
		r.receiver.Behave(Works, "")
	})
	r.has(t, false, ids(Messages(0, 150)))
	if dead := store.Dead(); len(dead) != 0 {
		t.Errorf("dead letters: %+v", dead)
	}
}

// busy checks that the wait that the receiver asked for reaches the pump.
func busy(t *testing.T, r *rig) {
	r.receiver.Behave(Busy, "")
	_, err := r.send(t, t.Context(), Messages(0, 1))
	passing(t, err)
	var wish *sink.RetryAfterError
	if !errors.As(err, &wish) || wish.After != BusyFor {
		t.Errorf("%v, want an error with a wait of %s", err, BusyFor)
	}
}

// hang checks that Send ends with its context, and that the sink works afterwards.
func hang(t *testing.T, r *rig) {
	ms := Messages(0, 4)
	if _, err := r.send(t, t.Context(), ms[:1]); err != nil {
		t.Fatal(err)
	}
	r.receiver.Behave(Hangs, "")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	acked, err := r.send(t, ctx, ms[1:])
	passing(t, err)
	if took := time.Since(began); took > soon/2 || acked != 0 {
		t.Errorf("acknowledged %d after %s", acked, took)
	}
	r.receiver.Behave(Works, "")
	if _, err := r.send(t, t.Context(), ms[1:]); err != nil {
		t.Fatal(err)
	}
	r.has(t, true, ids(ms))

	r.receiver.Behave(Hangs, "")
	done := make(chan struct{})
	ctx, cancel = context.WithCancel(t.Context())
	go func() {
		defer close(done)
		_, err = r.sink.Send(ctx, ms[:1])
	}()
	cancel()
	<-done
	passing(t, err)
	r.receiver.Behave(Works, "") // Close may wait for the interrupted write
}

// slow checks that no message is lost if the receiver needs longer than one call may take.
func slow(t *testing.T, r *rig) {
	r.receiver.Behave(Slow, "")
	const count = 100 // which take longer than a call, if each is answered by itself; one answer never should
	store := r.pump(t, count, deliver.Options{Retry: quick, SendTimeout: time.Second}, nil)
	r.has(t, true, ids(Messages(0, count)))
	if dead := store.Dead(); len(dead) != 0 {
		t.Errorf("dead letters: %+v", dead)
	}
}

// poison checks that a message that the receiver always refuses becomes a dead letter, and that the others arrive.
func poison(t *testing.T, r *rig) {
	all := Messages(0, 30)
	r.receiver.Behave(Refuses, all[10].ID)
	acked, err := r.send(t, t.Context(), all[:12])
	var permanent *sink.PermanentError
	if acked != 10 || !errors.As(err, &permanent) {
		t.Fatalf("acknowledged %d, %v; want 10 and a permanent error", acked, err)
	}
	store := r.pump(t, len(all), deliver.Options{Retry: quick}, nil)
	dead := store.Dead()
	if len(dead) != 1 || dead[0].ID != all[10].ID || dead[0].Attempts != quick.Attempts || dead[0].Reason == "" {
		t.Errorf("dead letters: %+v", dead)
	}
	got := r.receiver.Received(t)
	for i, m := range all {
		if slices.Contains(got, m.ID) == (i == 10) {
			t.Errorf("event %d arrived: %v", i, i == 10)
		}
	}
}
