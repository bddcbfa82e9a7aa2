// Package kafka is the sink that produces each change as a record to a topic of Apache Kafka, or of what
// speaks its protocol.
//
// The value is the CloudEvent in structured JSON, the key the object's UID, so that all changes of an object
// are in one partition and in order; headers are those of the CloudEvents binding. A record is acknowledged
// when all replicas in sync have it. Permanent is a record that the broker calls invalid; too long is what
// exceeds maxMessageBytes or the topic's max.message.bytes. All else passes: no connection, no leader, too few
// replicas, and also refused credentials, missing rights, and a topic that is not there. The producer is
// idempotent: what the client itself sends again is not doubled. What the sink sends again, after a failure
// or a crash, comes twice under the same id (the header ce_id): consumers remember ids.
//
// Where a record fails, the client fails all of its partition that came after it; and the sink hands over
// nothing while anything is on its way. So no change overtakes another of its object.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Sink produces to topics.
type Sink struct {
	o     Options
	place string
	topic *sink.Name
	opts  []kgo.Opt
	blot  *sink.Blot

	// topics are those of which the client knows the partitions. Only Send uses it.
	topics map[string]bool

	mu     sync.Mutex // Close may come from another goroutine than Send
	client *kgo.Client
	closed bool
}

// New makes a sink; it reads the files of TLS, and connects with the first Send. The agent is not shown to
// Kafka, which has ids of clients instead.
func New(_ string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("kafka sink: %w", err)
	}
	s := &Sink{o: o.withDefaults(), blot: &sink.Blot{}}
	s.topic, _ = topicName(o.Topic)
	hosts, _ := brokers(o.Brokers)
	s.place = strings.Join(hosts, ",")
	s.blot.Add(sink.LeastPassword, o.SASL.Password)
	if err := s.configure(hosts); err != nil {
		return nil, fmt.Errorf("kafka sink: tls: %w", err)
	}
	return s, nil
}

// configure makes the client's options.
func (s *Sink) configure(hosts []string) error {
	o := s.o
	s.opts = []kgo.Opt{
		kgo.SeedBrokers(hosts...),
		kgo.ClientID(o.ClientID),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchCompression(codecs[o.Compression], kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(int32(o.MaxMessageBytes)), //nolint:gosec // Validate bounds it
		kgo.BrokerMaxWriteBytes(max(100<<20, int32(o.MaxMessageBytes)+1<<20)),
		// A part is handed over whole before any of it goes: what fails takes all of its partition with it.
		kgo.ManualFlushing(),
		// After so many tries the broker's own reason shows, within the default timeout; the pump goes on.
		kgo.RecordRetries(6),
		kgo.MetadataMinAge(500 * time.Millisecond),
		// One host that does not answer must leave time for the next.
		kgo.DialTimeout(o.Timeout / 2),
		kgo.ProduceRequestTimeout(o.Timeout),
		kgo.RequestTimeoutOverhead(o.Timeout),
		kgo.DisableClientMetrics(),
	}
	if o.AllowAutoTopicCreation {
		s.opts = append(s.opts, kgo.AllowAutoTopicCreation())
	}
	if o.showsPassword() { // the brokers that others tell of may be on other machines
		s.opts = append(s.opts, kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			if err := o.clearText(address); err != nil {
				return nil, err
			}
			return (&net.Dialer{Timeout: o.Timeout / 2}).DialContext(ctx, network, address)
		}))
	}
	if o.encrypted() {
		c, err := o.TLS.Client()
		if err != nil {
			return err
		}
		s.opts = append(s.opts, kgo.DialTLSConfig(c))
	}
	user, password := o.SASL.User, o.SASL.Password
	switch o.SASL.Mechanism {
	case plainText:
		s.opts = append(s.opts, kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism()))
	case scramSHA256:
		s.opts = append(s.opts, kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha256Mechanism()))
	case scramSHA512:
		s.opts = append(s.opts, kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha512Mechanism()))
	}
	return nil
}

func (s *Sink) String() string { return "kafka " + s.place + " topic " + s.o.Topic }

// Close ends the client.
func (s *Sink) Close(context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.drop()
	return nil
}

