package servicebus

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"github.com/tattler-dev/tattler/internal/sink"
)

// blaming lists the conditions that are about the content of a message.
var blaming = []amqp.ErrCond{
	amqp.ErrCondDecodeError, amqp.ErrCondInvalidField, "com.microsoft:argument-error", "com.microsoft:argument-out-of-range",
}

// shown matches the text of an AMQP error in an error of azservicebus, which does not unwrap to it.
var shown = regexp.MustCompile(`(?s)\*Error\{Condition: ([^,]+), Description: (.*), Info: `)

// condition returns the condition and the description of an AMQP error.
func condition(err error) (amqp.ErrCond, string) {
	var of *amqp.Error
	if errors.As(err, &of) && of != nil {
		return of.Condition, of.Description
	}
	if err == nil {
		return "", ""
	}
	if m := shown.FindStringSubmatch(err.Error()); m != nil {
		return amqp.ErrCond(m[1]), m[2]
	}
	return "", ""
}

// aboutMessages reports whether one of the messages of a batch is to blame.
func aboutMessages(err error) bool {
	c, _ := condition(err)
	return errors.Is(err, azservicebus.ErrMessageTooLarge) || c == amqp.ErrCondMessageSizeExceeded || slices.Contains(blaming, c)
}

// wait matches the wait that Service Bus asks for.
var wait = regexp.MustCompile(`(?i)wait (\d+) seconds`)

// failed returns the error for a batch of one message, or an error that is not about messages.
func (s *Sink) failed(err error) error {
	c, said := condition(err)
	text := s.mask.Text(err.Error())
	if c != "" {
		text = strings.TrimSuffix(string(c)+": "+s.mask.Excerpt([]byte(said)), ": ")
	}
	if hint := s.hint(err, c, said); hint != "" {
		text += "; " + hint
	}
	out := refusal{err, fmt.Sprintf("%s: %s", s.what(), text)}
	switch m := wait.FindStringSubmatch(said); {
	case errors.Is(err, azservicebus.ErrMessageTooLarge), c == amqp.ErrCondMessageSizeExceeded:
		return &sink.TooLargeError{Err: out}
	case slices.Contains(blaming, c):
		return &sink.PermanentError{Err: out}
	case m != nil:
		if n, e := strconv.ParseUint(m[1], 10, 31); e == nil {
			return &sink.RetryAfterError{After: time.Duration(n) * time.Second, Err: out}
		}
	}
	return out
}

// hint says what to do about an error.
func (s *Sink) hint(err error, c amqp.ErrCond, said string) string {
	var of *azservicebus.Error
	code := azservicebus.Code("")
	if errors.As(err, &of) {
		code = of.Code
	}
	switch {
	case c == amqp.ErrCondUnauthorizedAccess, code == azservicebus.CodeUnauthorizedAccess:
		return "grant the identity the role Azure Service Bus Data Sender, or correct the connection string's policy and key"
	case c == amqp.ErrCondNotFound, code == azservicebus.CodeNotFound:
		return "create the queue or topic, or correct its name or namespace"
	case strings.Contains(said, "SessionId"):
		return "the entity requires sessions: set sessions: true"
	case c == amqp.ErrCondResourceLimitExceeded:
		return "the entity is full: consume its messages, or make it larger"
	case c == "com.microsoft:entity-disabled":
		return "enable the entity"
	case c == "com.microsoft:server-busy":
		return "the request exceeds the quota; it will be retried"
	}
	return ""
}

// refusal is an error with a text that includes a hint and shows no credential.
type refusal struct {
	err  error
	text string
}

func (r refusal) Error() string { return r.text }

func (r refusal) Unwrap() error { return r.err }
