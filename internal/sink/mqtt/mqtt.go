// Package mqtt is the sink that publishes each change to a topic of an MQTT 5 server, with QoS 1: each
// message is acknowledged by itself.
//
// A message is the event's JSON, with the content type of the CloudEvents binding, and the id and the key as
// user properties. MQTT knows no repeats: what is sent again, for lack of an acknowledgement, arrives again
// under the same id. Messages are pipelined as far as the server allows it; of one object only one is on its
// way at a time, and none is sent after one that waits, so that nothing overtakes one that failed. The
// session begins anew with each connection: no other state than the server's is there to be resumed.
//
// Permanent is what no topic can be made of, a topic that the server does not take where the topic is the
// message's own, and a payload that it finds malformed. What is longer than the server takes is too large.
// All else passes: no connection, no answer, refused credentials and missing rights, a quota, and a server
// that does not want to say why. That nobody has subscribed is no error. No error shows a credential.
package mqtt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/eclipse/paho.golang/packets"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Sink publishes to topics.
type Sink struct {
	o      Options
	agent  string
	url    *url.URL
	place  string // the address, as far as it may be shown
	topic  *sink.Name
	fixed  bool // all messages have the same topic
	tls    *tls.Config
	blot   *sink.Blot
	single int // so many messages go alone: one of them may be too long

	mu     sync.Mutex // Close may come from another goroutine than Send
	link   *link      // nil where there is none
	closed bool
}

// New makes a sink; it reads the files of TLS, and connects with the first Send. The agent is shown to the
// server as a user property of the connection, such as tattler/v1.2.3.
func New(agent string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("mqtt sink: %w", err)
	}
	s := &Sink{o: o.withDefaults(), agent: agent, blot: &sink.Blot{}}
	s.blot.Add(sink.LeastPassword, o.Password)
	s.url, _ = parseURL(o.URL)
	s.place = s.url.Scheme + "://" + hostPort(s.url)
	s.topic, _ = topics(s.o.Topic)
	s.fixed = !strings.Contains(s.o.Topic, "{{")
	if s.url.Scheme == "mqtts" {
		var err error
		if s.tls, err = o.TLS.Client(); err != nil {
			return nil, fmt.Errorf("mqtt sink: tls: %w", err)
		}
		if s.tls.ServerName == "" {
			s.tls.ServerName = s.url.Hostname()
		}
	}
	return s, nil
}

func (s *Sink) String() string { return "mqtt " + s.place + " " + s.o.Topic }

// Close ends the connection, and with it a Send that is under way.
func (s *Sink) Close(ctx context.Context) error {
	s.mu.Lock()
	l := s.link
	s.link, s.closed = nil, true
	s.mu.Unlock()
	if l != nil {
		l.close(ctx)
	}
	return nil
}

// Send publishes messages, and waits for their acknowledgements.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	if len(ms) == 0 {
		return 0, nil
	}
	l, err := s.connected(ctx)
	if err != nil {
		return 0, s.failed(err)
	}
	stop := context.AfterFunc(ctx, func() { l.end(context.Cause(ctx)) })
	defer stop()
	x := exchange{s: s, l: l, ms: ms, end: len(ms), flying: map[uint16]int{}, keys: map[string]bool{}, answered: make([]bool, len(ms))}
	x.run()
	if x.acked == len(ms) {
		return x.acked, nil
	}
	if l.over() {
		s.forget(l)
	}
	return x.acked, s.failed(x.err)
}

// connected is a connection that was alive a moment ago.
func (s *Sink) connected(ctx context.Context) (*link, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	l, closed := s.link, s.closed
	s.mu.Unlock()
	if closed {
		return nil, errors.New("the sink is closed")
	}
	if l != nil {
		if !l.over() {
			return l, nil
		}
		s.forget(l)
		// It ended while nothing was sent, as servers may do at any time. But two that end each other's
		// connections would do so for ever, without anybody being told.
		var gone *disconnected
		if errors.As(l.err, &gone) && gone.code == packets.DisconnectSessionTakenOver {
			return nil, l.err
		}
	}
	l, err := s.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		l.end(nil)
		l.running.Wait()
		return nil, errors.New("the sink is closed")
	}
	s.link = l
	return l, nil
}

// forget frees what is left of a connection that is over.
func (s *Sink) forget(l *link) {
	l.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == l {
		s.link = nil
	}
}

// failed says where an error comes from. What says more than text stays outermost.
func (s *Sink) failed(err error) error {
	text := fmt.Errorf("publish to %s: %w", s.place, s.blot.Error(err))
	var long *sink.TooLargeError
	var permanent *sink.PermanentError
	switch {
	case errors.As(err, &long):
		return &sink.TooLargeError{Limit: long.Limit, Err: text}
	case errors.As(err, &permanent):
		return &sink.PermanentError{Err: text}
	}
	return text
}
