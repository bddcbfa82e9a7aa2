// Package rabbitmq_test checks the rabbitmq sink on a real RabbitMQ.
package rabbitmq_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/rabbitmq"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestMain(m *testing.M) { sinktest.Main(m, open) }

func open(target string) (sink.Sink, error) {
	address, queue, _ := strings.Cut(target, " ")
	return rabbitmq.New("tattler/test", rabbitmq.Options{URL: "amqp://guest:guest@" + address, Queue: queue})
}

// receiver is a queue, and a proxy in front of the server.
type receiver struct {
	t     *testing.T
	proxy *rig.Proxy
	queue string
	ch    *amqp.Channel

	mu  sync.Mutex
	ids []string
}

func newReceiver(t *testing.T, s *server) *receiver {
	ch, queue := s.queue(t, nil)
	return &receiver{t: t, proxy: rig.NewProxy(t, func() string { return s.plain }), queue: queue, ch: ch}
}

func (r *receiver) Target() string { return r.proxy.Addr() + " " + r.queue }

func (r *receiver) Behave(b sinktest.Behaviour, _ string) { r.proxy.Behave(b) }

// Received takes the messages of the queue.
func (r *receiver) Received(t *testing.T) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		d, ok, err := r.ch.Get(r.queue, true)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return append([]string(nil), r.ids...)
		}
		r.ids = append(r.ids, id(t, d))
	}
}

// id returns the id of a message, which must be an event.
func id(t *testing.T, d amqp.Delivery) string {
	t.Helper()
	var e struct{ ID string }
	if err := json.Unmarshal(d.Body, &e); err != nil || e.ID == "" || e.ID != d.MessageId {
		t.Errorf("message %q with body %q: %v", d.MessageId, d.Body, err)
	}
	return e.ID
}

// TestRabbitMQ starts one server for all tests, because starting takes long.
func TestRabbitMQ(t *testing.T) {
	s, err := start(rig.NewCertificates(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	for name, f := range map[string]func(*testing.T, *server){
		"suite": suite, "message": message, "unroutable": unroutable, "full queue": fullQueue, "too long": tooLong,
		"rights": rights, "encrypted": encrypted, "alarm": alarm, "key": routingKey, "consumer": consumer, "pace": pace,
	} {
		t.Run(name, func(t *testing.T) { f(t, s) })
	}
}

func suite(t *testing.T, s *server) {
	sinktest.Run(t, sinktest.Suite{
		Type: "*rabbitmq.Sink", Name: "rabbitmq",
		// RabbitMQ never names a wait, and refuses no message because of its content. One that is too long is another
		// test.
		Cannot: []sinktest.Behaviour{sinktest.Busy, sinktest.Refuses},
		Start:  func(t *testing.T) sinktest.Receiver { return newReceiver(t, s) },
		Open: func(t *testing.T, r sinktest.Receiver) sink.Sink {
			s, err := open(r.Target())
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	})
}
