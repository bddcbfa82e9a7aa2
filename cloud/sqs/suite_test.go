package sqs

import (
	"os"
	"testing"

	"github.com/tattler-dev/tattler/cloud/internal/amazon"
	"github.com/tattler-dev/tattler/cloud/internal/amazon/amazontest"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// queues are those of the fake, by kind.
var queues = map[string]string{
	"standard": "https://sqs.eu-west-1.amazonaws.com/123456789012/changes",
	"fifo":     "https://sqs.eu-west-1.amazonaws.com/123456789012/changes.fifo",
}

func TestMain(m *testing.M) {
	amazontest.Environment(os.Setenv)
	sinktest.Main(m, func(target string) (sink.Sink, error) { return New("tattler/test", on(target, "standard")) })
}

func on(target, kind string) Options {
	return Options{Queue: queues[kind], AWS: amazon.Access{Endpoint: target}}
}

// TestSuiteFake runs against a fake of ours.
func TestSuiteFake(t *testing.T) {
	for kind := range queues {
		t.Run(kind, func(t *testing.T) {
			sinktest.Run(t, sinktest.Suite{
				Type: "*sqs.Sink", Name: "sqs",
				Start: func(t *testing.T) sinktest.Receiver { return amazontest.New(t) },
				Open: func(t *testing.T, r sinktest.Receiver) sink.Sink {
					s, err := New("tattler/test", on(r.Target(), kind))
					if err != nil {
						t.Fatal(err)
					}
					return s
				},
			})
		})
	}
}
