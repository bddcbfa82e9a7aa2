// Package nats is the sink that publishes each change to a subject of NATS, and has it acknowledged by a
// JetStream stream.
//
// A message is the event's JSON with the headers content-type and Nats-Msg-Id, which is ID@SUBJECT: a repeat
// within the stream's window for duplicates is acknowledged and not stored again, and two sinks with
// other subjects do not take each other's messages for repeats. What was acknowledged is stored. Of one
// object only one message is on its way at a time, so that none overtakes one that failed; those of other
// objects are not waited for.
//
// Only what the template of the subject cannot do with an event is permanent; what is longer than the server
// takes is too large. All else passes: no connection, no answer, refused credentials and missing rights, no
// stream that has the subject, a stream that is full. No error shows a credential.
package nats

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
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
	place   string // the servers, as far as they may be shown
	subject *sink.Name
	tls     *tls.Config
	blot    *sink.Blot

	mu     sync.Mutex // Close may come from another goroutine than Send
	link   *link      // nil where there is none
	closed bool
}

// New makes a sink; it reads files, and connects with the first Send. The agent is the name of the
// connection, such as tattler/v1.2.3.
func New(agent string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("nats sink: %w", err)
	}
	s := &Sink{o: o.withDefaults(), agent: agent, blot: blotter(o)}
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
	return s, nil
}

func (s *Sink) String() string { return "nats " + s.place + " " + s.o.Subject }

// Close ends the connection, and with it a Send that is under way.
func (s *Sink) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.link != nil {
		s.link.close()
		s.link = nil
	}
	return nil
}

// Send publishes messages in order; those of one object one after the other.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	if len(ms) == 0 {
		return 0, nil
	}
	l, err := s.connected(ctx)
	if err == nil {
		acked, err = s.publish(ctx, l, ms)
	}
	if err == nil {
		return acked, nil
	}
	if l != nil && s.broken(ctx, l, err) {
		s.drop(l)
	}
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w (%w)", ended, err)
	}
	return acked, s.shown(err)
}

// connected is the connection, and a new one where there is none that works.
func (s *Sink) connected(ctx context.Context) (*link, error) {
	s.mu.Lock()
	l, closed := s.link, s.closed
	s.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if l != nil && l.failed.Err() == nil {
		return l, nil
	}
	if l != nil {
		s.drop(l)
	}
	l, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		l.close()
		return nil, errClosed
	}
	s.link = l
	return l, nil
}

var errClosed = errors.New("the sink is closed")

// drop ends a connection that is of no use.
func (s *Sink) drop(l *link) {
	l.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == l {
		s.link = nil
	}
}

// broken tells whether a connection is given up after an error. After the end of ctx it is not: the answer
// may still come, and what was published on it comes before what is sent again.
func (s *Sink) broken(ctx context.Context, l *link, err error) bool {
	var answer jetstream.JetStreamError // the server refused
	var long *sink.TooLargeError
	var permanent *sink.PermanentError
	return l.failed.Err() != nil ||
		ctx.Err() == nil && !errors.As(err, &answer) && !errors.As(err, &long) && !errors.As(err, &permanent)
}

// publish publishes messages, and returns how many of the first ones were acknowledged.
func (s *Sink) publish(ctx context.Context, l *link, ms []sink.Message) (int, error) {
	// A write that hangs ends with ctx; the next one sets a time of its own.
	stop := context.AfterFunc(ctx, func() { _ = l.raw.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := s.ensure(ctx, l); err != nil {
		return 0, err
	}
	w := window{link: l}
	last := map[string]int{} // by key: the last message that was published
	for i, m := range ms {
		if before, ok := last[m.Key]; ok {
			if err := s.settle(ctx, &w, before+1); err != nil {
				return w.acked, err
			}
		}
		future, err := s.begin(l, m)
		if err != nil {
			if earlier := s.settle(ctx, &w, i); earlier != nil {
				err = earlier
			}
			return w.acked, err
		}
		w.futures = append(w.futures, future)
		last[m.Key] = i
	}
	err := s.settle(ctx, &w, len(ms))
	return w.acked, err
}

// window is what was published in one Send.
type window struct {
	link    *link
	futures []jetstream.PubAckFuture
	acked   int // of the first ones
}

// begin publishes one message.
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
			Err:   fmt.Errorf("publish to %s: %d bytes are more than the %d that the server takes (max_payload)", subject, len(m.Body), most),
		}
	}
	// The client's own retry would come after the messages that follow.
	future, err := l.js.PublishMsgAsync(msg, jetstream.WithRetryAttempts(0))
	if err != nil {
		if cause := context.Cause(l.failed); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("publish to %s: %w", subject, err)
	}
	return future, nil
}

// headerSize is how many bytes headers take of what the server takes.
func headerSize(h nats.Header) int64 {
	n := len("NATS/1.0\r\n\r\n")
	for key, values := range h {
		for _, v := range values {
			n += len(key) + len(": ") + len(v) + len("\r\n")
		}
	}
	return int64(n)
}

// settle waits until the first messages are acknowledged.
func (s *Sink) settle(ctx context.Context, w *window, first int) error {
	for w.acked < first {
		f := w.futures[w.acked]
		var err error
		select {
		case <-f.Ok():
			w.acked++
			continue
		default:
		}
		select {
		case <-f.Ok():
			w.acked++
			continue
		case err = <-f.Err():
		case <-ctx.Done():
			err = ctx.Err()
		case <-w.link.failed.Done():
			err = context.Cause(w.link.failed)
		}
		return s.refused(w.link, f.Msg().Subject, err)
	}
	return nil
}
