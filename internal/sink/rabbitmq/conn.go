package rabbitmq

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// window is the maximum number of unconfirmed messages.
const window = 256

// connection is a connection with one channel in confirm mode.
type connection struct {
	net  net.Conn
	amqp *amqp.Connection
	ch   *amqp.Channel

	// returns has twice the capacity that is needed for the window: a full channel would block the reader.
	returns chan amqp.Return
	// chClosed and connClosed receive the reason when the channel or the connection is closed.
	chClosed, connClosed chan *amqp.Error
	// why keeps that reason, which is sent only once. Only Send uses it.
	why *amqp.Error

	mu      sync.Mutex
	blocked string        // why the server does not read at the moment; empty if it does
	free    chan struct{} // closed if the server reads
}

// dial opens a connection.
func (s *Sink) dial(ctx context.Context) (*connection, error) {
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.server.HostPort)
	if err != nil {
		return nil, err
	}
	// The handshake takes no context; closing the connection ends it.
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	c, err := s.handshake(ctx, raw)
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return c, nil
}

// handshake opens an AMQP connection over a TCP connection.
func (s *Sink) handshake(ctx context.Context, raw net.Conn) (*connection, error) {
	guarded := net.Conn(&writeDeadline{raw, s.o.Timeout})
	if s.server.Secure {
		c := s.tls.Clone()
		if c.ServerName == "" {
			c.ServerName = s.server.Hostname()
		}
		over := tls.Client(guarded, c)
		if err := over.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		guarded = over
	}
	properties := amqp.NewConnectionProperties()
	properties["connection_name"] = s.agent
	reader := &firstError{Conn: guarded}
	client, err := amqp.Open(reader, amqp.Config{
		SASL: s.auth(), Vhost: s.server.vhost, Heartbeat: s.o.Heartbeat, Locale: "en_US",
		FrameSize: 128 << 10, Properties: properties,
	})
	if err != nil {
		return nil, reader.explain(err)
	}
	c := &connection{
		net: raw, amqp: client, returns: make(chan amqp.Return, 2*window), free: make(chan struct{}),
		chClosed: make(chan *amqp.Error, 1), connClosed: make(chan *amqp.Error, 1),
	}
	close(c.free)
	go c.watch(client.NotifyBlocked(make(chan amqp.Blocking, 1)))
	client.NotifyClose(c.connClosed)
	if err := c.open(); err != nil {
		return nil, err
	}
	return c, nil
}

// firstError remembers the first error of reading: the server's reason for ending the connection. A concurrent write
// may only fail with "closed".
type firstError struct {
	net.Conn
	mu  sync.Mutex
	err error
}

func (f *firstError) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	if err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.err = cmp.Or(f.err, err)
	}
	return n, err
}

// explain returns the first error of reading in place of an error of writing.
func (f *firstError) explain(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	op := new(net.OpError)
	if writing := errors.As(err, &op) && op.Op == "write"; f.err != nil && (writing || errors.Is(err, net.ErrClosed)) {
		return f.err
	}
	return err
}

// auth authenticates as the user, or by client certificate if there is no user.
func (s *Sink) auth() []amqp.Authentication {
	if s.server.User == nil {
		if s.o.TLS.Cert != "" {
			return []amqp.Authentication{&amqp.ExternalAuth{}}
		}
		return []amqp.Authentication{&amqp.PlainAuth{Username: "guest", Password: "guest"}} // the default of all clients
	}
	password, _ := s.server.User.Password()
	return []amqp.Authentication{&amqp.PlainAuth{Username: s.server.User.Username(), Password: password}}
}

// open opens the channel.
func (c *connection) open() error {
	ch, err := c.amqp.Channel()
	if err != nil {
		return err
	}
	c.ch = ch
	ch.NotifyReturn(c.returns)
	ch.NotifyClose(c.chClosed)
	return ch.Confirm(false)
}

// watch tracks whether the server is blocked. It ends with the connection.
func (c *connection) watch(blockings <-chan amqp.Blocking) {
	for b := range blockings {
		c.mu.Lock()
		switch was := c.blocked != ""; {
		case b.Active && !was:
			c.blocked, c.free = cmp.Or(b.Reason, "no reason given"), make(chan struct{})
		case !b.Active && was:
			c.blocked = ""
			close(c.free)
		}
		c.mu.Unlock()
	}
}

// ready waits until the server reads again: a message written before that would arrive twice.
func (c *connection) ready(ctx context.Context, within time.Duration) error {
	c.mu.Lock()
	free := c.free
	c.mu.Unlock()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-free:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return errSilent
	}
}

func (c *connection) isBlocked() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blocked
}

// alive reports whether the channel is usable.
func (c *connection) alive() bool { return !c.ch.IsClosed() && !c.amqp.IsClosed() }

// reason returns why the channel was closed. It may be called repeatedly.
func (c *connection) reason() error {
	if c.why != nil {
		return c.why
	}
	timer := time.NewTimer(5 * time.Second) // the reason arrives at once, but may be read later
	defer timer.Stop()
	for _, closed := range []chan *amqp.Error{c.chClosed, c.connClosed} {
		select {
		case e := <-closed:
			if e != nil {
				c.why = e
				return e
			}
		case <-timer.C:
			return amqp.ErrClosed
		}
	}
	return amqp.ErrClosed
}

// close closes the connection, gracefully within a second if ctx has not ended.
func (c *connection) close(ctx context.Context) {
	if ctx.Err() == nil {
		within := time.Second
		if deadline, ok := ctx.Deadline(); ok {
			within = min(within, time.Until(deadline))
		}
		defer time.AfterFunc(within, func() { _ = c.net.Close() }).Stop()
		_ = c.amqp.CloseDeadline(time.Now().Add(within)) // best effort
	}
	_ = c.net.Close()
	_ = c.amqp.CloseDeadline(time.Now())
}

// writeDeadline is a connection whose writes time out.
type writeDeadline struct {
	net.Conn
	timeout time.Duration
}

func (c *writeDeadline) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// code returns the AMQP code of an error, or 0.
func code(err error) int {
	var e *amqp.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}
