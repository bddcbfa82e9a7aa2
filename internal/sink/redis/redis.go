// Package redis is the sink that adds each change to a Redis stream, as an entry with the fields id, op, subject,
// type and data; data is the event's JSON.
//
// A batch is one transaction (MULTI, EXEC). The server takes the whole batch or, if it refuses an entry before
// executing, nothing, so no change overtakes another in its stream. EXEC's answer acknowledges; the server's
// appendfsync and the option replicas decide what that survives.
//
// The only permanent error is a stream name that cannot be made. A value that exceeds the server's proto-max-bulk-len
// is too long. Everything else is temporary, because it is about the server or about rights: no connection, a
// timeout, OOM, LOADING, READONLY, MASTERDOWN, NOREPLICAS, MISCONF, NOAUTH, WRONGPASS, NOPERM, and WRONGTYPE (a key
// of the stream's name that is not a stream). The sink does not follow a cluster's MOVED.
//
// Redis does not drop repeats: a repeat is another entry with the same id field, so the reader of the stream must
// remember ids.
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

// Sink adds entries to streams of a server.
type Sink struct {
	o      Options
	place  string // the URL without credentials
	stream *sink.Name
	mask   *sink.Mask
	config *client.Options
	limit  int // the longest value; 0: ask the server

	mu     sync.Mutex // Close may run concurrently with Send
	closed bool
	client *client.Client // nil: not open
	conn   net.Conn       // the client's newest connection
}

// defaultLimit is the default of proto-max-bulk-len.
const defaultLimit = 512 << 20

// New returns a sink. It reads the TLS files, and connects with the first Send.
func New(_ string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("redis sink: %w", err)
	}
	s := &Sink{o: o.withDefaults(), mask: &sink.Mask{}}
	t, _ := parseURL(o.URL)
	s.stream, _ = streamName(o.Stream)
	s.mask.AddUser(t.user)
	s.place = "redis://" + t.address + "/" + strconv.Itoa(t.database)
	dial, err := s.dialer(t)
	if err != nil {
		return nil, fmt.Errorf("redis sink: tls: %w", err)
	}
	if t.tls {
		s.place = "rediss" + s.place[len("redis"):]
	}
	password, _ := t.user.Password()
	logging.Disable() // Send returns what the client would print to stderr
	s.config = &client.Options{
		Addr: t.address, Dialer: dial, DB: t.database, Username: t.user.Username(), Password: password,
		// The sink uses one connection at a time, and the pump retries. A pool whose size equals the number of failed
		// dials would keep dialling, in a goroutine that outlives Close by a second.
		PoolSize: 2, PipelinePoolSize: -1, MaxRetries: -1, DialerRetries: 1,
		DialTimeout: s.o.Timeout, ReadTimeout: s.o.Timeout, WriteTimeout: s.o.Timeout, PoolTimeout: s.o.Timeout,
		ContextTimeoutEnabled:    true,
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	return s, nil
}

func (s *Sink) String() string { return "redis " + s.place }

// Close closes the connection.
func (s *Sink) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.failed(s.drop())
}

// Send adds messages in one transaction.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	c := s.open()
	switch {
	case c == nil:
		return 0, s.failed(errors.New("the sink is closed"))
	case ctx.Err() != nil:
		return 0, s.failed(context.Cause(ctx))
	case len(ms) == 0:
		return 0, nil
	}
	hung := make(chan struct{}) // the client checks the context only before it waits
	stop := context.AfterFunc(ctx, func() { defer close(hung); s.hangUp() })
	defer func() {
		if !stop() {
			<-hung // otherwise hangUp could close the next connection
		}
	}()
	if err := s.probe(ctx, c); err != nil {
		return 0, s.reset(ctx, err)
	}
	entries, refusal := s.entries(ms)
	if len(entries) > 0 {
		if n, err := s.add(ctx, c, entries); err != nil {
			return n, s.reset(ctx, err)
		}
	}
	return len(entries), refusal
}

