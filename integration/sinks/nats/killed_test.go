package nats_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// TestKilledServer kills the server in the middle of its work, again and again, and checks that each change is stored
// once, and those of an object in order.
func TestKilledServer(t *testing.T) {
	const events, kills = 3000, 6
	r := newReceiver(t, "", "servers: ['nats://%s']\ntimeout: 5s", nil)
	s := rig.Must(open(r.Target()))(t)
	store := &sinktest.Store{}
	stored := 0
	add := func(upTo int) {
		for ; stored < upTo; stored++ {
			store.Append(sinktest.Item(stored))
		}
	}
	const part = events / (kills + 1)
	add(part)
	p := rig.Must(deliver.New(deliver.Options{
		Name: "killed", Sink: s, Store: store, From: deliver.Beginning,
		Retry: deliver.Retry{Min: time.Millisecond, Max: 20 * time.Millisecond},
	}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	upTo := func(cursor int64) {
		sinktest.Until(t, func() error {
			if status := p.Status(); status.Cursor < cursor {
				return fmt.Errorf("%d of %d done; last error: %s", status.Cursor, events, status.Error)
			}
			return nil
		})
	}
	for kill := range kills {
		upTo(int64(part*kill + part/2))
		r.Behave(sinktest.Down, "")
		add(part * (kill + 2)) // it cannot be delivered before the server is back
		if kill == 0 {
			sinktest.Until(t, func() error {
				if p.Status().Failures == 0 {
					return errors.New("the kill was not noticed")
				}
				return nil
			})
		}
		r.Behave(sinktest.Works, "")
	}
	add(events)
	upTo(events)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	place := map[string]int{}
	for i, id := range r.Received(t) {
		if _, repeated := place[id]; repeated {
			t.Errorf("%s is stored twice", id)
		}
		place[id] = i + 1
	}
	for n := range events {
		id, before := sinktest.Event(n).ID, 0
		if n >= 3 { // three objects take turns
			before = place[sinktest.Event(n-3).ID]
		}
		if place[id] <= before {
			t.Errorf("event %d is at %d, the one before it of its object at %d", n, place[id], before)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
