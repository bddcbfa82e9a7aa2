package servicebus

import (
	"testing"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestMain(m *testing.M) {
	sinktest.Main(m, func(target string) (sink.Sink, error) {
		return New("tattler/test", Options{ConnectionString: target})
	})
}

// TestSuiteFake runs Microsoft's client against our fake.
func TestSuiteFake(t *testing.T) {
	for name, o := range map[string]Options{
		"plain":    {},
		"sessions": {Sessions: true},
	} {
		t.Run(name, func(t *testing.T) {
			sinktest.Run(t, sinktest.Suite{
				Type: "*servicebus.Sink", Name: "servicebus", PerObject: o.Sessions,
				Start: func(t *testing.T) sinktest.Receiver { return newFake(t) },
				Open: func(t *testing.T, r sinktest.Receiver) sink.Sink {
					o.ConnectionString = r.Target()
					s, err := New("tattler/test", o)
					if err != nil {
						t.Fatal(err)
					}
					return s
				},
			})
		})
	}
}
