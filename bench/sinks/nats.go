package sinks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/nats"
)

// openNATS runs a NATS server in this process, with a stream on disk.
func openNATS(ctx context.Context, dir string, _ func(int)) (*place, error) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true})
	if err != nil {
		return nil, err
	}
	s.Start()
	end := func() { s.Shutdown(); s.WaitForShutdown() }
	if !s.ReadyForConnections(time.Minute) {
		end()
		return nil, errors.New("the NATS server does not start")
	}
	stream, hangUp, err := streamOf(ctx, s.ClientURL())
	if err != nil {
		end()
		return nil, err
	}
	return &place{
		sink: func() (sink.Sink, error) { return nats.New(agent, nats.Options{Servers: []string{s.ClientURL()}}) },
		receive: func(ctx context.Context, arrived func(int)) error {
			consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
			if err != nil {
				return fmt.Errorf("make consumer: %w", err)
			}
			c, err := consumer.Consume(func(jetstream.Msg) { arrived(1) })
			if err != nil {
				return fmt.Errorf("consume: %w", err)
			}
			<-ctx.Done()
			c.Stop()
			<-c.Closed()
			return ctx.Err()
		},
		close: func() error { hangUp(); end(); return nil },
	}, nil
}

// streamOf creates the stream of the sink's subjects.
func streamOf(ctx context.Context, url string) (s jetstream.Stream, hangUp func(), err error) {
	nc, err := natsgo.Connect(url)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to NATS: %w", err)
	}
	js, err := jetstream.New(nc)
	if err == nil {
		s, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "TATTLER", Subjects: []string{"tattler.>"}, Duplicates: 10 * time.Minute})
	}
	if err != nil {
		nc.Close()
		return nil, nil, fmt.Errorf("make stream: %w", err)
	}
	return s, nc.Close, nil
}
