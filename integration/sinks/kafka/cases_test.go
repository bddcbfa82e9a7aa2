package kafka_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/kafka"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func newSink(t *testing.T, c *kfake.Cluster, o kafka.Options) *kafka.Sink {
	t.Helper()
	o.Brokers = c.ListenAddrs()
	if o.Topic == "" {
		o.Topic = topic
	}
	s, err := kafka.New("tattler/test", o)
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

func send(t *testing.T, s *kafka.Sink, ms []sink.Message) {
	t.Helper()
	if n, err := s.Send(t.Context(), ms); err != nil {
		t.Fatalf("acknowledged %d: %v", n, err)
	}
}

// mustPass checks that an error is temporary and contains a text.
func mustPass(t *testing.T, err error, says string) {
	t.Helper()
	var permanent *sink.PermanentError
	var long *sink.TooLargeError
	if err == nil || errors.As(err, &permanent) || errors.As(err, &long) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "p4ssword") {
		t.Errorf("%v, want a passing error with %q", err, says)
	}
}

func idsOf(ms []sink.Message) []string {
	var out []string
	for _, m := range ms {
		out = append(out, m.ID)
	}
	return out
}

// TestRecordFake checks what a consumer sees, with each compression.
func TestRecordFake(t *testing.T) {
	c := fake(t, nil, kfake.SeedTopics(3, topic))
	ms := sinktest.Messages(0, 3)
	for _, compression := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		send(t, newSink(t, c, kafka.Options{Compression: compression}), ms)
	}
	records := received(t, c, topic, nil)
	if len(records) != 5*len(ms) {
		t.Fatalf("%d records", len(records))
	}
	partition := map[string]int32{}
	for _, r := range records {
		i := slices.IndexFunc(ms, func(m sink.Message) bool { return m.Key == string(r.Key) })
		if i < 0 || !bytes.Equal(r.Value, ms[i].Body) {
			t.Fatalf("key %q, value %q", r.Key, r.Value)
		}
		if p, ok := partition[string(r.Key)]; ok && p != r.Partition {
			t.Error("an object is in two partitions")
		}
		partition[string(r.Key)] = r.Partition
		headers := map[string]string{}
		for _, h := range r.Headers {
			headers[h.Key] = string(h.Value)
		}
		e := ms[i].Event
		for key, want := range map[string]string{
			"content-type": "application/cloudevents+json; charset=UTF-8", "ce_id": e.ID, "ce_type": e.Type, "ce_source": e.Source,
			"ce_subject": e.Subject, "ce_specversion": "1.0",
		} {
			if headers[key] != want {
				t.Errorf("header %s: %q, want %q", key, headers[key], want)
			}
		}
	}
}

// TestOrderFake checks that no change overtakes another of its object, whatever a broker answers in between, and
// that all arrive. Each error occurs once or more for one of three partitions.
func TestOrderFake(t *testing.T) {
	for _, tc := range []struct {
		err   *kerr.Error
		count int
		fails bool // Send fails: the client does not retry
	}{
		{kerr.NotLeaderForPartition, 1, false},
		{kerr.RequestTimedOut, 1, false},
		{kerr.NotEnoughReplicas, 2, false},
		{kerr.OutOfOrderSequenceNumber, 1, false},
		{kerr.TopicAuthorizationFailed, 1, true},
		{kerr.InvalidProducerEpoch, 1, false},
		{kerr.PolicyViolation, 1, true},
		{kerr.InvalidRecord, 1, false}, // accepted one by one
	} {
		t.Run(tc.err.Message, func(t *testing.T) {
			c := fake(t, nil, kfake.SeedTopics(3, topic))
			s := newSink(t, c, kafka.Options{MaxMessageBytes: 8 << 10}) // several parts
			ms := sinktest.Messages(0, 90)
			send(t, s, ms[:3])
			for p := range int32(3) {
				if c.PartitionInfo(topic, p).HighWatermark > 0 {
					c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Partitions: []int32{p}, Err: tc.err, Count: tc.count})
					break
				}
			}
			acked, failed := 3, false
			for acked < len(ms) {
				n, err := s.Send(t.Context(), ms[acked:])
				acked += n
				if err != nil {
					mustPass(t, err, tc.err.Message)
					failed = true
				}
			}
			if failed != tc.fails {
				t.Errorf("Send failed: %v", failed)
			}
			first := map[string][]string{}
			for _, r := range received(t, c, topic, nil) {
				id := ids(t, []*kgo.Record{r})[0]
				if key := string(r.Key); !slices.Contains(first[key], id) {
					first[key] = append(first[key], id)
				}
			}
			for key, got := range first {
				var want []string
				for _, m := range ms {
					if m.Key == key {
						want = append(want, m.ID)
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("of %s came %v, want %v", key, got, want)
				}
			}
			if len(first) != 3 {
				t.Errorf("%d objects", len(first))
			}
		})
	}
}

