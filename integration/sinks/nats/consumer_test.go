package nats_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/sink/nats"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// consume passes each change to handle once, in order, until ctx ends.
func consume(ctx context.Context, js jetstream.JetStream, handle func(*event.Event) error) error {
	consumer, err := js.CreateOrUpdateConsumer(ctx, "TATTLER", jetstream.ConsumerConfig{
		Durable:       "audit",               // the server remembers the position
		FilterSubject: "tattler.*.*.deleted", // all namespaces and kinds
		MaxAckPending: 1,                     // no change overtakes one that failed
	})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, messages.Stop)()
	ids := event.NewDedup(10_000) // lost on restart: if that matters, store ids with what handle writes
	for {
		m, err := messages.Next()
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
		var e event.Event
		if err := json.Unmarshal(m.Data(), &e); err != nil {
			return err
		}
		if !ids.Seen(e.ID) && handle(&e) != nil {
			ids.Forget(e.ID)
			err = m.NakWithDelay(time.Second) // it is delivered again
		} else {
			err = m.Ack()
		}
		if err != nil {
			return err
		}
	}
}

// TestConsumer runs the example of the page, which sees each change once.
func TestConsumer(t *testing.T) {
	rig.SameAsPage(t, "nats.md", "consumer_test.go")
	b := newBroker(t, "")
	// The duplicate window is so short that the stream stores repeats, and the consumer must drop them.
	stream := nats.Stream{Name: "TATTLER", Create: true, Duplicates: 100 * time.Millisecond}
	ms := sinktest.Messages(0, 6)
	for i := range ms {
		ms[i].Event.Data.Op = event.Deleted
	}
	s := newSink(t, b, nats.Options{Stream: stream})
	js := b.admin(t)
	_ = send(t, s, ms, 6, "")
	sinktest.Until(t, func() error { // until the stream has forgotten them
		_ = send(t, s, ms, 6, "")
		if n := len(stored(t, js, "TATTLER")); n < 12 {
			return errors.New("no repeat is stored")
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	failed := false
	err := consume(ctx, js, func(e *event.Event) error {
		if len(got) == 3 && !failed {
			failed = true
			return errors.New("not now")
		}
		if got = append(got, e.ID); len(got) == len(ms) {
			rig.Must(js.Publish(t.Context(), "tattler.shop.deployments.deleted", ms[0].Body))(t) // a last repeat
			cancel()
		}
		return nil
	})
	var want []string
	for _, m := range ms {
		want = append(want, m.ID)
	}
	if !errors.Is(err, context.Canceled) || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}
