package nats

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Codes of JetStream's errors for which the client has no names.
const (
	codeHeaderTooLong jetstream.ErrorCode = 10097 // JSStreamHeaderExceedsMaximumErr
	codeOtherStream   jetstream.ErrorCode = 10060 // JSStreamNotMatchErr
	codeOverlap       jetstream.ErrorCode = 10065 // JSStreamSubjectOverlapErr
)

// refused describes a message that was published but not acknowledged.
func (s *Sink) refused(l *link, subject string, err error) error {
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		l.ensured = false // the stream may have been deleted
		return fmt.Errorf("publish to %s: %w: %s", subject, err, s.noStream(subject))
	}
	if errors.Is(err, jetstream.ErrAsyncPublishTimeout) {
		return fmt.Errorf("publish to %s: no acknowledgement within %s", subject, s.o.Timeout)
	}
	err = fmt.Errorf("publish to %s: %w%s", subject, err, hint(err))
	var answer jetstream.JetStreamError
	if errors.As(err, &answer) && answer.APIError() != nil {
		switch answer.APIError().ErrorCode {
		case jetstream.JSErrCodeStreamMessageExceedsMaximum:
			return &sink.TooLargeError{Err: err}
		case codeHeaderTooLong:
			return &sink.PermanentError{Err: err}
		}
	}
	return err
}

// noStream says what to do if no stream has a subject.
func (s *Sink) noStream(subject string) string {
	const off = " (or JetStream is off on the server)"
	if s.o.Stream.Create {
		return fmt.Sprintf("the stream %s does not have the subject%s: add it to the stream's subjects", s.o.Stream.Name, off)
	}
	cover := covering(s.o.Subject)
	if cover == nil {
		cover = []string{subject}
	}
	stream := s.o.Stream.Name
	if stream == "" {
		stream = "TATTLER"
	}
	return fmt.Sprintf("no stream has the subject%s: create one, for example with nats stream add %s --subjects '%s', or set stream: {name: %s, create: true}",
		off, stream, cover[0], stream)
}

// hint says what to do about an error, or is empty if the error says it.
func hint(err error) string {
	var answer jetstream.JetStreamError
	if errors.As(err, &answer) && answer.APIError() != nil {
		switch answer.APIError().ErrorCode {
		case codeOtherStream:
			return ": another stream has the subject: see stream.name"
		case codeOverlap:
			return ": another stream has some of its subjects: name that one, or choose different subjects"
		case jetstream.JSErrCodeJetStreamNotEnabled, jetstream.JSErrCodeJetStreamNotEnabledForAccount:
			return ": the sink needs JetStream, on the server and for the account"
		}
	}
	text := strings.ToLower(err.Error())
	switch {
	case errors.Is(err, nats.ErrPermissionViolation):
		return ": the user needs the right to publish to the subject and to subscribe to _INBOX.> (or inboxPrefix)" +
			", and with create: true to publish to $JS.API.STREAM.INFO.* and $JS.API.STREAM.CREATE.*"
	case errors.Is(err, nats.ErrAuthorization), strings.Contains(text, "authorization violation"), strings.Contains(text, "authentication"):
		return ": see user, password, token, credentials and nkey"
	case errors.Is(err, nats.ErrSecureConnWanted):
		return ": the server has no TLS on this port"
	}
	return ""
}

// shown adds the destination to an error and masks credentials.
func (s *Sink) shown(err error) error {
	return s.mask.Wrap("nats "+s.place, err)
}

// newMask masks the credentials of the options.
func newMask(o Options) *sink.Mask {
	b := &sink.Mask{}
	b.Add(sink.MinSecret, o.Password, o.Token)
	servers, _ := parseServers(o.Servers)
	for _, u := range servers {
		b.AddUser(u.User)
		if _, ok := u.User.Password(); !ok && u.User != nil {
			b.Add(sink.MinSecret, u.User.Username()) // a token
		}
	}
	return b
}
