package nats

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tattler-dev/tattler/internal/sink"
)

// link is one connection, which does not reconnect. After a failure the next Send opens another one, so that nothing
// in a buffer overtakes messages that are sent again.
type link struct {
	nc  *nats.Conn
	js  jetstream.JetStream
	raw net.Conn
	// failed is cancelled when the connection becomes unusable, with the reason as its cause.
	failed context.Context
	fail   context.CancelCauseFunc
	// ensured means that the stream exists.
	ensured bool
}

// dialer dials one connection within the time of one Send.
type dialer struct {
	ctx     context.Context //nolint:containedctx // the client's Dialer interface takes none
	timeout time.Duration

	mu   sync.Mutex
	conn net.Conn
	err  error // of the last attempt; the client's error says less
}

// Dial is called by the client for each server in turn.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	n := net.Dialer{Timeout: d.timeout, KeepAlive: 30 * time.Second}
	conn, err := n.DialContext(d.ctx, network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn, d.err = conn, err
	if err != nil {
		return nil, err
	}
	if err := d.ctx.Err(); err != nil { // cut ran before conn was set
		_ = conn.Close()
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(d.timeout)) // until the client sets another deadline
}

// cut ends the connection attempt.
func (d *dialer) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn != nil {
		_ = d.conn.Close() // best effort
	}
}

// connect opens a connection within ctx.
func (s *Sink) connect(ctx context.Context) (*link, error) {
	d := &dialer{ctx: ctx, timeout: s.o.Timeout}
	stop := context.AfterFunc(ctx, d.cut)
	defer stop()
	l := &link{}
	l.failed, l.fail = context.WithCancelCause(context.Background())
	options, err := s.options()
	if err != nil {
		return nil, err
	}
	options = append(options,
		nats.SetCustomDialer(d),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { l.fail(err) }),
		nats.ClosedHandler(func(nc *nats.Conn) {
			err := nc.LastError()
			if err == nil {
				err = nats.ErrConnectionClosed
			}
			l.fail(err)
		}),
	)
	l.nc, err = dial(s.servers, options)
	if err != nil {
		l.fail(err)
		if errors.Is(err, nats.ErrNoServers) && d.err != nil {
			err = d.err
		}
		return nil, fmt.Errorf("connect: %w%s", err, hint(err))
	}
	l.raw = d.conn
	l.js, err = jetstream.New(l.nc, jetstream.WithPublishAsyncTimeout(s.o.Timeout), jetstream.WithDefaultTimeout(s.o.Timeout))
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// dial is nats.Connect, except that a comma in a password does not end a server's address.
func dial(servers []*url.URL, options []nats.Option) (*nats.Conn, error) {
	o := nats.GetDefaultOptions()
	for _, u := range servers {
		o.Servers = append(o.Servers, u.String())
	}
	for _, set := range options {
		if err := set(&o); err != nil {
			return nil, err
		}
	}
	return o.Connect()
}

// options returns the client's options.
func (s *Sink) options() ([]nats.Option, error) {
	out := []nats.Option{
		nats.Name(s.agent),
		nats.NoReconnect(),
		nats.SkipHostLookup(), // the dialer resolves names, within its timeout
		nats.Timeout(s.o.Timeout),
		nats.FlusherTimeout(s.o.Timeout),
	}
	secure := s.o.TLS != (sink.TLS{})
	for _, u := range s.servers {
		secure = secure || u.Scheme == "tls" || u.Scheme == "wss"
	}
	if secure {
		out = append(out, nats.Secure(s.tls))
	}
	switch {
	case s.o.User != "":
		out = append(out, nats.UserInfo(s.o.User, s.o.Password))
	case s.o.Token != "":
		out = append(out, nats.Token(s.o.Token))
	case s.o.Credentials != "":
		out = append(out, nats.UserCredentials(s.o.Credentials))
	case s.o.NKey != "":
		key, err := nats.NkeyOptionFromSeed(s.o.NKey)
		if err != nil {
			return nil, fmt.Errorf("nkey: %w", err)
		}
		out = append(out, key)
	}
	if s.o.InboxPrefix != "" {
		out = append(out, nats.CustomInboxPrefix(s.o.InboxPrefix))
	}
	return out, nil
}

// readable checks that the files of credentials can be read, so that a mistake is found before the first change.
func (o Options) readable() error {
	for key, path := range map[string]string{"credentials": o.Credentials, "nkey": o.NKey} {
		if path == "" {
			continue
		}
		if _, err := os.ReadFile(path); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// ensure creates the stream if it is missing and stream.create is set.
func (s *Sink) ensure(ctx context.Context, l *link) error {
	if !s.o.Stream.Create || l.ensured {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	stop := context.AfterFunc(l.failed, cancel)
	defer stop()
	_, err := l.js.Stream(ctx, s.o.Stream.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = l.js.CreateStream(ctx, s.o.stream())
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // created by another client meanwhile
		if cause := context.Cause(l.failed); cause != nil {
			err = cause
		}
		return fmt.Errorf("create stream %s: %w%s", s.o.Stream.Name, err, hint(err))
	}
	l.ensured = true
	return nil
}

// stream returns the configuration of the stream to create.
func (o Options) stream() jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:        o.Stream.Name,
		Description: "changes of a Kubernetes cluster",
		Subjects:    o.Stream.Subjects,
		Storage:     jetstream.FileStorage,
		Replicas:    max(o.Stream.Replicas, 1),
		MaxAge:      o.Stream.MaxAge,
		MaxBytes:    -1,
		Duplicates:  o.Stream.Duplicates,
	}
	if len(c.Subjects) == 0 {
		c.Subjects = covering(o.Subject)
	}
	if o.Stream.Storage == Memory {
		c.Storage = jetstream.MemoryStorage
	}
	if o.Stream.MaxBytes > 0 {
		c.MaxBytes = int64(o.Stream.MaxBytes)
	}
	if c.Duplicates == 0 {
		c.Duplicates = defaultDuplicates
		if c.MaxAge > 0 {
			c.Duplicates = min(c.Duplicates, c.MaxAge)
		}
	}
	return c
}

// close ends the connection and its goroutines. It closes the socket first: the client would try to flush.
func (l *link) close() {
	if l.raw != nil {
		_ = l.raw.Close() // the client closes it again
	}
	l.nc.Close()
	l.fail(nats.ErrConnectionClosed)
}