// drop ends the client, and with it all that is on its way. The next Send makes another.
func (s *Sink) drop() {
	s.mu.Lock()
	client := s.client
	s.client = nil
	s.mu.Unlock()
	if client != nil {
		client.Close()
	}
}

// Send produces messages.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("produce to %s: %w", s.place, err)
	}
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	records, later := s.records(ms)
	if len(records) > 0 {
		acked, err = s.deliver(ctx, records)
	}
	switch {
	case err == nil:
		return acked, later
	case parent.Err() != nil:
		return acked, fmt.Errorf("produce to %s: %w", s.place, parent.Err())
	case ctx.Err() != nil && !aboutOne(err):
		return acked, fmt.Errorf("produce to %s: no acknowledgement within %s: %w", s.place, s.o.Timeout, s.blot.Error(err))
	}
	return acked, s.failed(records[acked], err)
}

// records makes records of the first messages, up to one of which none can be made; the error says why.
func (s *Sink) records(ms []sink.Message) ([]record, error) {
	var out []record
	for _, m := range ms {
		r, err := s.record(m)
		if err != nil {
			return out, err
		}
		out = append(out, r)
	}
	return out, nil
}

// deliver produces records, part by part. Where one of several may be to blame, those that are left go one
// by one.
func (s *Sink) deliver(ctx context.Context, records []record) (acked int, err error) {
	client, err := s.connect(ctx)
	if err != nil {
		return 0, err
	}
	most := len(records)
	for acked < len(records) {
		next := s.part(records[acked:min(len(records), acked+most)])
		n, err := s.produce(ctx, client, next)
		acked += n
		switch {
		case err == nil:
			s.topics[next[len(next)-1].topic] = true
		case aboutOne(err) && len(next) > 1:
			most = 1
		case aboutOne(err):
			return acked, err
		default:
			s.drop() // a producer id that was refused once is refused for ever
			return acked, err
		}
	}
	return acked, nil
}

// part is as many of the first records as the client is sure to hold back until all of them are handed over:
// it begins to send when a partition has more than one batch, and, of a topic that it does not know yet, with
// the first record. Then one could fail, and the next of its object, handed over after that, arrive.
func (s *Sink) part(records []record) []record {
	size := 0
	for i, r := range records {
		size += overhead(r.message) + len(r.message.Body)
		if i > 0 && size > int(s.o.MaxMessageBytes) {
			return records[:i]
		}
		if !s.topics[r.topic] {
			return records[:i+1]
		}
	}
	return records
}

// connect is the client; a new one has heard of a broker, so that what is wrong with the way there shows.
func (s *Sink) connect(ctx context.Context) (*kgo.Client, error) {
	if client, err := s.keep(nil); client != nil || err != nil {
		return client, err
	}
	client, err := kgo.NewClient(s.opts...)
	if err != nil {
		return nil, err
	}
	if err := client.Ping(ctx); err != nil {
		client.Close()
		return nil, &connectError{err}
	}
	if _, err := s.keep(client); err != nil {
		client.Close()
		return nil, err
	}
	s.topics = map[string]bool{}
	return client, nil
}

// keep keeps a client, if it is not nil, and returns the one that is kept.
func (s *Sink) keep(client *kgo.Client) (*kgo.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the sink is closed")
	}
	if client != nil {
		s.client = client
	}
	return s.client, nil
}

// produce produces records, and waits until all have arrived or failed; where ctx ends before that, it ends
// the client, so that nothing is on its way when it returns.
func (s *Sink) produce(ctx context.Context, client *kgo.Client, records []record) (acked int, err error) {
	errs := make([]error, len(records))
	var left sync.WaitGroup
	left.Add(len(records))
	for i, r := range records {
		// The client does not see the end of ctx: it would then wait for answers that are on their way.
		client.Produce(context.WithoutCancel(ctx), r.kafka(), func(_ *kgo.Record, err error) {
			errs[i] = err
			left.Done()
		})
	}
	flushed := client.Flush(ctx)
	if flushed != nil {
		s.drop()
	}
	left.Wait()
	for i, err := range errs {
		if err == nil {
			continue
		}
		if flushed != nil && errors.Is(err, kgo.ErrClientClosed) {
			err = flushed
		}
		return i, err
	}
	return len(records), nil
}
