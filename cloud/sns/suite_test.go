package sns

import (
	"os"
	"testing"

	"github.com/tattler-dev/tattler/cloud/internal/amazon"
	"github.com/tattler-dev/tattler/cloud/internal/amazon/amazontest"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// topics are those of the fake, by kind.
var topics = map[string]string{
	"standard": "arn:aws:sns:eu-west-1:123456789012:changes",
	"fifo":     "arn:aws:sns:eu-west-1:123456789012:changes.fifo",
}

func TestMain(m *testing.M) {
	amazontest.Environment(os.Setenv)
	sinktest.Main(m, func(target string) (sink.Sink, error) { return New("tattler/test", on(target, "standard")) })
}

func on(target, kind string) Options {
	return Options{Topic: topics[kind], AWS: amazon.Access{Endpoint: target}}
}

// TestSuiteFake runs against a fake of ours.
func TestSuiteFake(t *testing.T) {
	for kind := range topics {
		t.Run(kind, func(t *testing.T) {
			sinktest.Run(t, sinktest.Suite{
				Type: "*sns.Sink", Name: "sns",
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
