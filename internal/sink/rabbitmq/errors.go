package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tattler-dev/tattler/internal/sink"
)

var (
	errNack   = errors.New("the server refused the message (nack): a queue is full and rejects, or has failed")
	errSilent = errors.New("no confirmation in time")
)

// returnedError means that no queue took a message.
type returnedError struct{ key, text string }

func (e *returnedError) Error() string {
	return fmt.Sprintf("returned: %s for routing key %q", e.text, e.key)
}

// tooLarge matches RabbitMQ's reason for closing the channel.
var tooLarge = regexp.MustCompile(`message size \d+ is larger than (?:configured )?max size (\d+)`)

// limitOf returns the server's max_message_size if an error contains it.
func limitOf(err error) (int, bool) {
	if code(err) != amqp.PreconditionFailed {
		return 0, false
	}
	found := tooLarge.FindStringSubmatch(err.Error())
	if found == nil {
		return 0, false
	}
	n, err := strconv.Atoi(found[1])
	return n, err == nil && n > 0
}

// failed converts the error of Send. It drops a connection that is unusable.
func (s *Sink) failed(ctx context.Context, c *connection, err error) error {
	switch {
	case sink.BlamesMessage(err):
		return err
	case ctx.Err() != nil: // keep the connection: it may only be slow
		return fmt.Errorf("publish to %s: %w", s.place, ctx.Err())
	case c == nil:
		return s.refused(err)
	}
	blocked := c.isBlocked()
	var returned *returnedError
	// A blocked server has the messages written before it said so, and processes them later.
	if !errors.As(err, &returned) && !errors.Is(err, errNack) && (blocked == "" || !c.alive()) {
		s.drop(c)
	}
	switch {
	case errors.As(err, &returned) && s.o.Queue != "":
		return fmt.Errorf("publish to %s: the queue does not exist (declare it): %w", s.place, s.mask.Error(err))
	case errors.As(err, &returned):
		return fmt.Errorf("publish to %s: no queue is bound for this message (bind one, or set allowUnroutable): %w", s.place, s.mask.Error(err))
	case blocked != "":
		return fmt.Errorf("publish to %s: the server is blocked by an alarm (%s): %w", s.place, s.mask.Text(blocked), s.mask.Error(err))
	}
	return s.refused(err)
}

// refused describes an error of the server or the connection.
func (s *Sink) refused(err error) error {
	said := s.mask.Error(err)
	switch code(err) {
	case amqp.NotFound:
		return fmt.Errorf("publish to %s: it does not exist (declare it): %w", s.place, said)
	case amqp.AccessRefused:
		return fmt.Errorf("publish to %s: refused (check user, password, and the right to write): %w", s.place, said)
	case amqp.NotAllowed:
		return fmt.Errorf("publish to %s: not allowed in vhost %s (does it exist, and may the user use it?): %w", s.place, s.server.vhost, said)
	}
	return fmt.Errorf("publish to %s: %w", s.place, said)
}