// reset drops the connection after a failure that is not about a message, and returns the error of Send. The next
// connection may reach another server, for example after a failover, and have other rights.
func (s *Sink) reset(ctx context.Context, err error) error {
	s.limit = 0
	s.mu.Lock()
	_ = s.drop() // err is the error to report
	s.mu.Unlock()
	if ctx.Err() != nil {
		return s.failed(fmt.Errorf("%w before there was an answer", context.Cause(ctx)))
	}
	return err
}

// probe checks, first and after each failure, whether transactions are allowed, and reads the limit on values. If the
// user may not read it, probe assumes the default. Transactions are tried alone first: a server that refuses MULTI
// would take the following commands one by one, with every attempt.
func (s *Sink) probe(ctx context.Context, c *client.Client) error {
	if s.limit > 0 {
		return nil
	}
	pipe := c.Pipeline()
	multi, exec := pipe.Do(ctx, "multi"), pipe.Do(ctx, "exec")
	limit := pipe.ConfigGet(ctx, "proto-max-bulk-len")
	_, _ = pipe.Exec(ctx) // each command has its own error
	for _, cmd := range []*client.Cmd{multi, exec} {
		if cmd.Err() != nil {
			return s.refused(cmd.Err())
		}
	}
	values, err := limit.Result()
	if err != nil && !configForbidden(err) {
		return s.refused(err)
	}
	s.limit = defaultLimit
	if n, err := strconv.Atoi(values["proto-max-bulk-len"]); err == nil && n > 0 {
		s.limit = n
	}
	return nil
}

// entries converts the first messages, and returns why the next one cannot be sent.
func (s *Sink) entries(ms []sink.Message) ([]*client.XAddArgs, error) {
	var out []*client.XAddArgs
	for _, m := range ms {
		stream, err := s.stream.Of(m.Event)
		if err != nil {
			return out, &sink.PermanentError{Err: s.failed(fmt.Errorf("make name of stream: %w", err))}
		}
		if len(m.Body) > s.limit {
			err := fmt.Errorf("the event has %d bytes, which exceeds the server's proto-max-bulk-len (%d): see maxBytes", len(m.Body), s.limit)
			return out, &sink.TooLargeError{Limit: s.limit, Err: s.failed(err)}
		}
		out = append(out, &client.XAddArgs{Stream: stream, MaxLen: s.o.MaxLen, Approx: s.o.MaxLen > 0, Values: []any{
			"id", m.ID, "op", string(m.Event.Data.Op), "subject", m.Event.Subject, "type", m.Event.Type, "data", m.Body,
		}})
	}
	return out, nil
}

// add adds entries: all of them, or none after an error. If an entry fails during execution (WRONGTYPE), the server
// has added those of other streams; add acknowledges the ones before it.
func (s *Sink) add(ctx context.Context, c *client.Client, entries []*client.XAddArgs) (int, error) {
	conn := c.Conn() // WAIT waits for the writes of one connection
	defer conn.Close()
	pipe := conn.TxPipeline()
	cmds := make([]*client.StringCmd, len(entries))
	for i, e := range entries {
		cmds[i] = pipe.XAdd(ctx, e)
	}
	_, err := pipe.Exec(ctx)
	added := 0
	for added < len(cmds) && cmds[added].Err() == nil && cmds[added].Val() != "" { // an added entry has an id
		added++
	}
	for _, cmd := range cmds {
		if cmd.Err() != nil && !client.HasErrorPrefix(cmd.Err(), "EXECABORT") { // the cause, not its consequence
			err = cmd.Err()
			break
		}
	}
	if err == nil && added < len(cmds) {
		err = errors.New("the server answered without an entry id")
	}
	if err != nil {
		err = s.refused(err)
	}
	if added == 0 || s.o.Replicas == 0 {
		return added, err
	}
	// Half of the timeout, so that the answer arrives within all of it.
	n, waiting := conn.Wait(ctx, s.o.Replicas, s.o.Timeout/2).Result()
	switch {
	case waiting != nil:
		return 0, s.refused(waiting)
	case n < int64(s.o.Replicas):
		return 0, s.failed(fmt.Errorf("%d of %d replicas have the entries (replicas)", n, s.o.Replicas))
	}
	return added, err
}

// failed adds the destination to an error and masks credentials.
func (s *Sink) failed(err error) error {
	return s.mask.Wrap("add to stream of "+s.place, err)
}
