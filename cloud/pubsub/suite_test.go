package pubsub

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

const topic = "projects/test/topics/changes"

func TestMain(m *testing.M) {
	sinktest.Main(m, func(target string) (sink.Sink, error) {
		return New("tattler/test", Options{Topic: topic, Emulator: target})
	})
}

// TestSuiteFake runs against pstest, Google's own fake of Pub/Sub, behind our server that misbehaves.
func TestSuiteFake(t *testing.T) {
	for name, o := range map[string]Options{
		"ordered":   {},
		"unordered": {Unordered: true},
	} {
		t.Run(name, func(t *testing.T) {
			sinktest.Run(t, sinktest.Suite{
				Type: "*pubsub.Sink", Name: "pubsub", PerObject: !o.Unordered,
				Start: func(t *testing.T) sinktest.Receiver { return newFake(t) },
				Open: func(t *testing.T, r sinktest.Receiver) sink.Sink {
					o.Topic, o.Emulator = topic, r.Target()
					return open(t, o)
				},
			})
		})
	}
}

func open(t *testing.T, o Options) *Sink {
	t.Helper()
	s, err := New("tattler/test", o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fake is pstest behind our server.
type fake struct {
	t      *testing.T
	google *pstest.Server
	addr   string

	mu       sync.Mutex
	requests []*pubsubpb.PublishRequest
	b        sinktest.Behaviour
	id       string
	changed  chan struct{} // closed when the behaviour changes
	each     func(*pubsubpb.PublishRequest) error
	downs    int
}

func newFake(t *testing.T) *fake {
	f := &fake{t: t, google: pstest.NewServer(), changed: make(chan struct{})}
	t.Cleanup(func() {
		if err := f.google.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := f.google.GServer.CreateTopic(t.Context(), &pubsubpb.Topic{Name: topic}); err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.addr = l.Addr().String()
	server := grpc.NewServer(grpc.UnaryInterceptor(f.intercept), grpc.MaxRecvMsgSize(16<<20))
	pubsubpb.RegisterPublisherServer(server, &f.google.GServer)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) { // stopped before it started
			t.Error(err)
		}
	})
	return f
}

func (f *fake) Target() string { return f.addr }

func (f *fake) Behave(b sinktest.Behaviour, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.b, f.id = b, id
	close(f.changed)
	f.changed = make(chan struct{})
}

// Received returns the ids in the order in which Google's fake accepted the messages.
func (f *fake) Received(t *testing.T) []string {
	var ids []string
	for _, m := range f.google.Messages() {
		var e struct{ ID string }
		if err := json.Unmarshal(m.Data, &e); err != nil || e.ID == "" || e.ID != m.Attributes["id"] {
			t.Errorf("message %q with %v: %v", m.Data, m.Attributes, err)
		}
		ids = append(ids, e.ID)
	}
	return ids
}

func (f *fake) intercept(ctx context.Context, in any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	req, ok := in.(*pubsubpb.PublishRequest)
	if !ok {
		return handle(ctx, in)
	}
	f.mu.Lock()
	b, id, changed, each := f.b, f.id, f.changed, f.each
	f.requests = append(f.requests, req)
	f.downs++
	downs := f.downs
	f.mu.Unlock()
	switch b {
	case sinktest.Down:
		return nil, status.Error([]codes.Code{codes.Unavailable, codes.Internal, codes.Aborted}[downs%3], "try again")
	case sinktest.Busy:
		s, err := status.New(codes.ResourceExhausted, "quota").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(sinktest.BusyFor)})
		if err != nil {
			f.t.Error(err)
		}
		return nil, s.Err()
	case sinktest.Hangs:
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case sinktest.Slow:
		<-time.After(20 * time.Millisecond)
	case sinktest.Refuses:
		if slices.ContainsFunc(req.Messages, func(m *pubsubpb.PubsubMessage) bool { return m.Attributes["id"] == id }) {
			return nil, status.Error(codes.InvalidArgument, "does not fit the schema")
		}
	}
	if each != nil {
		if err := each(req); err != nil {
			return nil, err
		}
	}
	// Google requires that all messages of a request have the same ordering key.
	for _, m := range req.Messages {
		if m.OrderingKey != req.Messages[0].OrderingKey {
			return nil, status.Error(codes.InvalidArgument, "ordering keys differ")
		}
	}
	return handle(ctx, in)
}

// seen returns the requests so far.
func (f *fake) seen() []*pubsubpb.PublishRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}
