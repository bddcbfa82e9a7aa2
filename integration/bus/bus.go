// Package bus runs a NATS server with JetStream in this process, and a subscriber that reads what tattler has
// delivered to it.
package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tattler-dev/tattler/event"
)

// Stream is the stream in the addresses of a Server.
const Stream = "CHANGES"

// beginLimit bounds the start of a server, and each answer of it.
const beginLimit = time.Minute

// maxStore bounds the server's storage, in bytes; by default it would take most of the disk.
const maxStore = 256 << 20

// Server is a NATS server on a free loopback port. Close stops it.
type Server struct {
	server *server.Server
	conn   *nats.Conn
	js     jetstream.JetStream
}

// Start starts a server that keeps its streams in a folder, which it creates if necessary.
func Start(dir string) (*Server, error) {
	ns, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, ServerName: "bus", NoLog: true, NoSigs: true,
		JetStream: true, StoreDir: dir, JetStreamMaxStore: maxStore,
	})
	if err != nil {
		return nil, fmt.Errorf("start NATS: %w", err)
	}
	s := &Server{server: ns}
	ns.Start()
	if !ns.ReadyForConnections(beginLimit) {
		s.Close()
		return nil, fmt.Errorf("start NATS: not listening after %v", beginLimit)
	}
	if err := s.connect(); err != nil {
		s.Close()
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	return s, nil
}

func (s *Server) connect() (err error) {
	if s.conn, err = nats.Connect(s.server.ClientURL(), nats.NoReconnect(), nats.Timeout(beginLimit)); err != nil {
		return err
	}
	s.js, err = jetstream.New(s.conn, jetstream.WithDefaultTimeout(beginLimit))
	return err
}

// Close stops the server and waits for its end.
func (s *Server) Close() {
	if s.conn != nil {
		s.conn.Close()
	}
	s.server.Shutdown()
	s.server.WaitForShutdown()
}

// Addr returns the server's host and port.
func (s *Server) Addr() string { return s.server.Addr().String() }

// Address returns an address for --to, with a subject, or the default ones if it is empty. The sink creates the
// stream.
func (s *Server) Address(subject string) string {
	return fmt.Sprintf("nats://%s/%s?stream=%s&create=true", s.Addr(), subject, Stream)
}

// Subscribe calls f for each published message, even if the stream drops it as a repeat, until the server stops.
func (s *Server) Subscribe(subjects string, f func(id string)) error {
	_, err := s.conn.Subscribe(subjects, func(m *nats.Msg) { f(m.Header.Get(jetstream.MsgIDHeader)) })
	return errors.Join(err, s.conn.Flush())
}

// Read returns the events of the stream, from the first to the current last. A stream that does not exist yet has
// none.
func (s *Server) Read(ctx context.Context) ([]event.Event, error) {
	c, err := s.js.CreateConsumer(ctx, Stream, jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("subscribe to stream %s: %w", Stream, err)
	}
	var events []event.Event
	for pending := c.CachedInfo().NumPending; pending > 0; pending-- {
		m, err := c.Next(jetstream.FetchContext(ctx))
		if err != nil {
			return nil, fmt.Errorf("read stream %s: %w", Stream, err)
		}
		var e event.Event
		if err := json.Unmarshal(m.Data(), &e); err != nil {
			return nil, fmt.Errorf("read stream %s: %w", Stream, err)
		}
		events = append(events, e)
	}
	if err := s.js.DeleteConsumer(ctx, Stream, c.CachedInfo().Name); err != nil {
		return nil, fmt.Errorf("unsubscribe from stream %s: %w", Stream, err)
	}
	return events, nil
}
