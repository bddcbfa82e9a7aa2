// Package redis is the sink that adds each change to a Redis stream, as an entry with the fields id, op,
// subject, type and data, the last being the event's JSON.
//
// A batch is one transaction (MULTI, EXEC): the server takes the whole batch or, where it refuses an entry
// before it executes, none, so that no change overtakes one before it in a stream. EXEC's answer acknowledges; what
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
	config *client.Options
	limit  int // the longest value; 0 where the server is to be asked

	mu     sync.Mutex // Close may come from another goroutine than Send
	closed bool
	client *client.Client // nil where there is none
	conn   net.Conn       // its newest
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
	s.config = &client.Options{
		Addr: t.address, Dialer: dial, DB: t.database, Username: t.user.Username(), Password: password,
		// One connection at a time is used, and the pump tries again. A pool whose size is the number of failed
		// dials would dial on, in a goroutine of its own that outlives Close by a second.
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

// Send adds messages, all in one transaction.
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
	hung := make(chan struct{}) // the client looks at the context only before it waits
	stop := context.AfterFunc(ctx, func() { defer close(hung); s.hangUp() })
	defer func() {
		if !stop() {
			<-hung // else it would take the next connection for this one
		}
	}()
	if err := s.ask(ctx, c); err != nil {
		return 0, s.ended(ctx, err)
	}
	entries, refusal := s.entries(ms)
	if len(entries) > 0 {
		if n, err := s.add(ctx, c, entries); err != nil {
			return n, s.ended(ctx, err)
		}
	}
	return len(entries), refusal
}

// ended is what ended a Send that was not about a message. After it what we may, and the server can be others: also
// the one that has the name, which a server that refuses may have lost.
func (s *Sink) ended(ctx context.Context, err error) error {
	s.limit = 0
	s.mu.Lock()
	_ = s.drop() // the error is there already
	s.mu.Unlock()
	if ctx.Err() != nil {
		return s.failed(fmt.Errorf("%w before there was an answer", context.Cause(ctx)))
	}
	return err
}

// ask asks, first and after each failure, whether we may have transactions, and for the longest value. Who may
// not ask for that gets the default. Where MULTI is refused, the server takes what follows one by one, each time
// that it is sent: so it is tried alone.
func (s *Sink) ask(ctx context.Context, c *client.Client) error {
	if s.limit > 0 {
		return nil
	}
	pipe := c.Pipeline()
	multi, exec := pipe.Do(ctx, "multi"), pipe.Do(ctx, "exec")
	limit := pipe.ConfigGet(ctx, "proto-max-bulk-len")
	_, _ = pipe.Exec(ctx) // each has its own error
	for _, cmd := range []*client.Cmd{multi, exec} {
		if cmd.Err() != nil {
			return s.refused(cmd.Err())
		}
	}
	values, err := limit.Result()
	if err != nil && !mayNotAsk(err) {
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

// add adds entries: all, or none for an error; but where one fails as it is executed (WRONGTYPE), those of other
// streams are there, and those before it are acknowledged.
func (s *Sink) add(ctx context.Context, c *client.Client, entries []*client.XAddArgs) (int, error) {
	conn := c.Conn() // the one whose writes WAIT waits for
	defer conn.Close()
	pipe := conn.TxPipeline()
	cmds := make([]*client.StringCmd, len(entries))
	for i, e := range entries {
		cmds[i] = pipe.XAdd(ctx, e)
	}
	_, err := pipe.Exec(ctx)
	added := 0
	for added < len(cmds) && cmds[added].Err() == nil && cmds[added].Val() != "" { // only an entry that has its name is there
		added++
	}
	for _, cmd := range cmds {
		if cmd.Err() != nil && !client.HasErrorPrefix(cmd.Err(), "EXECABORT") { // the cause, rather than what came of it
			err = cmd.Err()
			break
		}
	}
	if err == nil && added < len(cmds) {
		err = errors.New("the server answered without the name of an entry")
	}
	if err != nil {
		err = s.refused(err)
	}
	if added == 0 || s.o.Replicas == 0 {
		return added, err
	}
	// Half of the time: the answer, too, has to come within it.
	n, waiting := conn.Wait(ctx, s.o.Replicas, s.o.Timeout/2).Result()
	switch {
	case waiting != nil:
		return 0, s.refused(waiting)
	case n < int64(s.o.Replicas):
		return 0, s.failed(fmt.Errorf("%d of %d replicas have the entries (replicas)", n, s.o.Replicas))
	}
	return added, err
}

// failed says where, and shows no credential.
func (s *Sink) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("add to stream of %s: %w", s.place, s.blot.Error(err))
}
