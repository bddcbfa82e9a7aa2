// Package kafka is the sink that produces each change as a record to a topic of Apache Kafka, or of a compatible
// system.
//
// The value is the CloudEvent in structured JSON. The key is the object's UID, so that all changes of an object are
// in one partition and in order. The headers follow the CloudEvents binding. A record is acknowledged when all
// in-sync replicas have it. A record that the broker calls invalid is a permanent error; one that exceeds
// maxMessageBytes or the topic's max.message.bytes is too long. All other errors are temporary: no connection, no
// leader, too few replicas, refused credentials, missing rights, a missing topic. The producer is idempotent, so the
// client's own retries are not stored twice. What the sink sends again, after a failure or a crash, arrives twice
// under the same id (the header ce_id): consumers must remember ids.
//
// If a record fails, the client fails all later records of its partition, and the sink hands over nothing while
// records are in flight. So no change overtakes another of its object.
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
	mask  *sink.Mask

	conn sink.Lazy[*client]
}

// client is a client, and the topics whose partitions it knows. Only Send uses the topics.
type client struct {
	*kgo.Client
	topics map[string]bool
}

// New returns a sink. It reads the TLS files, and connects with the first Send. It does not use the agent: Kafka has
// client ids instead.
func New(_ string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("kafka sink: %w", err)
	}
	s := &Sink{o: o.withDefaults(), mask: &sink.Mask{}}
	s.topic, _ = topicName(o.Topic)
	hosts, _ := brokers(o.Brokers)
	s.place = strings.Join(hosts, ",")
	s.mask.Add(sink.MinSecret, o.SASL.Password)
	if err := s.configure(hosts); err != nil {
		return nil, fmt.Errorf("kafka sink: tls: %w", err)
	}
	s.conn = sink.Lazy[*client]{Open: s.connect, Free: func(_ context.Context, c *client) error { c.Close(); return nil }}
	return s, nil
}

// configure sets the client's options.
func (s *Sink) configure(hosts []string) error {
	o := s.o
	s.opts = []kgo.Opt{
		kgo.SeedBrokers(hosts...),
		kgo.ClientID(o.ClientID),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchCompression(codecs[o.Compression], kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(int32(o.MaxMessageBytes)), //nolint:gosec // Validate bounds it
		kgo.BrokerMaxWriteBytes(max(100<<20, int32(o.MaxMessageBytes)+1<<20)),
		// The sink hands over a part before the client sends any of it: a failure then fails all of its partition.
		kgo.ManualFlushing(),
		// After these retries the broker's own reason shows, within the default timeout; then the pump retries.
		kgo.RecordRetries(6),
		kgo.MetadataMinAge(500 * time.Millisecond),
		// A host that does not answer must leave time for the next one.
		kgo.DialTimeout(o.Timeout / 2),
		kgo.ProduceRequestTimeout(o.Timeout),
		kgo.RequestTimeoutOverhead(o.Timeout),
		kgo.DisableClientMetrics(),
	}
	if o.AllowAutoTopicCreation {
		s.opts = append(s.opts, kgo.AllowAutoTopicCreation())
	}
	if o.showsPassword() { // advertised brokers may be on other machines
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

// Close closes the client.
func (s *Sink) Close(ctx context.Context) error { return s.conn.Close(ctx) }

// Send produces messages.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("produce to %s: %w", s.place, err)
	}
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	records, later := s.records(ms)
	stored, err := s.deliver(ctx, records)
	for acked < len(stored) && stored[acked] {
		acked++
	}
	switch {
	case err == nil:
		return acked, later
	case parent.Err() != nil:
		err = fmt.Errorf("produce to %s: %w", s.place, parent.Err())
	case ctx.Err() != nil && !aboutOne(err):
		err = fmt.Errorf("produce to %s: no acknowledgement within %s: %w", s.place, s.o.Timeout, s.mask.Error(err))
	default:
		err = s.failed(records[acked], err)
	}
	return acked, sink.Partial(err, ms, acked, func(i int) bool { return i < len(stored) && stored[i] })
}

// records converts the first messages, and returns why the next one cannot be converted.
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

// deliver produces records part by part, and returns which are stored. If one of several records may be to blame, the rest
// goes one by one.
func (s *Sink) deliver(ctx context.Context, records []record) (stored []bool, err error) {
	if len(records) == 0 {
		return nil, nil
	}
	stored = make([]bool, len(records))
	c, err := s.conn.Get(ctx)
	if err != nil {
		return stored, err
	}
	most := len(records)
	for left := missing(stored); len(left) > 0; left = missing(stored) {
		next := make([]record, 0, min(len(left), most))
		for _, i := range left[:min(len(left), most)] {
			next = append(next, records[i])
		}
		next = s.part(c, next)
		errs := s.produce(ctx, c, next)
		for i, failed := range errs {
			if stored[left[i]] = failed == nil; failed != nil && err == nil {
				err = failed
			}
		}
		switch {
		case err == nil:
			c.topics[next[len(next)-1].topic] = true
		case aboutOne(err) && len(next) > 1:
			most, err = 1, nil
		case aboutOne(err):
			return stored, err
		default:
			s.conn.Reset(c) // a producer id that was refused once stays refused
			return stored, err
		}
	}
	return stored, nil
}

// missing returns the indexes of what is not stored.
func missing(stored []bool) (all []int) {
	for i, is := range stored {
		if !is {
			all = append(all, i)
		}
	}
	return all
}

// part returns as many of the first records as the client is sure to hold back until all of them are handed over. It
// starts to send when a partition has more than one batch, and with the first record of an unknown topic. Then one
// record could fail while the next of its object, handed over later, arrives.
func (s *Sink) part(c *client, records []record) []record {
	size := 0
	for i, r := range records {
		size += overhead(r.message) + len(r.message.Body)
		if i > 0 && size > int(s.o.MaxMessageBytes) {
			return records[:i]
		}
		if !c.topics[r.topic] {
			return records[:i+1]
		}
	}
	return records
}

// connect opens a client. It pings the brokers, so that a connection error shows.
func (s *Sink) connect(ctx context.Context) (*client, error) {
	c, err := kgo.NewClient(s.opts...)
	if err != nil {
		return nil, err
	}
	if err := c.Ping(ctx); err != nil {
		c.Close()
		return nil, &connectError{err}
	}
	return &client{c, map[string]bool{}}, nil
}

// produce produces records, waits until all have arrived or failed, and returns their errors. If ctx ends before that, produce
// closes the client, so that nothing is in flight when it returns.
func (s *Sink) produce(ctx context.Context, c *client, records []record) []error {
	errs := make([]error, len(records))
	var left sync.WaitGroup
	left.Add(len(records))
	for i, r := range records {
		// The client must not see the end of ctx: it would then wait for outstanding answers.
		c.Produce(context.WithoutCancel(ctx), r.kafka(), func(_ *kgo.Record, err error) {
			errs[i] = err
			left.Done()
		})
	}
	flushed := c.Flush(ctx)
	if flushed != nil {
		s.conn.Reset(c)
	}
	left.Wait()
	for i, err := range errs {
		if flushed != nil && errors.Is(err, kgo.ErrClientClosed) {
			errs[i] = flushed
		}
	}
	return errs
}
