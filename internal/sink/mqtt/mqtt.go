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
	"net/url"
	"strings"
	"sync"

	"github.com/eclipse/paho.golang/packets"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Sink publishes to topics.
type Sink struct {
	o     Options
	agent string
	url   *url.URL
	place string // the address without credentials
	topic *sink.Name
	fixed bool // all messages have the same topic
	tls   *tls.Config
	mask  *sink.Mask
	// suspects counts the next messages to send one at a time, because one of them may be too long.
	suspects int

	mu     sync.Mutex // Close may run concurrently with Send
	link   *link      // nil: not connected
	closed bool
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

// Close ends the connection and with it any running Send.
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
	x := exchange{s: s, l: l, ms: ms, end: len(ms), inFlight: map[uint16]int{}, keys: map[string]bool{}, answered: make([]bool, len(ms))}
	x.run()
	if x.acked == len(ms) {
		return x.acked, nil
	}
	if l.over() {
		s.forget(l)
	}
	return x.acked, s.failed(x.err)
}

// connected returns a working connection.
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
		// It ended while the sink was idle, as servers may do at any time. But two clients that take over each
		// other's session would do so for ever, without an error.
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

// forget releases a connection that is over.
func (s *Sink) forget(l *link) {
	l.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == l {
		s.link = nil
	}
}

// failed adds the destination to an error and masks credentials. The typed errors of package sink stay outermost.
func (s *Sink) failed(err error) error {
	return s.mask.Wrap("publish to "+s.place, err)
}
