package sns

import (
	"os"
	"testing"

	"github.com/tattler-dev/tattler/cloud/internal/amazon"
	"github.com/tattler-dev/tattler/cloud/internal/amazon/amazontest"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// topics are the fake's topics by kind.
var topics = map[string]string{
	"standard": "arn:aws:sns:eu-west-1:123456789012:changes",
	"fifo":     "arn:aws:sns:eu-west-1:123456789012:changes.fifo",
}

func TestMain(m *testing.M) {
	amazontest.Environment(os.Setenv)
	sinktest.Main(m, func(target string) (sink.Sink, error) { return open(target, "standard") })
}

func on(target, kind string) Options {
	return Options{Topic: topics[kind], AWS: amazon.Access{Endpoint: target}}
}

func open(target, kind string) (sink.Sink, error) { return New(amazontest.Agent, on(target, kind)) }

// TestSuiteFake runs against our fake.
func TestSuiteFake(t *testing.T) { amazontest.Suite(t, "sns", open) }

// TestRequestFake checks a request as the fake sees it.
func TestRequestFake(t *testing.T) { amazontest.Requests(t, open) }
