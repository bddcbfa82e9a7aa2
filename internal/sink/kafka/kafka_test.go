package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

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

// TestLearnedBrokers checks that brokers advertised by a local one do not get the password in clear text.
func TestLearnedBrokers(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end() // so that no broker is contacted
	for _, insecure := range []bool{false, true} {
		s := newSink(t, Options{Brokers: []string{"localhost"}, Topic: "changes", SASL: SASL{"plain", "u", "p4ssword"}, Insecure: insecure})
		c, err := kgo.NewClient(s.opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		dial := c.OptValue(kgo.Dialer).(func(context.Context, string, string) (net.Conn, error))
		_, err = dial(ended, "tcp", "broker.invalid:9092")
		if refused := strings.Contains(fmt.Sprint(err), "broker.invalid in clear text"); refused == insecure {
			t.Errorf("insecure %v: %v", insecure, err)
		}
	}
}

// TestFailed checks the error for each answer: its kind and its text.
func TestFailed(t *testing.T) {
	const passing, permanent, large = "passing", "permanent", "too large"
	s := newSink(t, Options{Brokers: []string{"b1"}, Topic: "changes", SASL: SASL{"plain", "u", "p4ssword"}, Insecure: true})
	auto := newSink(t, Options{Brokers: []string{"b1"}, Topic: "changes", AllowAutoTopicCreation: true})
	for _, tc := range []struct {
		why  string
		sink *Sink
		err  error
		is   string
		says string
	}{
		{"too long for the topic", s, fmt.Errorf("%w (x)", kerr.MessageTooLarge), large, "max.message.bytes"},
		{"too long for a segment", s, kerr.RecordListTooLarge, large, "max.message.bytes"},
		{"the broker looked at it", s, kerr.InvalidRecord, permanent, "INVALID_RECORD"},
		{"no topic", s, fmt.Errorf("retries: %w", kerr.UnknownTopicOrPartition), passing, "create it, or set allowAutoTopicCreation"},
		{"no topic, by its id", s, kerr.UnknownTopicID, passing, "there is no topic changes"},
		{"no topic, and none is made", auto, kerr.UnknownTopicOrPartition, passing, "auto.create.topics.enable"},
		{"no right", s, kerr.TopicAuthorizationFailed, passing, "grant Write and Describe"},
		{"no right of old brokers", s, kerr.ClusterAuthorizationFailed, passing, "IdempotentWrite"},
		{"a revoked password", s, &connectError{kerr.SaslAuthenticationFailed}, passing, "sasl: mechanism, user and password"},
		{"a mechanism that is off", s, kerr.UnsupportedSaslMechanism, passing, "check sasl"},
		{"an old broker", s, kerr.UnsupportedCompressionType, passing, "set another compression"},
		{"the topic wants newer timestamps", s, kerr.InvalidTimestamp, passing, "INVALID_TIMESTAMP"},
		{"too few replicas", s, kerr.NotEnoughReplicas, passing, "NOT_ENOUGH_REPLICAS"},
		{"a lost connection", s, &connectError{errors.New("dial: connection refused")}, passing, "connect to b1:9092: dial"},
		{"whatever else, and who quotes us", s, errors.New("no such user u:p4ssword"), passing, "u:***"},
	} {
		got := tc.sink.failed(record{topic: "changes"}, tc.err)
		is := passing
		var p *sink.PermanentError
		var l *sink.TooLargeError
		if errors.As(got, &p) {
			is = permanent
		} else if errors.As(got, &l) {
			is = large
		}
		if is != tc.is || !strings.Contains(got.Error(), tc.says) || strings.Contains(got.Error(), "p4ssword") {
			t.Errorf("%s: %s error %v, want %s with %q", tc.why, is, got, tc.is, tc.says)
		}
	}
}

func TestTopic(t *testing.T) {
	s := newSink(t, Options{Brokers: []string{"b1"}, Topic: `c.{{.Data.Resource.Name}}.{{if eq .Data.Resource.Name "bad"}}{{index .Data.Changes 9}}{{end}}`})
	m := sinktest.Messages(0, 1)[0]
	e := *m.Event
	e.Data.Resource.Name = "system:node/ä"
	m.Event = &e
	if r, err := s.record(m); err != nil || r.topic != "c.system-node--." {
		t.Errorf("topic %q, %v: what is not legal is to become a dash", r.topic, err)
	}
	e.Data.Resource.Name = "bad"
	_, err := s.record(m)
	var permanent *sink.PermanentError
	if !errors.As(err, &permanent) {
		t.Errorf("%v, want a permanent error: the same event fails again", err)
	}
	e.Data.Resource.Name = strings.Repeat("a", 250)
	if _, err := s.record(m); !errors.As(err, &permanent) {
		t.Errorf("%v, want a permanent error: no topic has such a name", err)
	}
}

// TestTooLong checks that the limit includes everything around the body, without contacting a broker.
func TestTooLong(t *testing.T) {
	s := newSink(t, Options{Brokers: []string{"127.0.0.1:1"}, Topic: "c", MaxMessageBytes: minMax})
	m := sinktest.Messages(0, 1)[0]
	m.Body = make([]byte, minMax)
	n, err := s.Send(t.Context(), []sink.Message{m})
	var long *sink.TooLargeError
	if n != 0 || !errors.As(err, &long) || long.Limit >= minMax || long.Limit < minMax-1000 {
		t.Fatalf("%d, %v", n, err)
	}
	m.Body = m.Body[:long.Limit]
	if _, err := s.record(m); err != nil {
		t.Errorf("what has the limit that was said: %v", err)
	}
}

// TestNobodyThere checks that a connection error shows its cause, soon, and is temporary.
func TestNobodyThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := l.Addr().String() // accepts connections and does not answer
	defer l.Close()
	const nobody = "127.0.0.1:1"
	for _, tc := range []struct {
		why, broker string
		want        string
		timeout     time.Duration
	}{
		{"nobody listens", nobody, "connect to " + nobody + ": unable to dial: .*connection refused", time.Minute},
		{"no answer", silent, "no acknowledgement within 2s|i/o timeout", 2 * time.Second}, // the latter where connecting takes as long
	} {
		s := newSink(t, Options{Brokers: []string{tc.broker}, Topic: "c", Timeout: tc.timeout})
		n, err := s.Send(t.Context(), sinktest.Messages(0, 2))
		var permanent *sink.PermanentError
		if n != 0 || err == nil || errors.As(err, &permanent) || !regexp.MustCompile(tc.want).MatchString(err.Error()) {
			t.Errorf("%s: %d, %v; want a passing error with %q", tc.why, n, err, tc.want)
		}
	}
}

func TestNewReadsTLS(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.pem")
	if err := os.WriteFile(none, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]sink.TLS{"no such file": {CA: "/nonexistent/ca.pem"}, "contains no PEM certificate": {CA: none}, "cert and key": {Cert: none, Key: none}} {
		if _, err := New("tattler/test", Options{Brokers: []string{"b1"}, Topic: "c", TLS: o}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
