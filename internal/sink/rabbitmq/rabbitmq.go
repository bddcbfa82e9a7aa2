// Package rabbitmq is the sink that publishes each change to an exchange of RabbitMQ, and waits for the
// confirmation.
//
// The body is the CloudEvent in structured JSON; the message is persistent, and its message id is the event's id. A
// confirmation means that every bound queue has the message, on disk if the queue is durable. A routing key that
// cannot be made is a permanent error; a body that exceeds the server's max_message_size is too long. All other
// errors are temporary: no connection, an alarm of memory or disk, a full queue that rejects, refused credentials,
// missing rights, a missing exchange, a message for which no queue is bound. What is sent again, after a failure or
// a crash, arrives twice under the same message id: consumers must remember ids.
//
// Messages of different objects are in flight together. The next message of an object is sent when the previous one
// is confirmed, so no change overtakes another of its object, whatever a queue refuses.
package rabbitmq

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Sink publishes to an exchange.
type Sink struct {
	o      Options
	agent  string
	server server
	place  string
	key    *sink.Name
	tls    *tls.Config
	mask   *sink.Mask

	// max is the server's limit on bodies, or 0 if it is unknown. Only Send uses it.
	max int

	conn sink.Lazy[*connection]
}

// New returns a sink. It reads the TLS files, and connects with the first Send. The agent, such as tattler/v1.2.3,
// names the connection and is the app id of each message.
func New(agent string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("rabbitmq sink: %w", err)
	}
	s := &Sink{o: o.withDefaults(), agent: agent, mask: &sink.Mask{}, max: int(o.MaxMessageBytes)}
	s.server, _ = parseServer(o.URL)
	s.key, _ = keyName(o.RoutingKey)
	s.place = "exchange " + o.Exchange
	if o.Queue != "" {
		s.place = "queue " + o.Queue
	}
	s.place += " at " + s.server.HostPort
	if s.server.User != nil {
		s.mask.AddUser(s.server.User)
	}
	var err error
	if s.tls, err = o.TLS.Client(); err != nil {
		return nil, fmt.Errorf("rabbitmq sink: tls: %w", err)
	}
	s.conn = sink.Lazy[*connection]{
		Open: s.dial, Timeout: s.o.Timeout,
		Patient: true, // the handshake has many round trips
		Free:    func(ctx context.Context, c *connection) error { c.close(ctx); return nil },
		Broken:  func(c *connection) bool { return !c.alive() },
	}
	return s, nil
}

func (s *Sink) String() string { return "rabbitmq " + s.place }

// Close closes the connection gracefully.
func (s *Sink) Close(ctx context.Context) error { return s.conn.Close(ctx) }

// Send publishes messages.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	for acked < len(ms) {
		c, err := s.conn.Get(ctx)
		if err != nil {
			return acked, s.failed(ctx, nil, err)
		}
		known := s.max
		n, err := s.publish(ctx, c, ms[acked:])
		acked += n
		if err == nil {
			continue
		}
		if limit, ok := limitOf(err); ok && s.max == known && (known == 0 || limit < known) {
			s.max = limit // now only the messages that are too long fail
			continue
		}
		return acked, sink.Keep(s.failed(ctx, c, err), err)
	}
	return acked, nil
}

// publish publishes messages in order and waits for their confirmations.
func (s *Sink) publish(ctx context.Context, c *connection, ms []sink.Message) (acked int, err error) {
	if err := c.ready(ctx, s.o.Timeout); err != nil {
		return 0, err
	}
	c.drain(nil)
	returned := map[string]amqp.Return{}
	patience, failed := s.o.Timeout, false
	w := sink.Window[*amqp.DeferredConfirmation]{
		Size:  window,
		Start: func(m sink.Message) (*amqp.DeferredConfirmation, error) { return s.one(ctx, c, m) },
		Wait: func(m sink.Message, confirmation *amqp.DeferredConfirmation) error {
			began := time.Now()
			err := s.confirmed(ctx, c, confirmation, patience)
			if failed = failed || err != nil; failed { // the others have the rest of the time together
				patience -= time.Since(began)
			}
			if err != nil {
				return err
			}
			c.drain(returned)
			if r, ok := returned[m.ID]; ok {
				return &returnedError{key: r.RoutingKey, text: r.ReplyText}
			}
			return nil
		},
	}
	return w.Send(ms)
}

// drain reads the returned messages. The server sends a return before the confirmation.
func (c *connection) drain(into map[string]amqp.Return) {
	for {
		select {
		case r, ok := <-c.returns:
			if !ok {
				return
			}
			if into != nil {
				into[r.MessageId] = r
			}
		default:
			return
		}
	}
}

// one publishes one message. If the write hangs, the end of ctx closes the connection.
func (s *Sink) one(ctx context.Context, c *connection, m sink.Message) (*amqp.DeferredConfirmation, error) {
	if s.max > 0 && len(m.Body) > s.max {
		return nil, &sink.TooLargeError{Limit: s.max, Err: fmt.Errorf(
			"publish to %s: a body of %d bytes exceeds max_message_size, which is %d", s.place, len(m.Body), s.max)}
	}
	key := s.o.Queue
	if s.key != nil {
		var err error
		if key, err = s.key.Of(m.Event); err != nil {
			return nil, &sink.PermanentError{Err: fmt.Errorf("make routing key: %w", err)}
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = c.net.Close() })
	defer stop()
	p := amqp.Publishing{
		ContentType: "application/cloudevents+json; charset=UTF-8", DeliveryMode: amqp.Persistent,
		MessageId: m.ID, AppId: s.agent, Body: m.Body,
	}
	if m.Event != nil {
		p.Timestamp, p.Type = m.Event.Time, m.Event.Type
	}
	confirmation, err := c.ch.PublishWithDeferredConfirm(s.o.Exchange, key, !s.o.AllowUnroutable, false, p)
	if err != nil && !c.alive() {
		err = c.reason()
	}
	return confirmation, err
}

// confirmed waits for a confirmation.
func (s *Sink) confirmed(ctx context.Context, c *connection, confirmation *amqp.DeferredConfirmation, patience time.Duration) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var err error
	select {
	case <-confirmation.Done():
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = errSilent
	}
	select {
	case <-confirmation.Done(): // even if the time is over
	default:
		return err
	}
	switch {
	case confirmation.Acked():
		return nil
	case !c.alive(): // the client nacks everything when the channel closes
		return c.reason()
	}
	return errNack
}
