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

// consume passes each change to handle once, as the server sends them, until one fails, the connection is lost or ctx
// ends. The server sends unacknowledged changes again with the next call.
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
	day := uint32(24 * 60 * 60) // how long the server keeps changes while we are away
	session, err := client.Connect(ctx, &paho.Connect{ClientID: "audit", KeepAlive: 30, Properties: &paho.ConnectProperties{SessionExpiryInterval: &day}})
	if err != nil {
		return err
	}
	defer func() { end(nil); _ = client.Disconnect(&paho.Disconnect{}) }()
	if !session.SessionPresent { // otherwise the subscription exists
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
			if !seen.Seen(e.ID) { // seen is lost on restart: if repeats do harm, store ids with what handle writes
				if err := handle(&e); err != nil {
					seen.Forget(e.ID)
					return err
				}
			}
			if err := client.Ack(m); err != nil && !errors.Is(err, paho.ErrPacketNotFound) { // not found: a repeat
				return err
			}
		}
	}
}

// TestConsumer runs the example of the page. It sees each change once, including repeats and changes that came while
// it was away.
func TestConsumer(t *testing.T) {
	rig.SameAsPage(t, "mqtt.md", "consumer_test.go")
	b := start(t, &broker{subscribed: make(chan struct{}, 10)})
	ms := sinktest.Messages(0, 6)
	for i := range ms {
		ms[i].Event.Data.Op = event.Deleted // part of the topic
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
	send(t, s, ms, 6, "") // while no consumer runs: four repeats, and two more
	// This server acknowledges before it passes messages on, and loses those that it passes on while a session
	// begins.
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
	// After one second, this server sends unacknowledged messages again in any order, against the specification.
	want := ids(ms)
	slices.Sort(got)
	slices.Sort(want)
	if !errors.Is(err, enough) || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}
