package sinks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	server "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/mqtt"
)

// openMQTT runs a server without storage in this process, with a subscriber.
func openMQTT(_ context.Context, _ string, _ func(int)) (*place, error) {
	s := server.New(&server.Options{InlineClient: true, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err := s.AddHook(new(auth.AllowHook), nil); err != nil {
		return nil, fmt.Errorf("let everybody in: %w", err)
	}
	l := listeners.NewTCP(listeners.Config{ID: "tcp", Address: "127.0.0.1:0"})
	if err := s.AddListener(l); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := s.Serve(); err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	return &place{
		sink: func() (sink.Sink, error) { return mqtt.New(agent, mqtt.Options{URL: "mqtt://" + l.Address()}) },
		receive: func(ctx context.Context, arrived func(int)) error {
			const id = 1
			got := func(*server.Client, packets.Subscription, packets.Packet) { arrived(1) }
			if err := s.Subscribe("tattler/#", id, got); err != nil {
				return fmt.Errorf("subscribe: %w", err)
			}
			<-ctx.Done()
			if err := s.Unsubscribe("tattler/#", id); err != nil {
				return fmt.Errorf("unsubscribe: %w", err)
			}
			return ctx.Err()
		},
		close: func() error { return endMQTT(s) },
	}, nil
}

// endMQTT waits until only the subscriber is connected. If a client disconnects while the server ends the others, the
// server can deadlock: Clients.GetByListener of v2.7.9 takes a read lock twice.
func endMQTT(s *server.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	for s.Clients.Len() > 1 {
		select {
		case <-ctx.Done():
			return errors.New("clients stay connected to the MQTT server")
		case <-time.After(10 * time.Millisecond):
		}
	}
	return s.Close()
}
