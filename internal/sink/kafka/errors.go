package kafka

import (
	"errors"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tattler-dev/tattler/internal/sink"
)

// connectError is a failure to reach the brokers.
type connectError struct{ err error }

func (e *connectError) Error() string { return e.err.Error() }

func (e *connectError) Unwrap() error { return e.err }

// tooLarge and refused classify a broker's error about a record.
func tooLarge(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge)
}

func refused(err error) bool { return errors.Is(err, kerr.InvalidRecord) }

// aboutOne reports whether one of the sent records is to blame.
func aboutOne(err error) bool { return tooLarge(err) || refused(err) }

// failed converts an error about a record. If the error blames a record, that record was sent alone.
func (s *Sink) failed(r record, err error) error {
	topic := r.topic
	said := s.mask.Error(err)
	switch {
	case tooLarge(err):
		return &sink.TooLargeError{Err: fmt.Errorf(
			"produce to topic %s: a value of %d bytes exceeds the topic's max.message.bytes: %w", topic, len(r.message.Body), said)}
	case refused(err):
		return &sink.PermanentError{Err: fmt.Errorf("produce to topic %s: %w", topic, said)}
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID):
		how := "create it, or set allowAutoTopicCreation"
		if s.o.AllowAutoTopicCreation {
			how = "create it: the brokers do not (auto.create.topics.enable), or the user may not"
		}
		return fmt.Errorf("produce to %s: there is no topic %s (%s): %w", s.place, topic, how, said)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return fmt.Errorf("produce to %s: no right to write to topic %s (grant Write and Describe on it): %w", s.place, topic, said)
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		return fmt.Errorf("produce to %s: no right to produce idempotently (brokers before 2.8 need IdempotentWrite on the cluster): %w", s.place, said)
	case errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err, kerr.UnsupportedSaslMechanism), errors.Is(err, kerr.IllegalSaslState):
		return fmt.Errorf("connect to %s: sign in (check sasl: mechanism, user and password): %w", s.place, said)
	case errors.Is(err, kerr.UnsupportedCompressionType):
		return fmt.Errorf("produce to topic %s: set another compression: %w", topic, said)
	}
	var connect *connectError
	if errors.As(err, &connect) && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		return fmt.Errorf("connect to %s: the broker closed the connection (check tls and sasl): %w", s.place, said)
	}
	if errors.As(err, &connect) {
		return fmt.Errorf("connect to %s: %w", s.place, said)
	}
	return fmt.Errorf("produce to %s, topic %s: %w", s.place, topic, said)
}
