package kafka_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/sink/kafka"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// consume passes each change in a topic to handle once, however often it was delivered.
func consume(ctx context.Context, brokers []string, topic string, handle func(event.Event) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic))
	if err != nil {
		return err
	}
	defer client.Close()
	ids := event.NewDedup(10_000) // lost on restart: if that matters, store ids with what handle writes
	for {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		for _, r := range fetches.Records() {
			var e event.Event
			if err := json.Unmarshal(r.Value, &e); err != nil {
				return err
			}
			if ids.Seen(e.ID) {
				continue
			}
			if err := handle(e); err != nil {
				return err
			}
		}
	}
}

func TestConsumerFake(t *testing.T) {
	c := fake(t, nil, kfake.SeedTopics(1, topic))
	ms := sinktest.Messages(0, 5)
	s := newSink(t, c, kafka.Options{})
	send(t, s, ms)
	send(t, s, ms) // a repeat, as after a crash
	send(t, s, sinktest.Messages(5, 1))
	enough := errors.New("enough")
	var got []string
	err := consume(t.Context(), c.ListenAddrs(), topic, func(e event.Event) error {
		if len(got) == len(ms) { // the last one was sent after the repeats
			return enough
		}
		got = append(got, e.ID)
		return nil
	})
	if !errors.Is(err, enough) || !slices.Equal(got, idsOf(ms)) {
		t.Errorf("handled %v, %v; want each once: %v", got, err, idsOf(ms))
	}
}

// TestDocs checks that the page shows the code that the tests run.
func TestDocs(t *testing.T) {
	rig.SameAsPage(t, "kafka.md", "consumer_test.go")
}
