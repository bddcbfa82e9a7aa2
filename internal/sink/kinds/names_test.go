package kinds_test

import (
	"testing"

	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

// TestNames checks that two destinations on one server are two sinks, and that connection options make no new sink.
func TestNames(t *testing.T) {
	l := &config.Loader{Sinks: kinds.Tattler().Types()}
	name := func(address string) string {
		s, err := l.SinkFromURL(address)
		if err != nil {
			t.Fatal(err)
		}
		return s.Name
	}
	for _, tc := range []struct{ one, same, other string }{
		{"amqp://h/v?exchange=a", "amqp://u:p@h/v?exchange=a&insecure=true", "amqp://h/v?exchange=b"},
		{"amqp://h/v?exchange=a&key=k", "amqp://h/v?key=k&exchange=a", "amqp://h/v?exchange=a"},
		{"amqps://h?queue=a&ca=/a.pem", "amqps://h?queue=a&insecure=true", "amqps://h?queue=b"},
		{"redis://h/0?stream=a", "redis://:p@h/0?stream=a&maxLen=9&insecure=true", "redis://h/0?stream=b"},
		{"exec:/bin/on?arg=a", "exec:/bin/on?arg=a&timeout=9s", "exec:/bin/on?arg=b"},
		{"nats://h/s?stream=a", "nats://u:p@h/s?stream=a&timeout=9s&insecure=true", "nats://h/t?stream=a"},
		{"kafka://h,g/a", "kafka://u:p@h,g/a?sasl=plain&insecure=true", "kafka://h,g/b"},
	} {
		if one := name(tc.one); name(tc.same) != one || name(tc.other) == one {
			t.Errorf("%s is %s; %s is %s, %s is %s", tc.one, one, tc.same, name(tc.same), tc.other, name(tc.other))
		}
	}
}
