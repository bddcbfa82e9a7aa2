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

// returnedError is about a message for which there is no queue.
type returnedError struct{ key, text string }

func (e *returnedError) Error() string {
	return fmt.Sprintf("returned: %s for routing key %q", e.text, e.key)
}

// tooLarge is what RabbitMQ says when it closes the channel.
var tooLarge = regexp.MustCompile(`message size \d+ is larger than (?:configured )?max size (\d+)`)

// limitOf is the server's max_message_size, where an error tells it.
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

// failed is the error of Send. A connection that is of no more use ends here.
func (s *Sink) failed(ctx context.Context, c *connection, err error) error {
	var permanent *sink.PermanentError
	var long *sink.TooLargeError
	switch {
	case errors.As(err, &permanent), errors.As(err, &long):
		return err
	case ctx.Err() != nil: // the connection is kept: it may only be slow
		return fmt.Errorf("publish to %s: %w", s.place, ctx.Err())
	case c == nil:
		return s.refused(err)
	}
	blocked := c.isBlocked()
	var returned *returnedError
	// A server that is blocked has what was written before it said so, and takes it later.
	if !errors.As(err, &returned) && !errors.Is(err, errNack) && (blocked == "" || !c.alive()) {
		s.drop(c)
	}
	switch {
	case errors.As(err, &returned) && s.o.Queue != "":
		return fmt.Errorf("publish to %s: there is no such queue (declare it): %w", s.place, s.blot.Error(err))
	case errors.As(err, &returned):
		return fmt.Errorf("publish to %s: no queue is bound for this message (bind one, or set allowUnroutable): %w", s.place, s.blot.Error(err))
	case blocked != "":
		return fmt.Errorf("publish to %s: the server takes nothing at the moment (its alarm: %s): %w", s.place, s.blot.Text(blocked), s.blot.Error(err))
	}
	return s.refused(err)
}

// refused is about what the server or the way to it says.
func (s *Sink) refused(err error) error {
	said := s.blot.Error(err)
	switch code(err) {
	case amqp.NotFound:
		return fmt.Errorf("publish to %s: it is not there (declare it): %w", s.place, said)
	case amqp.AccessRefused:
		return fmt.Errorf("publish to %s: refused (look at user, password, and the right to write): %w", s.place, said)
	case amqp.NotAllowed:
		return fmt.Errorf("publish to %s: not allowed in vhost %s (is it there, and may the user use it?): %w", s.place, s.server.vhost, said)
	}
	return fmt.Errorf("publish to %s: %w", s.place, said)
}
