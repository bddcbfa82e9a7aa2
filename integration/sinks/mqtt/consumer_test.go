package mqtt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/eclipse/paho.golang/paho"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/sink/mqtt"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// consume hands each change to handle once, as the server sends them, until one fails, the connection is lost
// or ctx ends. What is not acknowledged by then comes again with the next call.
func consume(ctx context.Context, conn net.Conn, seen *event.Dedup, handle func(*event.Event) error) error {
	ctx, end := context.WithCancelCause(ctx)
	arrived := make(chan *paho.Publish)
	client := paho.NewClient(paho.ClientConfig{
		ClientID: "audit", Conn: conn, EnableManualAcknowledgment: true, OnClientError: end,
		OnServerDisconnect: func(d *paho.Disconnect) { end(errors.New(d.Packet().Reason())) },
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
			select {
			case arrived <- p.Packet:
			case <-ctx.Done():
			}
			return true, nil
		}},
	})
	day := uint32(24 * 60 * 60) // so long does the server keep what comes while we are away
	session, err := client.Connect(ctx, &paho.Connect{ClientID: "audit", KeepAlive: 30, Properties: &paho.ConnectProperties{SessionExpiryInterval: &day}})
	if err != nil {
		return err
	}
	defer func() { end(nil); _ = client.Disconnect(&paho.Disconnect{}) }()
	if !session.SessionPresent { // else it has subscribed already
		if _, err := client.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: "tattler/+/+/deleted", QoS: 1}}}); err != nil {
			return err
		}
	}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case m := <-arrived:
			var e event.Event
			if err := json.Unmarshal(m.Payload, &e); err != nil {
				return err
			}
			if !seen.Seen(e.ID) { // a restart forgets: where that does harm, note ids beside what handle writes
				if err := handle(&e); err != nil {
					seen.Forget(e.ID)
					return err
				}
			}
			if err := client.Ack(m); err != nil && !errors.Is(err, paho.ErrPacketNotFound) { // not found: it came twice
				return err
			}
		}
	}
}

// TestConsumer: the example of the page is what runs here. It sees each change once, also those that were sent
// again, and those that came while it was away.
func TestConsumer(t *testing.T) {
	rig.SameAsPage(t, "mqtt.md", "consumer_test.go")
	b := start(t, &broker{subscribed: make(chan struct{}, 10)})
	ms := sinktest.Messages(0, 6)
	for i := range ms {
		ms[i].Event.Data.Op = event.Deleted // the topic has it
	}
	s := newSink(t, b, mqtt.Options{})
	seen := event.NewDedup(1000)
	var got []string
	run := func(handle func(*event.Event) error, during func()) error {
		conn := rig.Must(net.Dial("tcp", b.address()))(t)
		ended := make(chan error, 1)
		go func() { ended <- consume(t.Context(), conn, seen, handle) }()
		during()
		return <-ended
	}
	enough := errors.New("enough")
	err := run(func(e *event.Event) error {
		if len(got) == 2 {
			return errors.New("not now")
		}
		got = append(got, e.ID)
		return nil
	}, func() { <-b.subscribed; send(t, s, ms[:4], 4, "") })
	if err == nil || err.Error() != "not now" {
		t.Fatal(err)
	}
	send(t, s, ms, 6, "") // while nobody is there: four repeats, and two more
	// This server acknowledges before it passes on, and loses what it passes on while a session begins.
	sinktest.Until(t, func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.passedOn < 10 {
			return fmt.Errorf("%d of 10 messages are passed on", b.passedOn)
		}
		return nil
	})
	err = run(func(e *event.Event) error {
		if got = append(got, e.ID); len(got) == len(ms) {
			return enough
		}
		return nil
	}, func() {})
	// This server sends what was not acknowledged within one second again in any order, and not as MQTT wants it.
	want := ids(ms)
	slices.Sort(got)
	slices.Sort(want)
	if !errors.Is(err, enough) || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}
