// Package nats is the sink that publishes each change to a subject of NATS, and has it acknowledged by a JetStream
// stream.
//
// A message is the event's JSON with the headers content-type and Nats-Msg-Id, which is ID@SUBJECT. The stream
// acknowledges a repeat within its duplicate window without storing it again; because of the subject in the id, two
// sinks with different subjects do not drop each other's messages. An acknowledged message is stored. Only one
// message per object is in flight, so none overtakes one that failed; other objects do not wait.
//
// The only permanent error is a subject that the template cannot make. A message beyond the server's limit is too
// large. All other errors are temporary: no connection, no answer, refused credentials, missing rights, no stream
// with the subject, a full stream. No error shows a credential.
package nats

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Sink publishes to subjects.
type Sink struct {
	o       Options
	agent   string
	servers []*url.URL
	place   string // the servers without credentials
	subject *sink.Name
	tls     *tls.Config
	mask    *sink.Mask

	conn sink.Lazy[*link]
}

// New returns a sink. It reads files, and connects with the first Send. The agent names the connection, such as
// tattler/v1.2.3.
func New(agent string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("nats sink: %w", err)
	}
	s := &Sink{o: o.withDefaults(), agent: agent, mask: newMask(o)}
	s.servers, _ = parseServers(o.Servers)
	s.subject, _ = subjects(s.o.Subject)
	var shown []string
	for _, u := range s.servers {
		shown = append(shown, u.Scheme+"://"+u.Host)
	}
	s.place = strings.Join(shown, ",")
	if err := s.o.readable(); err != nil {
		return nil, fmt.Errorf("nats sink: %w", err)
	}
	var err error
	if s.tls, err = o.TLS.Client(); err != nil {
		return nil, fmt.Errorf("nats sink: tls: %w", err)
	}
	s.conn = sink.Lazy[*link]{
		Open:   s.connect, // bounds the attempt for each server
		Free:   func(_ context.Context, l *link) error { l.close(); return nil },
		Broken: func(l *link) bool { return l.failed.Err() != nil },
	}
	return s, nil
}

func (s *Sink) String() string { return "nats " + s.place + " " + s.o.Subject }

// Close ends the connection and with it any running Send.
func (s *Sink) Close(ctx context.Context) error { return s.conn.Close(ctx) }

// Send publishes messages in order, and those of one object one after the other.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	if len(ms) == 0 {
		return 0, nil
	}
	l, err := s.conn.Get(ctx)
	if err == nil {
		acked, err = s.publish(ctx, l, ms)
	}
	if err == nil {
		return acked, nil
	}
	if l != nil && s.broken(ctx, l, err) {
		s.conn.Reset(l)
	}
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w (%w)", ended, err)
	}
	return acked, s.shown(err)
}

// broken reports whether to give a connection up after an error. After the end of ctx it is kept: the answer may
// still come, and what was published on it precedes what is sent again.
func (s *Sink) broken(ctx context.Context, l *link, err error) bool {
	var answer jetstream.JetStreamError // the server refused
	return l.failed.Err() != nil ||
		ctx.Err() == nil && !errors.As(err, &answer) && !sink.BlamesMessage(err)
}

// publish publishes messages and returns how many of the first ones were acknowledged.
func (s *Sink) publish(ctx context.Context, l *link, ms []sink.Message) (int, error) {
	// A write that hangs ends with ctx; the next write sets a new deadline.
	stop := context.AfterFunc(ctx, func() { _ = l.raw.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := s.ensure(ctx, l); err != nil {
		return 0, err
	}
	w := sink.Window[jetstream.PubAckFuture]{
		Start: func(m sink.Message) (jetstream.PubAckFuture, error) { return s.begin(l, m) },
		Wait:  func(_ sink.Message, f jetstream.PubAckFuture) error { return s.await(ctx, l, f) },
	}
	return w.Send(ms)
}

// begin publishes one message without waiting.
func (s *Sink) begin(l *link, m sink.Message) (jetstream.PubAckFuture, error) {
	subject, err := s.subject.Of(m.Event)
	if err != nil {
		return nil, &sink.PermanentError{Err: fmt.Errorf("make subject: %w", err)}
	}
	msg := &nats.Msg{Subject: subject, Data: m.Body, Header: nats.Header{
		"content-type":        {"application/cloudevents+json"},
		jetstream.MsgIDHeader: {m.ID + "@" + subject},
	}}
	if s.o.Stream.Name != "" {
		msg.Header.Set(jetstream.ExpectedStreamHeader, s.o.Stream.Name)
	}
	if most := l.nc.MaxPayload() - headerSize(msg.Header); int64(len(m.Body)) > most {
		return nil, &sink.TooLargeError{
			Limit: int(max(most, 1)),
			Err:   fmt.Errorf("publish to %s: %d bytes exceed the %d that the server takes (max_payload)", subject, len(m.Body), most),
		}
	}
	// The client must not retry: its retry would come after the messages that follow.
	future, err := l.js.PublishMsgAsync(msg, jetstream.WithRetryAttempts(0))
	if err != nil {
		if cause := context.Cause(l.failed); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("publish to %s: %w", subject, err)
	}
	return future, nil
}

// headerSize returns how many bytes headers take from the server's max_payload.
func headerSize(h nats.Header) int64 {
	n := len("NATS/1.0\r\n\r\n")
	for key, values := range h {
		for _, v := range values {
			n += len(key) + len(": ") + len(v) + len("\r\n")
		}
	}
	return int64(n)
}

// await waits for the acknowledgement of a message.
func (s *Sink) await(ctx context.Context, l *link, f jetstream.PubAckFuture) error {
	select {
	case <-f.Ok(): // even if ctx has ended
		return nil
	default:
	}
	var err error
	select {
	case <-f.Ok():
		return nil
	case err = <-f.Err():
	case <-ctx.Done():
		err = ctx.Err()
	case <-l.failed.Done():
		err = context.Cause(l.failed)
	}
	return s.refused(l, f.Msg().Subject, err)
}
