// Package kafka_test checks the kafka sink on kfake, a fake of Kafka's brokers.
package kafka_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/kafka"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

const topic = "changes"

func TestMain(m *testing.M) { sinktest.Main(m, open) }

func open(target string) (sink.Sink, error) {
	return kafka.New("tattler/test", kafka.Options{Brokers: []string{target}, Topic: topic})
}

type receiver struct {
	gate    *gate
	cluster *kfake.Cluster
}

func (r *receiver) Target() string { return r.cluster.ListenAddrs()[0] }

func (r *receiver) Behave(b sinktest.Behaviour, _ string) { r.gate.behave(b) }

func (r *receiver) Received(t *testing.T) []string {
	return ids(t, received(t, r.cluster, topic, nil))
}

// TestSuiteFake runs the suite against the fake, with one partition, so that the order is total.
func TestSuiteFake(t *testing.T) {
	sinktest.Run(t, sinktest.Suite{
		Type: "*kafka.Sink", Name: "kafka",
		// A busy broker answers late and names no wait; permanent refusals have a separate test.
		Cannot: []sinktest.Behaviour{sinktest.Busy, sinktest.Refuses},
		Start: func(t *testing.T) sinktest.Receiver {
			g := newGate()
			return &receiver{g, fake(t, g, kfake.SeedTopics(1, topic))}
		},
		Open: func(t *testing.T, r sinktest.Receiver) sink.Sink {
			s, err := open(r.Target())
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	})
}
