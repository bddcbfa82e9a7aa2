// Package sinktest checks that a sink keeps the contract of package sink, and provides fakes for tests of delivery.
//
// Each sink's tests call Run with a receiver that misbehaves on request, and Main, which turns the test's binary into
// the process that is killed. A sink declares what its receiver cannot do; Run skips only those cases.
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

// Suite describes a sink to check.
type Suite struct {
	// Type is the Go type that Open must return, such as *file.Sink. Name is the first word of its String.
	Type, Name string
	// Cannot lists the behaviours that the receiver does not support.
	Cannot []Behaviour
	// Once means that the sink knows what it has written, even after a kill -9: nothing arrives twice.
	Once bool
	// PerObject means that the sink sends messages of several objects at a time: it keeps the order of each object,
	// not the total order.
	PerObject bool
	// Start starts a receiver that stops at the end of the test.
	Start func(t *testing.T) Receiver
	// Open opens the sink for a receiver. It is called again after a Close.
	Open func(t *testing.T, r Receiver) sink.Sink
}

// Receiver is the destination of a sink under test.
type Receiver interface {
	// Target describes the receiver to the function that Main got, which opens the sink in another process.
	Target() string
	// Received returns the ids of the events that have arrived completely, in order of arrival. Anything that is
	// not an event fails the test.
	Received(t *testing.T) []string
	// Behave sets how the receiver treats messages from now on.
	Behave(b Behaviour, id string)
}

// Behaviour is how a receiver treats messages.
type Behaviour string

// The behaviours. Works takes all messages; Down takes none; Busy takes none and asks for a wait of 7 seconds;
// Hangs answers when the behaviour changes; Slow delays each answer; Refuses never takes the message with a given
// id, and takes the others.
const (
	Works   Behaviour = "works"
	Down    Behaviour = "down"
	Busy    Behaviour = "busy"
	Hangs   Behaviour = "hangs"
	Slow    Behaviour = "slow"
	Refuses Behaviour = "refuses"
)

// BusyFor is the wait that a busy receiver asks for.
const BusyFor = 7 * time.Second

// soon bounds, on a loaded machine, what should happen at once.
const soon = time.Minute

// Run checks a sink.
func Run(t *testing.T, s Suite) {
	cases := []struct {
		name  string
		needs Behaviour
		f     func(*testing.T, *rig)
	}{
		{"identity", Works, identity},
		{"order", Works, order},
		{"after close", Works, afterClose},
		{"context ended", Works, contextEnded},
		{"kill -9", Works, killed},
		{"retry", Down, retry},
		{"down for long", Down, downForLong},
		{"busy", Busy, busy},
		{"hang", Hangs, hang},
		{"slow", Slow, slow},
		{"poison", Refuses, poison},
	}
	for _, b := range s.Cannot {
		if b == Works || b == Down {
			t.Errorf("Cannot lists %s, which every receiver must support", b)
		}
	}
	for _, c := range cases {
		if slices.Contains(s.Cannot, c.needs) {
			continue
		}
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			r := &rig{Suite: s, receiver: s.Start(t)}
			r.receiver.Behave(Works, "")
			r.open(t)
			c.f(t, r)
			r.close(t)
			r.receiver.Behave(Works, "")
		})
	}
}

// rig is a sink and its receiver.
type rig struct {
	Suite
	receiver Receiver
	sink     sink.Sink
}

func (r *rig) open(t *testing.T) {
	t.Helper()
	r.sink = r.Open(t, r.receiver)
}

func (r *rig) close(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	if err := r.sink.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// send calls Send with a timeout, and checks the invariants of its result.
func (r *rig) send(t *testing.T, ctx context.Context, ms []sink.Message) (int, error) { //nolint:revive // t first, as in all helpers here
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 2*soon)
	defer cancel()
	acked, err := r.sink.Send(ctx, ms)
	if acked < 0 || acked > len(ms) || (acked == len(ms)) != (err == nil) {
		t.Fatalf("Send acknowledged %d of %d, with %v", acked, len(ms), err)
	}
	return acked, err
}

// pump runs a pump over count events until all are delivered, and returns its store.
func (r *rig) pump(t *testing.T, count int, o deliver.Options, during func(*deliver.Pump)) *Store {
	t.Helper()
	store := &Store{}
	for n := range count {
		store.Append(Item(n))
	}
	o.Name, o.Sink, o.Store, o.From = "suite", r.sink, store, deliver.Beginning
	p, err := deliver.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	if during != nil {
		during(p)
	}
	Until(t, func() error {
		last, err := store.Last(ctx)
		if s := p.Status(); err == nil && s.Cursor < last {
			err = fmt.Errorf("%d of %d done; last error: %s", s.Cursor, last, s.Error)
		}
		return err
	})
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	return store
}

// has checks that each event arrived at least once and in order per object. Unless repeated is true, it also checks
// that each arrived only once and, without PerObject, in total order.
func (r *rig) has(t *testing.T, repeated bool, want []string) {
	t.Helper()
	got := r.receiver.Received(t)
	if !repeated && r.PerObject && len(got) != len(want) {
		t.Errorf("received %d messages, want %d", len(got), len(want))
	}
	if !repeated && !r.PerObject {
		if !slices.Equal(got, want) {
			t.Errorf("received %v, want %v", got, want)
		}
		return
	}
	if err := inOrder(got, want); err != nil {
		t.Errorf("%v; received %v, want %v", err, got, want)
	}
}

// inOrder returns an error if an id is missing or unknown, or if it first arrived before an earlier one of its
// object.
func inOrder(got, want []string) error {
	place := map[string]int{}
	for i, id := range want {
		place[id] = i
	}
	seen := map[string]bool{}
	for _, id := range got {
		i, ok := place[id]
		if !ok {
			return fmt.Errorf("event %s was not expected", id)
		}
		for j := i % objects; j < i; j += objects {
			if !seen[want[j]] {
				return fmt.Errorf("event %d came before %d of the same object", i, j)
			}
		}
		seen[id] = true
	}
	if len(seen) != len(want) {
		return errors.New("events are missing")
	}
	return nil
}

func ids(ms []sink.Message) []string {
	out := make([]string, len(ms))
	for i, m := range ms {
		out[i] = m.ID
	}
	return out
}

// Until waits for a condition, and fails the test if it is not met in time.
func Until(t *testing.T, condition func() error) {
	t.Helper()
	deadline := time.After(soon)
	for tick := time.NewTicker(time.Millisecond); ; {
		err := condition()
		if err == nil {
			tick.Stop()
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("after %s: %v", soon, err)
		}
	}
}
