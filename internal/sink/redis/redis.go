// Package redis is the sink that adds each change to a Redis stream, as an entry with the fields id, op,
// subject, type and data, the last being the event's JSON.
//
// A batch is one transaction (MULTI, EXEC): the server takes the whole batch or, where it refuses an entry
// before it executes, none, so that no change overtakes one before it. EXEC's answer acknowledges; what
// that survives is the server's appendfsync, and the option replicas.
//
// Permanent is only that a stream's name cannot be made. A value that is longer than the server's
// proto-max-bulk-len is too long. Everything else passes, as it is about the server or about rights: no
// connection, no answer in time, OOM, LOADING, READONLY, MASTERDOWN, NOREPLICAS, MISCONF, NOAUTH, WRONGPASS,
// NOPERM, and WRONGTYPE (a key of the stream's name that is none). A cluster's MOVED is not followed.
//
// Redis does not look for repeats: a repeat is another entry with the same id field, so whoever reads the
// stream remembers ids.
package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"

	client "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Sink adds to streams of a server.
type Sink struct {
	o      Options
	place  string // the URL, as far as it may be shown
	stream *sink.Name
	blot   *sink.Blot
	client *client.Client
	limit  int // the longest value; 0 where the server is to be asked

	mu     sync.Mutex // Close may come from another goroutine than Send
	closed bool
	conn   net.Conn // the newest
}

// defaultLimit is proto-max-bulk-len where nobody has changed it.
const defaultLimit = 512 << 20

// New makes a sink; it reads the files of TLS, and connects with the first Send.
func New(_ string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("redis sink: %w", err)
	}
	s := &Sink{o: o.withDefaults(), blot: &sink.Blot{}}
	t, _ := parseURL(o.URL)
	s.stream, _ = streamName(o.Stream)
	s.blot.AddUser(t.user)
	s.place = "redis://" + t.address + "/" + strconv.Itoa(t.database)
	dial, err := s.dialer(t)
	if err != nil {
		return nil, fmt.Errorf("redis sink: tls: %w", err)
	}
	if t.tls {
		s.place = "rediss" + s.place[len("redis"):]
	}
	password, _ := t.user.Password()
	logging.Disable() // what it would print to stderr, Send returns
	s.client = client.NewClient(&client.Options{
		Addr: t.address, Dialer: dial, DB: t.database, Username: t.user.Username(), Password: password,
		// One connection keeps the order; the pump tries again.
		PoolSize: 1, PipelinePoolSize: -1, MaxRetries: -1, DialerRetries: 1,
		DialTimeout: s.o.Timeout, ReadTimeout: s.o.Timeout, WriteTimeout: s.o.Timeout, PoolTimeout: s.o.Timeout,
		ContextTimeoutEnabled:    true,
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	return s, nil
}

func (s *Sink) String() string { return "redis " + s.place }

// Close closes the connection.
func (s *Sink) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.failed(s.client.Close())
}

// Send adds messages, all in one transaction.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return 0, s.failed(errors.New("the sink is closed"))
	case ctx.Err() != nil:
		return 0, s.failed(context.Cause(ctx))
	case len(ms) == 0:
		return 0, nil
	}
	stop := context.AfterFunc(ctx, s.hangUp) // the client looks at the context only before it waits
	defer stop()
	acked, err = s.send(ctx, ms)
	if err != nil && ctx.Err() != nil {
		return acked, s.failed(fmt.Errorf("%w before there was an answer", context.Cause(ctx)))
	}
	return acked, err
}

// send adds the messages before the first that cannot be sent, and says what is wrong with that one.
func (s *Sink) send(ctx context.Context, ms []sink.Message) (int, error) {
	if err := s.ask(ctx); err != nil {
		return 0, err
	}
	entries, refusal := s.entries(ms)
	if len(entries) > 0 {
		if err := s.add(ctx, entries); err != nil {
			s.limit = 0 // the server, or what we may, can be another the next time
			return 0, err
		}
	}
	return len(entries), refusal
}

// ask asks, first and after each failure, whether we may have transactions, and for the longest value. Who may not ask for that gets
// the default. Where MULTI is refused, the server takes what follows one by one, each time that it is sent: so
// it is tried alone.
func (s *Sink) ask(ctx context.Context) error {
	if s.limit > 0 {
		return nil
	}
	conn := s.client.Conn()
	defer conn.Close()
	for _, command := range []string{"multi", "exec"} {
		if err := conn.Do(ctx, command).Err(); err != nil {
			return s.refused(err)
		}
	}
	values, err := conn.ConfigGet(ctx, "proto-max-bulk-len").Result()
	var refused client.Error
	if err != nil && (!errors.As(err, &refused) || !mayNotAsk(err)) {
		return s.refused(err)
	}
	s.limit = defaultLimit
	if n, err := strconv.Atoi(values["proto-max-bulk-len"]); err == nil && n > 0 {
		s.limit = n
	}
	return nil
}

// entries are those of the first messages that can be sent, and why the next one cannot.
func (s *Sink) entries(ms []sink.Message) ([]*client.XAddArgs, error) {
	var out []*client.XAddArgs
	for _, m := range ms {
		stream, err := s.stream.Of(m.Event)
		if err != nil {
			return out, &sink.PermanentError{Err: s.failed(fmt.Errorf("make name of stream: %w", err))}
		}
		if len(m.Body) > s.limit {
			err := fmt.Errorf("the event has %d bytes, more than the server's proto-max-bulk-len (%d): see maxBytes", len(m.Body), s.limit)
			return out, &sink.TooLargeError{Limit: s.limit, Err: s.failed(err)}
		}
		out = append(out, &client.XAddArgs{Stream: stream, MaxLen: s.o.MaxLen, Approx: s.o.MaxLen > 0, Values: []any{
			"id", m.ID, "op", string(m.Event.Data.Op), "subject", m.Event.Subject, "type", m.Event.Type, "data", m.Body,
		}})
	}
	return out, nil
}

// add adds entries: all, or none for an error. Of those that differ in their stream, some may be there then.
func (s *Sink) add(ctx context.Context, entries []*client.XAddArgs) error {
	conn := s.client.Conn() // the one whose writes WAIT waits for
	defer conn.Close()
	pipe := conn.TxPipeline()
	for _, e := range entries {
		pipe.XAdd(ctx, e)
	}
	cmds, err := pipe.Exec(ctx)
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil && !client.HasErrorPrefix(err, "EXECABORT") { // the cause, rather than what came of it
			return s.refused(err)
		}
	}
	if err != nil {
		return s.refused(err)
	}
	if s.o.Replicas == 0 {
		return nil
	}
	// Half of the time: the answer, too, has to come within it.
	n, err := conn.Wait(ctx, s.o.Replicas, s.o.Timeout/2).Result()
	if err != nil {
		return s.refused(err)
	}
	if n < int64(s.o.Replicas) {
		return s.failed(fmt.Errorf("%d of %d replicas have the entries (replicas)", n, s.o.Replicas))
	}
	return nil
}

// failed says where, and shows no credential.
func (s *Sink) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("add to stream of %s: %w", s.place, s.blot.Error(err))
}
