package rabbitmq

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tattler-dev/tattler/internal/leaktest"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func newSink(t *testing.T, o Options) *Sink {
	t.Helper()
	s, err := New("tattler/test", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestRefused(t *testing.T) {
	s := newSink(t, Options{URL: "amqps://u:p4ssword@h/v", Exchange: "x"})
	for _, tc := range []struct {
		why  string
		err  error
		says string
	}{
		{"no exchange", &amqp.Error{Code: amqp.NotFound, Reason: "no exchange"}, "declare it"},
		{"no right", &amqp.Error{Code: amqp.AccessRefused, Reason: "refused"}, "the right to write"},
		{"no vhost", &amqp.Error{Code: amqp.NotAllowed, Reason: "vhost"}, "not allowed in vhost v"},
		{"who quotes us", errors.New("no user u:p4ssword"), "no user ***"},
	} {
		got := s.failed(t.Context(), nil, tc.err)
		var permanent *sink.PermanentError
		if errors.As(got, &permanent) || !strings.Contains(got.Error(), tc.says) || strings.Contains(got.Error(), "p4ssword") {
			t.Errorf("%s: %v, want a passing error with %q", tc.why, got, tc.says)
		}
	}
}

func TestLimitOf(t *testing.T) {
	for _, tc := range []struct {
		why, reason string
		code, want  int
	}{
		{"RabbitMQ 3", "PRECONDITION_FAILED - message size 20000 is larger than configured max size 10000", 406, 10000},
		{"RabbitMQ 4", "PRECONDITION_FAILED - message size 20000 is larger than max size 10000", 406, 10000},
		{"another precondition", "PRECONDITION_FAILED - inequivalent arg", 406, 0},
		{"another code", "message size 1 is larger than configured max size 1", 404, 0},
	} {
		if got, _ := limitOf(&amqp.Error{Code: tc.code, Reason: tc.reason}); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.why, got, tc.want)
		}
	}
}

func TestCleanKey(t *testing.T) {
	if got := cleanKey("a.b c#*"); got != "a_b_c__" {
		t.Errorf("%s: a name adds words to the key", got)
	}
}

// TestNobodyThere checks that a connection error shows its cause and is temporary.
func TestNobodyThere(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and does not answer
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, tc := range []struct {
		why, address, want string
		timeout            time.Duration
	}{
		{"nobody listens", "127.0.0.1:1", "connection refused", time.Minute},
		{"no answer", silent.Addr().String(), "no answer within 1s", time.Second},
	} {
		s := newSink(t, Options{URL: "amqp://" + tc.address, Queue: "q", Timeout: tc.timeout})
		n, err := s.Send(t.Context(), sinktest.Messages(0, 2))
		var permanent *sink.PermanentError
		if n != 0 || err == nil || errors.As(err, &permanent) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %d, %v; want a passing error with %q", tc.why, n, err, tc.want)
		}
	}
}

// TestReason checks that everything that waits for a confirmation gets the server's reason for closing the channel,
// and that nothing waits for ever without a reason.
func TestReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &connection{chClosed: make(chan *amqp.Error, 1), connClosed: make(chan *amqp.Error, 1)}
		if err := c.reason(); !errors.Is(err, amqp.ErrClosed) {
			t.Errorf("nothing was said: %v", err)
		}
		c.chClosed <- &amqp.Error{Code: amqp.NotFound, Reason: "no exchange"}
		close(c.chClosed)
		for range 2 {
			if err := c.reason(); code(err) != amqp.NotFound {
				t.Errorf("%v, want what the server said", err)
			}
		}
	})
}
