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
		return s.mask.Wrap("publish to "+s.place, ctx.Err())
	}
	var returned *returnedError
	unroutable, blocked := errors.As(err, &returned), ""
	if c != nil {
		blocked = c.isBlocked()
		// A blocked server has the messages written before it said so, and processes them later.
		if !unroutable && !errors.Is(err, errNack) && (blocked == "" || !c.alive()) {
			s.conn.Reset(c)
		}
	}
	hint := ""
	switch {
	case unroutable && s.o.Queue != "":
		hint = "the queue does not exist (declare it): "
	case unroutable:
		hint = "no queue is bound for this message (bind one, or set allowUnroutable): "
	case blocked != "":
		hint = "the server is blocked by an alarm (" + blocked + "): "
	case code(err) == amqp.NotFound:
		hint = "it does not exist (declare it): "
	case code(err) == amqp.AccessRefused:
		hint = "refused (check user, password, and the right to write): "
	case code(err) == amqp.NotAllowed:
		hint = "not allowed in vhost " + s.server.vhost + " (does it exist, and may the user use it?): "
	}
	return s.mask.Wrap("publish to "+s.place, fmt.Errorf("%s%w", hint, err))
}
