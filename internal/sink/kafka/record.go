package kafka

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tattler-dev/tattler/internal/sink"
)

// record is a message with its topic.
type record struct {
	topic   string
	message sink.Message
}

// kafka returns a record for the client; each attempt needs a new one.
func (r record) kafka() *kgo.Record {
	return &kgo.Record{Topic: r.topic, Key: []byte(r.message.Key), Value: r.message.Body, Headers: headers(r.message)}
}

// headers follow the CloudEvents binding for Kafka: the content type of the structured mode, and attributes that
// consumers need to filter or to drop repeats without decoding the value.
func headers(m sink.Message) []kgo.RecordHeader {
	h := []kgo.RecordHeader{
		{Key: "content-type", Value: []byte("application/cloudevents+json; charset=UTF-8")},
		{Key: "ce_id", Value: []byte(m.ID)},
	}
	if e := m.Event; e != nil {
		h = append(h,
			kgo.RecordHeader{Key: "ce_specversion", Value: []byte(e.SpecVersion)},
			kgo.RecordHeader{Key: "ce_type", Value: []byte(e.Type)},
			kgo.RecordHeader{Key: "ce_source", Value: []byte(e.Source)},
			kgo.RecordHeader{Key: "ce_subject", Value: []byte(e.Subject)},
		)
	}
	return h
}

// record makes the record of a message, or returns why it cannot.
func (s *Sink) record(m sink.Message) (record, error) {
	topic, err := s.topic.Of(m.Event)
	if err != nil {
		return record{}, &sink.PermanentError{Err: fmt.Errorf("make topic: %w", err)}
	}
	if most := int(s.o.MaxMessageBytes) - overhead(m); len(m.Body) > most {
		return record{}, &sink.TooLargeError{Limit: most, Err: fmt.Errorf(
			"produce to topic %s: a value of %d bytes exceeds the %d that maxMessageBytes allows", topic, len(m.Body), most)}
	}
	return record{topic, m}, nil
}

// overhead is the maximum difference between a batch with one record and the length of its value.
func overhead(m sink.Message) int {
	const (
		batch  = 61 + 4 // a RecordBatch before its records, and a margin
		fields = 40     // the lengths and deltas of a record
		header = 10     // the lengths of a header
	)
	n := batch + fields + len(m.Key)
	for _, h := range headers(m) {
		n += header + len(h.Key) + len(h.Value)
	}
	return n
}
