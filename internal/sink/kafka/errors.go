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
	var connect *connectError
	connecting := errors.As(err, &connect)
	what, hint := "produce to "+s.place, ""
	switch {
	case tooLarge(err):
		what = "produce to topic " + r.topic
		err = &sink.TooLargeError{Err: fmt.Errorf("a value of %d bytes exceeds the topic's max.message.bytes: %w", len(r.message.Body), err)}
	case refused(err):
		what, err = "produce to topic "+r.topic, &sink.PermanentError{Err: err}
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID):
		hint = "there is no topic " + r.topic + " (create it, or set allowAutoTopicCreation): "
		if s.o.AllowAutoTopicCreation {
			hint = "there is no topic " + r.topic + " (create it: the brokers do not (auto.create.topics.enable), or the user may not): "
		}
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		hint = "no right to write to topic " + r.topic + " (grant Write and Describe on it): "
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		hint = "no right to produce idempotently (brokers before 2.8 need IdempotentWrite on the cluster): "
	case errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err, kerr.UnsupportedSaslMechanism), errors.Is(err, kerr.IllegalSaslState):
		what, hint = "connect to "+s.place, "sign in (check sasl: mechanism, user and password): "
	case errors.Is(err, kerr.UnsupportedCompressionType):
		what, hint = "produce to topic "+r.topic, "set another compression: "
	case connecting && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		what, hint = "connect to "+s.place, "the broker closed the connection (check tls and sasl): "
	case connecting:
		what = "connect to " + s.place
	default:
		what += ", topic " + r.topic
	}
	return s.mask.Wrap(what, fmt.Errorf("%s%w", hint, err))
}
