// Package mqtt is the sink that publishes each change to a topic of an MQTT 5 server, with QoS 1: the server
// acknowledges each message.
//
// A message is the event's JSON, with the content type of the CloudEvents binding, and the id and the key as user
// properties. MQTT does not drop repeats: an unacknowledged message is sent again, and may arrive twice under the
// same id. Messages are pipelined as far as the server allows, but only one per object is in flight, and none is
// sent past one that waits, so nothing overtakes a message that failed. Each connection starts a new session,
// because the only state is the server's.
//
// Permanent errors are a topic that cannot be made, a topic that the server rejects if topics differ between
// messages, and a payload that it finds malformed. A message beyond the server's limit is too large. All other
// errors are temporary: no connection, no answer, refused credentials, missing rights, a quota, a server that does
// not say why. A topic without subscribers is not an error. No error shows a credential.
package mqtt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Sink publishes to topics.
type Sink struct {
	o     Options
	agent string
	url   sink.Address
	place string // the address without credentials
	topic *sink.Name
	fixed bool // all messages have the same topic
	tls   *tls.Config
	mask  *sink.Mask
	// suspects counts the next messages to send one at a time, because one of them may be too long.
	suspects int

	conn sink.Lazy[*link]
}

// New returns a sink. It reads the TLS files, and connects with the first Send. The agent, such as tattler/v1.2.3,
// is a user property of the connection.
func New(agent string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("mqtt sink: %w", err)
	}
	s := &Sink{o: o.withDefaults(), agent: agent, mask: &sink.Mask{}}
	s.mask.Add(sink.MinSecret, o.Password)
	s.url, _ = parseURL(o.URL)
	s.place = s.url.Scheme + "://" + s.url.HostPort
	s.topic, _ = topics(s.o.Topic)
	s.fixed = !strings.Contains(s.o.Topic, "{{")
	if s.url.Secure {
		var err error
		if s.tls, err = o.TLS.Client(); err != nil {
			return nil, fmt.Errorf("mqtt sink: tls: %w", err)
		}
		if s.tls.ServerName == "" {
			s.tls.ServerName = s.url.Hostname()
		}
	}
	s.conn = sink.Lazy[*link]{
		Open: s.open, Timeout: s.o.Timeout,
		Free: func(ctx context.Context, l *link) error { return l.close(ctx) },
		// A server may end an idle connection at any time. But two clients that take over each other's session would do
		// so for ever, without an error.
		Broken: func(l *link) bool { return l.over() && !ended(l.err, packets.DisconnectSessionTakenOver) },
	}
	return s, nil
}

func (s *Sink) String() string { return "mqtt " + s.place + " " + s.o.Topic }

// Close ends the connection and with it any running Send.
func (s *Sink) Close(ctx context.Context) error { return s.conn.Close(ctx) }

// Send publishes messages, and waits for their acknowledgements.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	if len(ms) == 0 {
		return 0, nil
	}
	l, err := s.conn.Get(ctx)
	if err != nil && !errors.Is(err, sink.ErrClosed) {
		err = fmt.Errorf("connect: %w", err)
	}
	if err != nil {
		return 0, s.failed(err)
	}
	stop := context.AfterFunc(ctx, func() { l.end(context.Cause(ctx)) })
	defer stop()
	acked, err = s.publish(ctx, l, ms)
	if l.over() {
		s.conn.Reset(l)
	}
	return acked, s.failed(err)
}

// publish publishes messages. When it returns, nothing is in flight.
func (s *Sink) publish(ctx context.Context, l *link, ms []sink.Message) (acked int, err error) {
	sent := 0
	w := sink.Window[answer]{Size: l.window}
	if s.suspects > 0 {
		w.Size = 1
	}
	w.Start = func(m sink.Message) (answer, error) {
		p, err := s.message(m, l.packet)
		if err != nil {
			return nil, err
		}
		a, err := l.publish(ctx, p)
		sent++
		return a, err
	}
	w.Wait = func(m sink.Message, a answer) error {
		ack, err := l.await(a, s.o.Timeout)
		if err != nil {
			return err
		}
		return s.refused(ack, m)
	}
	acked, err = w.Send(ms)
	s.suspects = max(0, s.suspects-acked)
	if err != nil && l.over() {
		return acked, sink.Keep(s.lost(err, ms[acked], sent-acked-len(sink.Stored(err))), err)
	}
	return acked, err
}

// lost handles a connection that has ended with some messages unanswered. A server that has not announced its limit
// may end it because a message is too long. Any of those in flight may be to blame, so they are sent one at a time
// next.
func (s *Sink) lost(why error, first sink.Message, inFlight int) error {
	tooLarge := ended(why, packets.DisconnectPacketTooLarge)
	switch {
	case tooLarge && inFlight > 1:
		s.suspects = inFlight
	case tooLarge:
		s.suspects = 0
		return &sink.TooLargeError{Err: why}
	case errors.Is(why, errHungUp) && inFlight == 1: // there may be other reasons, and the sink does not cut on a guess
		return fmt.Errorf("%w while a message of %d bytes was in flight; if this repeats, the message may be too long for the server: set the sink's maxBytes", why, len(first.Body))
	}
	return why
}

// message returns the packet of a message, which must not exceed the server's limit.
func (s *Sink) message(m sink.Message, limit int) (*paho.Publish, error) {
	topic, err := s.topic.Of(m.Event)
	if err != nil {
		return nil, &sink.PermanentError{Err: fmt.Errorf("make topic: %w", err)}
	}
	utf8 := byte(1)
	p := &paho.Publish{
		Topic: topic, QoS: 1, Retain: s.o.Retain, Payload: m.Body,
		Properties: &paho.PublishProperties{
			PayloadFormat: &utf8, ContentType: "application/cloudevents+json",
			User: paho.UserProperties{{Key: "id", Value: m.ID}, {Key: "key", Value: m.Key}},
		},
	}
	if s.o.Expiry > 0 {
		seconds := uint32(s.o.Expiry / time.Second) //nolint:gosec // Validate bounds it
		p.Properties.MessageExpiry = &seconds
	}
	if n := size(p.Packet()); n > limit {
		return nil, &sink.TooLargeError{
			Limit: max(0, len(m.Body)-(n-limit)),
			Err:   fmt.Errorf("a packet of %d bytes; the server takes %d (its Maximum Packet Size)", n, limit),
		}
	}
	return p, nil
}

// size returns the length of a packet on the wire, in bytes.
func size(p *packets.Publish) int {
	n := 0
	for _, b := range p.Buffers() {
		n += len(b)
	}
	head := 2
	for rest := n >> 7; rest > 0; rest >>= 7 {
		head++
	}
	return head + n
}

// failed adds the destination to an error and masks credentials. The typed errors of package sink stay outermost.
func (s *Sink) failed(err error) error {
	return s.mask.Wrap("publish to "+s.place, err)
}