// TestTooLongFake checks a topic with a lower limit than ours: only the message that is too long is to blame,
// whatever else is in its batch.
func TestTooLongFake(t *testing.T) {
	c := fake(t, nil)
	if err := c.CreateTopic(topic, 1, map[string]string{"max.message.bytes": "20000"}); err != nil {
		t.Fatal(err)
	}
	s := newSink(t, c, kafka.Options{Compression: "none"})
	ms := sinktest.Messages(0, 40) // too long together, as well
	whole := ms[30].Body
	ms[30].Body = fmt.Appendf(nil, `{"id":%q,"x":%q}`, ms[30].ID, strings.Repeat("x", 20_000))
	n, err := s.Send(t.Context(), ms)
	var long *sink.TooLargeError
	if n != 30 || !errors.As(err, &long) || long.Limit != 0 || !strings.Contains(err.Error(), "max.message.bytes") {
		t.Fatalf("acknowledged %d, %v; want 30, and that it is too long", n, err)
	}
	ms[30].Body = whole
	send(t, s, ms[30:])
	if got := ids(t, received(t, c, topic, nil)); !slices.Equal(got, idsOf(ms)) {
		t.Errorf("received %v, want %v", got, idsOf(ms))
	}
}

// TestLimitFake checks that a topic accepts a body at our own limit, if it has the same limit.
func TestLimitFake(t *testing.T) {
	c := fake(t, nil)
	if err := c.CreateTopic(topic, 1, map[string]string{"max.message.bytes": "50000"}); err != nil {
		t.Fatal(err)
	}
	s := newSink(t, c, kafka.Options{Compression: "none", MaxMessageBytes: 50000})
	m := sinktest.Messages(0, 1)
	m[0].Body = make([]byte, 60_000)
	_, err := s.Send(t.Context(), m)
	var long *sink.TooLargeError
	if !errors.As(err, &long) || long.Limit == 0 {
		t.Fatal(err)
	}
	m[0].Body = m[0].Body[:long.Limit]
	send(t, s, m)
}

func TestNoTopicFake(t *testing.T) {
	c := fake(t, nil)
	s := newSink(t, c, kafka.Options{})
	_, err := s.Send(t.Context(), sinktest.Messages(0, 3))
	mustPass(t, err, "create it, or set allowAutoTopicCreation")
	if err := c.CreateTopic(topic, 1, nil); err != nil {
		t.Fatal(err)
	}
	ms := sinktest.Messages(0, 3)
	send(t, s, ms)
	if got := ids(t, received(t, c, topic, nil)); !slices.Equal(got, idsOf(ms)) {
		t.Errorf("received %v", got)
	}
}

func TestAutoCreationFake(t *testing.T) {
	c := fake(t, nil, kfake.AllowAutoTopicCreation())
	send(t, newSink(t, c, kafka.Options{Topic: "made.{{.Data.Resource.Name}}", AllowAutoTopicCreation: true}), sinktest.Messages(0, 6))
	for _, name := range []string{"made.web-0", "made.web-1", "made.web-2"} {
		if n := len(received(t, c, name, nil)); n != 2 {
			t.Errorf("%d records in %s", n, name)
		}
	}
}

// TestSignInFake checks each mechanism over mutual TLS, and the errors if signing in fails.
func TestSignInFake(t *testing.T) {
	certs := rig.NewCertificates(t)
	const user, password = "u", "p4ssword"
	c := fake(t, nil, kfake.SeedTopics(1, topic), kfake.TLS(certs.Demanding(t)), kfake.EnableSASL(),
		kfake.Superuser("PLAIN", user, password), kfake.Superuser("SCRAM-SHA-256", user, password), kfake.Superuser("SCRAM-SHA-512", user, password))
	var want []string
	for i, mechanism := range []string{"plain", "scram-sha-256", "scram-sha-512"} {
		ms := sinktest.Messages(i, 1)
		o := kafka.Options{SASL: kafka.SASL{Mechanism: mechanism, User: user, Password: password}, Encrypted: true, Timeout: 5 * time.Second}
		_, err := newSink(t, c, o).Send(t.Context(), ms)
		mustPass(t, err, "certificate")
		o.TLS.CA = certs.CA
		_, err = newSink(t, c, o).Send(t.Context(), ms)
		mustPass(t, err, "certificate required")
		o.TLS.Cert, o.TLS.Key = certs.Client, certs.ClientKey
		patient := o
		patient.Timeout = time.Minute
		send(t, newSink(t, c, patient), ms)
		want = append(want, idsOf(ms)...)
		o.SASL.Password = "other-p4ssword"
		_, err = newSink(t, c, o).Send(t.Context(), ms)
		mustPass(t, err, "check tls and sasl") // the fake closes the connection; Kafka gives a reason
	}
	trusting := &tls.Config{
		MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, //nolint:gosec // a test
		Certificates: []tls.Certificate{rig.Must(tls.LoadX509KeyPair(certs.Client, certs.ClientKey))(t)},
	}
	records := received(t, c, topic, trusting, kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism()))
	if got := ids(t, records); !slices.Equal(got, want) {
		t.Errorf("received %v, want %v", got, want)
	}
}

// TestPaceFake logs the time for batches of 100: a batch is one request per broker.
func TestPaceFake(t *testing.T) {
	c := fake(t, nil, kfake.SeedTopics(3, topic))
	s := newSink(t, c, kafka.Options{})
	ms := sinktest.Messages(0, 100)
	send(t, s, ms)
	began := time.Now()
	for range 20 {
		send(t, s, ms)
	}
	t.Logf("2000 messages in %s", time.Since(began))
}
