package sinks

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/kafka"
)

// topic has one partition, so that messages arrive in the order in which they were sent.
const topic = "changes"

// openKafka runs a fake of Kafka in this process. It speaks the protocol, but does not write to disk.
func openKafka(context.Context, string, func(int)) (*place, error) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topic))
	if err != nil {
		return nil, fmt.Errorf("start kfake: %w", err)
	}
	brokers := cluster.ListenAddrs()
	return &place{
		sink: func() (sink.Sink, error) { return kafka.New(agent, kafka.Options{Brokers: brokers, Topic: topic}) },
		receive: func(ctx context.Context, arrived func(int)) error {
			c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic))
			if err != nil {
				return fmt.Errorf("make consumer: %w", err)
			}
			defer c.Close()
			for {
				got := c.PollFetches(ctx)
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if err := got.Err(); err != nil {
					return fmt.Errorf("consume: %w", err)
				}
				arrived(got.NumRecords())
			}
		},
		close: func() error { cluster.Close(); return nil },
	}, nil
}
