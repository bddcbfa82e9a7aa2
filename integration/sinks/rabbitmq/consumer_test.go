package rabbitmq_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/sink/rabbitmq"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// consume passes each change in a queue to handle once, however often it was delivered.
func consume(ch *amqp.Channel, queue string, handle func(event.Event) error) error {
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	ids := event.NewDedup(10_000) // lost on restart: if that matters, store ids with what handle writes
	for d := range deliveries {
		var e event.Event
		if err := json.Unmarshal(d.Body, &e); err != nil {
			return err
		}
		if !ids.Seen(e.ID) {
			if err := handle(e); err != nil {
				return err
			}
		}
		if err := d.Ack(false); err != nil {
			return err
		}
	}
	return nil
}

func consumer(t *testing.T, s *server) {
	ch, queue := s.queue(t, nil)
	out := newSink(t, rabbitmq.Options{URL: s.url(), Queue: queue})
	ms := sinktest.Messages(0, 5)
	send(t, out, ms)
	send(t, out, ms) // a repeat, as after a crash
	var got []string
	consuming := s.connect(t)
	seen := 0
	err := consume(consuming, queue, func(e event.Event) error {
		got = append(got, e.ID)
		if seen++; seen == len(ms) {
			return consuming.Close()
		}
		return nil
	})
	if err != nil && !strings.Contains(err.Error(), "not open") {
		t.Error(err)
	}
	if !slices.Equal(got, ids(ms)) {
		t.Errorf("handled %v, want each once: %v", got, ids(ms))
	}
	_ = ch
}

// TestDocs checks that the page shows the code that the tests run.
func TestDocs(t *testing.T) {
	rig.SameAsPage(t, "rabbitmq.md", "consumer_test.go")
}
