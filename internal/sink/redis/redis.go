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
	"slices"
	"strconv"

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
	conn   sink.Lazy[*link]
}

// New returns a sink. It reads the TLS files, and connects with the first Send.
func New(_ string, o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("redis sink: %w", err)
	}
	s := &Sink{o: o.withDefaults(), mask: &sink.Mask{}}
	t, _ := parseURL(o.URL)
	s.stream, _ = streamName(o.Stream)
	s.mask.AddUser(t.User)
	s.place = t.Scheme + "://" + t.HostPort + "/" + strconv.Itoa(t.database)
	dial, err := s.dialer(t)
	if err != nil {
		return nil, fmt.Errorf("redis sink: tls: %w", err)
	}
	password, _ := t.User.Password()
	logging.Disable() // Send returns what the client would print to stderr
	s.config = &client.Options{
		Addr: t.HostPort, Dialer: dial, DB: t.database, Username: t.User.Username(), Password: password,
		// The sink uses one connection at a time, and the pump retries. A pool whose size equals the number of failed
		// dials would keep dialling, in a goroutine that outlives Close by a second.
		PoolSize: 2, PipelinePoolSize: -1, MaxRetries: -1, DialerRetries: 1,
		DialTimeout: s.o.Timeout, ReadTimeout: s.o.Timeout, WriteTimeout: s.o.Timeout, PoolTimeout: s.o.Timeout,
		ContextTimeoutEnabled:    true,
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	s.conn = sink.Lazy[*link]{Open: s.open, Free: func(_ context.Context, l *link) error { return l.client.Close() }}
	return s, nil
}

func (s *Sink) String() string { return "redis " + s.place }

// Close closes the connection.
func (s *Sink) Close(ctx context.Context) error { return s.failed(s.conn.Close(ctx)) }

// Send adds messages in one transaction.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	if len(ms) == 0 {
		return 0, nil
	}
	l, err := s.conn.Get(ctx)
	if err != nil {
		return 0, s.refused(ctx, err)
	}
	defer l.hangUpAfter(ctx)()
	entries, refusal := s.entries(ms, l.limit)
	added, err := s.add(ctx, l.client, entries)
	for acked < len(added) && added[acked] {
		acked++
	}
	if err != nil {
		s.conn.Reset(l) // the next connection may reach another server, for example after a failover
		return acked, sink.Partial(s.refused(ctx, err), ms, acked, func(i int) bool { return i < len(added) && added[i] })
	}
	return acked, s.failed(refusal)
}

// entries converts the first messages, and returns why the next one cannot be sent.
func (s *Sink) entries(ms []sink.Message, limit int) ([]*client.XAddArgs, error) {
	var out []*client.XAddArgs
	for _, m := range ms {
		stream, err := s.stream.Of(m.Event)
		if err != nil {
			return out, &sink.PermanentError{Err: fmt.Errorf("make name of stream: %w", err)}
		}
		if len(m.Body) > limit {
			err := fmt.Errorf("the event has %d bytes, which exceeds the server's proto-max-bulk-len (%d): see maxBytes", len(m.Body), limit)
			return out, &sink.TooLargeError{Limit: limit, Err: err}
		}
		out = append(out, &client.XAddArgs{Stream: stream, MaxLen: s.o.MaxLen, Approx: s.o.MaxLen > 0, Values: []any{
			"id", m.ID, "op", string(m.Event.Data.Op), "subject", m.Event.Subject, "type", m.Event.Type, "data", m.Body,
		}})
	}
	return out, nil
}

// add adds entries, and returns which were added: all of them, or none after an error. If an entry fails during execution
// (WRONGTYPE), the server has added those of other streams.
func (s *Sink) add(ctx context.Context, c *client.Client, entries []*client.XAddArgs) (added []bool, err error) {
	if len(entries) == 0 {
		return nil, nil
	}
	conn := c.Conn() // WAIT waits for the writes of one connection
	defer conn.Close()
	pipe := conn.TxPipeline()
	cmds := make([]*client.StringCmd, len(entries))
	for i, e := range entries {
		cmds[i] = pipe.XAdd(ctx, e)
	}
	_, err = pipe.Exec(ctx)
	added = make([]bool, len(cmds))
	for i, cmd := range cmds {
		added[i] = cmd.Err() == nil && cmd.Val() != "" // an added entry has an id
	}
	for _, cmd := range cmds {
		if cmd.Err() != nil && !client.HasErrorPrefix(cmd.Err(), "EXECABORT") { // the cause, not its consequence
			err = cmd.Err()
			break
		}
	}
	if err == nil && slices.Contains(added, false) {
		err = errors.New("the server answered without an entry id")
	}
	if !slices.Contains(added, true) || s.o.Replicas == 0 {
		return added, err
	}
	// Half of the timeout, so that the answer arrives within all of it.
	n, waiting := conn.Wait(ctx, s.o.Replicas, s.o.Timeout/2).Result()
	switch {
	case waiting != nil:
		return nil, waiting
	case n < int64(s.o.Replicas):
		return nil, fmt.Errorf("%d of %d replicas have the entries (replicas)", n, s.o.Replicas)
	}
	return added, err
}

// failed adds the destination to an error and masks credentials.
func (s *Sink) failed(err error) error {
	return s.mask.Wrap("add to stream of "+s.place, err)
}
