// Package rabbitmq is the sink that publishes each change to an exchange of RabbitMQ, and waits for the
// confirmation.
//
// The body is the CloudEvent in structured JSON; the message is persistent, and has its id as message id. A
// confirmation says that every queue that is bound has it, on disk where the queue is durable. Permanent is a
// routing key that cannot be made; too long is what exceeds the server's max_message_size. All else passes: no
// connection, an alarm of memory or disk, a queue that is full and refuses, and also refused credentials,
// missing rights, an exchange that is not there, and a message for which no queue is bound. What is sent
// again, after a failure or a crash, comes twice under the same message id: consumers remember ids.
//
// Messages of different objects are on their way together; the next of an object goes when the one before
// is confirmed. So no change overtakes another of its object, whatever a queue refuses.
package rabbitmq

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
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
	blot   *sink.Blot

	// max is how long the server has said a body may be; 0 where it has not. Only Send uses it.
	max int

	mu      sync.Mutex // Close may come from another goroutine than Send
	conn    *connection
	dialing *dialing
	closed  bool
}

// dialing is a connection that is being made; it goes on when the Send that began it ends.
type dialing struct {
	done   chan struct{}
	cancel func()
	conn   *connection
	err    error
}

// New makes a sink; it reads the files of TLS, and connects with the first Send. The agent, such as
// tattler/v1.2.3, names the connection and is the app id of each message.
func New(agent string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("rabbitmq sink: %w", err)
	}
	s := &Sink{o: o.withDefaults(), agent: agent, blot: &sink.Blot{}, max: int(o.MaxMessageBytes)}
	s.server, _ = parseServer(o.URL)
	s.key, _ = keyName(o.RoutingKey)
	s.place = "exchange " + o.Exchange
	if o.Queue != "" {
		s.place = "queue " + o.Queue
	}
	s.place += " at " + s.server.address
	if s.server.user != nil {
		s.blot.AddUser(s.server.user)
	}
	var err error
	if s.tls, err = o.TLS.Client(); err != nil {
		return nil, fmt.Errorf("rabbitmq sink: tls: %w", err)
	}
	return s, nil
}

func (s *Sink) String() string { return "rabbitmq " + s.place }

// Close tells the server, and ends the connection.
func (s *Sink) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	conn, d := s.conn, s.dialing
	s.conn, s.dialing = nil, nil
	s.mu.Unlock()
	if d != nil {
		d.cancel()
		<-d.done
		if d.conn != nil {
			d.conn.close(0)
		}
	}
	if conn != nil {
		within := time.Second
		if deadline, ok := ctx.Deadline(); ok {
			within = min(within, time.Until(deadline))
		}
		conn.close(within)
	}
	return nil
}

// drop ends a connection that is of no more use.
func (s *Sink) drop(c *connection) {
	s.mu.Lock()
	if s.conn == c {
		s.conn = nil
	}
	s.mu.Unlock()
	c.close(0)
}

// connect is the connection. The making of one outlives ctx, so that a slow server is reached in the end.
func (s *Sink) connect(ctx context.Context) (*connection, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errors.New("the sink is closed")
	}
	if c := s.conn; c != nil && c.alive() {
		s.mu.Unlock()
		return c, nil
	} else if c != nil {
		s.conn = nil
		defer c.close(0)
	}
	d := s.dialing
	if d == nil {
		d = &dialing{done: make(chan struct{})}
		var background context.Context
		background, d.cancel = context.WithCancel(context.WithoutCancel(ctx))
		s.dialing = d
		go func() {
			defer close(d.done)
			defer d.cancel()
			d.conn, d.err = s.dial(background)
		}()
	}
	s.mu.Unlock()
	select {
	case <-d.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dialing != d { // closed meanwhile
		return nil, errors.New("the sink is closed")
	}
	s.dialing, s.conn = nil, d.conn
	return d.conn, d.err
}

// Send publishes messages.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	for acked < len(ms) {
		if ctx.Err() != nil {
			return acked, fmt.Errorf("publish to %s: %w", s.place, ctx.Err())
		}
		c, err := s.connect(ctx)
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
			s.max = limit // now those that fit can be told from the one that does not
			continue
		}
		return acked, s.failed(ctx, c, err)
	}
	return acked, nil
}

// flight is what is on its way.
type flight struct {
	confirmed []*amqp.DeferredConfirmation // of the first messages, one each
	last      map[string]int               // by key
}

// publish publishes messages in order, and waits for their confirmations.
func (s *Sink) publish(ctx context.Context, c *connection, ms []sink.Message) (acked int, err error) {
	if err := c.ready(ctx, s.o.Timeout); err != nil {
		return 0, err
	}
	c.drain(nil)
	f := flight{last: map[string]int{}}
	returned := map[string]amqp.Return{}
	// settle waits for the first n messages.
	settle := func(n int) error {
		for acked < n {
			if err := s.confirmed(ctx, c, f.confirmed[acked]); err != nil {
				return err
			}
			c.drain(returned)
			if r, ok := returned[ms[acked].ID]; ok {
				return &returnedError{key: r.RoutingKey, text: r.ReplyText}
			}
			acked++
		}
		return nil
	}
	for i, m := range ms {
		before := i - window + 1 // how many must be confirmed before this one goes
		if at, ok := f.last[m.Key]; ok {
			before = max(before, at+1)
		}
		if err := settle(before); err != nil {
			return acked, err
		}
		confirmation, err := s.one(ctx, c, m)
		if err != nil {
			// What stands before it may have arrived.
			if earlier := settle(i); earlier != nil {
				err = earlier
			}
			return acked, err
		}
		f.confirmed = append(f.confirmed, confirmation)
		f.last[m.Key] = i
	}
	return acked, settle(len(ms))
}

// drain empties the queue of what was returned; the server sends it before the confirmation.
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

// one publishes one message. A write that hangs ends with ctx, and so does the connection.
func (s *Sink) one(ctx context.Context, c *connection, m sink.Message) (*amqp.DeferredConfirmation, error) {
	if s.max > 0 && len(m.Body) > s.max {
		return nil, &sink.TooLargeError{Limit: s.max, Err: fmt.Errorf(
			"publish to %s: a body of %d bytes; the limit (max_message_size) is %d", s.place, len(m.Body), s.max)}
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
func (s *Sink) confirmed(ctx context.Context, c *connection, confirmation *amqp.DeferredConfirmation) error {
	timer := time.NewTimer(s.o.Timeout)
	defer timer.Stop()
	select {
	case <-confirmation.Done():
		if confirmation.Acked() {
			return nil
		}
		if !c.alive() { // the client nacks all when the channel closes
			return c.reason()
		}
		return errNack
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return errSilent
	}
}
