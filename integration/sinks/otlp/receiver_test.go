package otlp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configtls"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/otlp"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// collector is the Collector's receiver with our consumer behind it.
type collector struct {
	t        *testing.T
	o        otlp.Options
	tls      *configtls.ServerConfig
	token    string // the required header authorization; empty: none
	maxBytes int64  // of an HTTP request; 0: the Collector's default
	address  string
	receiver receiver.Logs // nil while it is down

	mu      sync.Mutex
	ids     []string
	logs    []plog.Logs
	b       sinktest.Behaviour
	id      string
	changed chan struct{} // closed when the behaviour changes
}

func newCollector(t *testing.T, o otlp.Options, server *configtls.ServerConfig, token string) *collector {
	t.Helper()
	address := fmt.Sprint("127.0.0.1:", rig.Must(rig.FreePort())(t)) // it stays the same while the receiver is down
	c := &collector{t: t, o: o, tls: server, token: token, address: address, changed: make(chan struct{})}
	scheme := "http://"
	if server != nil {
		scheme = "https://"
	}
	c.o.Endpoint = scheme + c.address
	t.Cleanup(func() { c.Behave(sinktest.Works, ""); c.stop() })
	return c
}

func (c *collector) start() {
	if c.receiver != nil {
		return
	}
	f := otlpreceiver.NewFactory()
	config := f.CreateDefaultConfig().(*otlpreceiver.Config)
	if c.o.Protocol == otlp.HTTP {
		h := config.Protocols.HTTP.GetOrInsertDefault()
		h.ServerConfig.NetAddr.Endpoint, h.ServerConfig.IncludeMetadata, h.ServerConfig.MaxRequestBodySize = c.address, true, c.maxBytes
		if c.tls != nil {
			h.ServerConfig.TLS = configoptional.Some(*c.tls)
		}
	} else {
		g := config.Protocols.GRPC.GetOrInsertDefault()
		g.NetAddr.Endpoint, g.IncludeMetadata = c.address, true
		if c.tls != nil {
			g.TLS = configoptional.Some(*c.tls)
		}
	}
	next, err := consumer.NewLogs(c.consume)
	if err != nil {
		c.t.Fatal(err)
	}
	r, err := f.CreateLogs(context.Background(), receivertest.NewNopSettings(f.Type()), config, next)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := r.Start(context.Background(), componenttest.NewNopHost()); err != nil {
		c.t.Fatal(err)
	}
	c.receiver = r
}

func (c *collector) stop() {
	if c.receiver == nil {
		return
	}
	if err := c.receiver.Shutdown(context.Background()); err != nil {
		c.t.Error(err)
	}
	c.receiver = nil
}

// Target returns what the suite varies.
func (c *collector) Target() string {
	return strings.Join([]string{string(c.o.Protocol), string(c.o.Body), string(c.o.Compression), c.o.Endpoint}, ",")
}

// open creates a sink for a Target.
func open(target string) (sink.Sink, error) {
	p := strings.Split(target, ",")
	return otlp.New("tattler/test", otlp.Options{Protocol: otlp.Protocol(p[0]), Body: otlp.Body(p[1]), Compression: otlp.Compression(p[2]), Endpoint: p[3]})
}

func (c *collector) Behave(b sinktest.Behaviour, id string) {
	c.mu.Lock()
	c.b, c.id = b, id
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	if b == sinktest.Down {
		c.stop()
	} else {
		c.start()
	}
}

func (c *collector) Received(*testing.T) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ids)
}

// consume is the consumer behind the receiver.
func (c *collector) consume(ctx context.Context, logs plog.Logs) error {
	c.mu.Lock()
	b, refused, changed := c.b, c.id, c.changed
	c.mu.Unlock()
	if got := strings.Join(client.FromContext(ctx).Metadata.Get("authorization"), ","); c.token != "" && got != c.token {
		return status.Errorf(codes.Unauthenticated, "%q is nobody", got)
	}
	ids, err := idsOf(logs)
	switch {
	case err != nil:
		return err
	case b == sinktest.Busy:
		s, err := status.New(codes.ResourceExhausted, "busy").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(sinktest.BusyFor)})
		return errors.Join(err, s.Err())
	case b == sinktest.Refuses && slices.Contains(ids, refused):
		return status.Error(codes.InvalidArgument, "not this one")
	case b == sinktest.Slow:
		<-time.After(20 * time.Millisecond)
	case b == sinktest.Hangs:
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	copied := plog.NewLogs()
	logs.CopyTo(copied)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids, c.logs = append(c.ids, ids...), append(c.logs, copied)
	return nil
}

// records returns the records of logs, in order.
func records(logs plog.Logs) (out []plog.LogRecord) {
	for _, r := range logs.ResourceLogs().All() {
		for _, s := range r.ScopeLogs().All() {
			for _, l := range s.LogRecords().All() {
				out = append(out, l)
			}
		}
	}
	return out
}

// idsOf returns the ids of the events in logs. Anything that is not an event is an error.
func idsOf(logs plog.Logs) (ids []string, err error) {
	for _, l := range records(logs) {
		id, ok := l.Attributes().Get("tattler.id")
		if !ok {
			return nil, fmt.Errorf("a record without an id: %v", l.Attributes().AsRaw())
		}
		ids = append(ids, id.Str())
	}
	return ids, nil
}
