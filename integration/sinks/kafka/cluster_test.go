package kafka_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// gate stands in front of the fake brokers' listeners, and misbehaves on request.
type gate struct {
	mu      sync.Mutex
	b       sinktest.Behaviour
	changed chan struct{} // closed when the behaviour changes
	conns   map[*gated]bool
}

func newGate() *gate {
	return &gate{b: sinktest.Works, changed: make(chan struct{}), conns: map[*gated]bool{}}
}

func (g *gate) behave(b sinktest.Behaviour) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.b = b
	close(g.changed)
	g.changed = make(chan struct{})
	if b == sinktest.Down {
		for c := range g.conns {
			c.Conn.Close()
		}
	}
}

// hold waits as the behaviour demands. It returns false if nothing may pass.
func (g *gate) hold() bool {
	for {
		g.mu.Lock()
		b, changed := g.b, g.changed
		g.mu.Unlock()
		switch b {
		case sinktest.Down:
			return false
		case sinktest.Slow:
			<-time.After(time.Millisecond)
			return true
		case sinktest.Hangs:
			<-changed
		default:
			return true
		}
	}
}

type listener struct {
	net.Listener
	gate *gate
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g := &gated{c, l.gate}
	l.gate.mu.Lock()
	l.gate.conns[g] = true
	l.gate.mu.Unlock()
	return g, nil
}

type gated struct {
	net.Conn
	gate *gate
}

func (c *gated) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil && !c.gate.hold() {
		_ = c.Conn.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *gated) Close() error {
	c.gate.mu.Lock()
	delete(c.gate.conns, c)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

// fake starts a fake cluster that stops at the end of the test. It is kfake, by the author of the client; it proves
// nothing about Apache Kafka.
func fake(t *testing.T, g *gate, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	opts = append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)
	if g != nil {
		opts = append(opts, kfake.ListenFn(func(network, address string) (net.Listener, error) {
			l, err := net.Listen(network, address)
			return listener{l, g}, err
		}))
	}
	c, err := kfake.NewCluster(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if g != nil {
			g.behave(sinktest.Works)
		}
		c.Close()
	})
	return c
}

// received returns the records of a topic, partition by partition.
func received(t *testing.T, c *kfake.Cluster, topic string, config *tls.Config, opts ...kgo.Opt) []*kgo.Record {
	t.Helper()
	opts = append(opts, kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(topic), kgo.FetchMaxWait(100*time.Millisecond))
	if config != nil {
		opts = append(opts, kgo.DialTLSConfig(config))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var want int64
	info := c.TopicInfo(topic)
	if info == nil {
		return nil
	}
	for _, p := range c.PartitionInfos(topic) {
		want += p.HighWatermark
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out []*kgo.Record
	for int64(len(out)) < want {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatal(err)
		}
		out = append(out, fetches.Records()...)
	}
	return out
}

// ids returns the ids of records, which must be events.
func ids(t *testing.T, records []*kgo.Record) []string {
	t.Helper()
	var out []string
	for _, r := range records {
		var e struct{ ID string }
		if err := json.Unmarshal(r.Value, &e); err != nil || e.ID == "" {
			t.Errorf("value %q: %v", r.Value, err)
		}
		out = append(out, e.ID)
	}
	return out
}
