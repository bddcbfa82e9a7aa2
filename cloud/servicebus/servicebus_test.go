package servicebus

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/cloud/internal/yamltest"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func serve(t *testing.T, o Options) (*Sink, *fake) {
	t.Helper()
	f := newFake(t)
	o.ConnectionString = f.Target()
	s, err := New("tattler/v1.2.3", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(t.Context()) }) // the suite checks its error
	return s, f
}

// TestBatchesFake checks that there is one batch, or one for each session.
func TestBatchesFake(t *testing.T) {
	for _, tc := range []struct {
		why     string
		o       Options
		batches []int
		session *string
	}{
		{"plain", Options{}, []int{24}, nil},
		{"sessions", Options{Sessions: true, Parallel: 1}, []int{8, 8, 8}, new("uid-web-0")},
	} {
		s, f := serve(t, tc.o)
		ms := sinktest.Messages(0, 24)
		if n, err := s.Send(t.Context(), ms); n != 24 || err != nil {
			t.Fatalf("%s: %d, %v", tc.why, n, err)
		}
		if d := cmp.Diff(tc.batches, f.batches); d != "" {
			t.Errorf("%s: messages of batches (-want +got):\n%s", tc.why, d)
		}
		m := f.messages[0]
		want := map[string]any{"ce-type": "dev.tattler.change.updated.v1", "op": "updated", "kind": "Deployment", "namespace": "shop"}
		if d := cmp.Diff(want, m.ApplicationProperties); d != "" || string(m.GetData()) != string(ms[0].Body) {
			t.Errorf("%s: body %s, properties (-want +got):\n%s", tc.why, m.GetData(), d)
		}
		if p := m.Properties; p.MessageID != ms[0].ID || *p.ContentType != "application/cloudevents+json" || cmp.Diff(tc.session, p.GroupID) != "" {
			t.Errorf("%s: properties %+v", tc.why, p)
		}
	}
}

// TestRefusalsFake checks the outcome of Service Bus's answers.
func TestRefusalsFake(t *testing.T) {
	for _, tc := range []struct {
		why  string
		says amqp.Error
		want string // the kind of error, and a part of its text
		text string
	}{
		{"something about the message", amqp.Error{Condition: "com.microsoft:argument-error", Description: "bad, and, so on"}, "permanent", "argument-error: bad, and, so on"},
		{"too long", amqp.Error{Condition: amqp.ErrCondMessageSizeExceeded, Description: "longer"}, "long", "too large"},
		{"no right", amqp.Error{Condition: amqp.ErrCondUnauthorizedAccess, Description: "Send"}, "passing", "Azure Service Bus Data Sender"},
		{"no entity", amqp.Error{Condition: amqp.ErrCondNotFound, Description: "none"}, "passing", "create the queue or topic"},
		{"full", amqp.Error{Condition: amqp.ErrCondResourceLimitExceeded, Description: "full"}, "passing", "consume its messages"},
		{"it wants sessions", amqp.Error{Condition: amqp.ErrCondNotAllowed, Description: "The SessionId was not set"}, "passing", "set sessions: true"},
		{"disabled", amqp.Error{Condition: "com.microsoft:entity-disabled", Description: "off"}, "passing", "enable the entity"},
		{"a key in an answer", amqp.Error{Condition: amqp.ErrCondInternalError, Description: "saw " + sharedKey}, "passing", "saw ***"},
	} {
		s, f := serve(t, Options{})
		ms := sinktest.Messages(0, 2)
		f.each = func(m *amqp.Message) *amqp.Error { return &tc.says }
		n, err := s.Send(t.Context(), ms)
		if got := yamltest.Kind(err); n != 0 || got != tc.want {
			t.Errorf("%s: %d acknowledged, %s: %v", tc.why, n, got, err)
		}
		yamltest.Check(t, tc.why, err, tc.text)
		if strings.Contains(err.Error(), sharedKey) {
			t.Errorf("%s: a credential in %v", tc.why, err)
		}
	}
}

// TestTokenFake checks the error for an identity that may not send.
func TestTokenFake(t *testing.T) {
	s, f := serve(t, Options{})
	f.token = 401
	n, err := s.Send(t.Context(), sinktest.Messages(0, 1))
	if n != 0 || yamltest.Kind(err) != "passing" || !strings.Contains(err.Error(), "connection string's policy") {
		t.Errorf("%d, %v", n, err)
	}
}

// TestSizesFake checks that a batch stays within the link's limit, and that a single message beyond it is an error.
func TestSizesFake(t *testing.T) {
	s, f := serve(t, Options{})
	f.largest = 4 << 10
	ms := sinktest.Messages(0, 10)
	if n, err := s.Send(t.Context(), ms); n != 10 || err != nil || len(f.batches) < 2 {
		t.Errorf("%d in %v, %v", n, f.batches, err)
	}
	m := ms[0]
	m.Body = []byte(`{"id":"` + m.ID + `","a":"` + strings.Repeat("x", 4<<10) + `"}`)
	n, err := s.Send(t.Context(), []sink.Message{ms[1], m, ms[2]})
	if n != 1 || yamltest.Kind(err) != "long" {
		t.Errorf("%d, %v", n, err)
	}
}

// TestTimeoutFake checks that a batch to a server that does not answer ends, and that its connection is not reused.
func TestTimeoutFake(t *testing.T) {
	s, f := serve(t, Options{Timeout: 200 * time.Millisecond})
	free, freed := s.conn.Free, false
	s.conn.Free = func(ctx context.Context, c *senderLink) error { freed = true; return free(ctx, c) }
	f.Behave(sinktest.Hangs, "")
	n, err := s.Send(t.Context(), sinktest.Messages(0, 1))
	if n != 0 || yamltest.Kind(err) != "passing" || !strings.Contains(err.Error(), "no answer within 200ms") || !freed {
		t.Errorf("%d, %v", n, err)
	}
	f.Behave(sinktest.Works, "")
}

// TestOneLinkFake checks that the first changes of several objects open one link. The SDK would leak the others, and
// the end of the tests would find the goroutines that renew their tokens.
func TestOneLinkFake(t *testing.T) {
	f := newFake(t)
	for range 100 {
		s, err := New("tattler/test", Options{ConnectionString: f.Target(), Sessions: true})
		if err != nil {
			t.Fatal(err)
		}
		ms := sinktest.Messages(0, 16)
		for i := range ms {
			ms[i].Key = ms[i].ID
		}
		if n, err := s.Send(t.Context(), ms); n != len(ms) || err != nil {
			t.Fatal(n, err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
