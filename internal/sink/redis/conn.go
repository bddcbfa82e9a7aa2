package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"sync"
	"time"

	client "github.com/redis/go-redis/v9"
)

// defaultLimit is the default of proto-max-bulk-len.
const defaultLimit = 512 << 20

// link is a client with one connection at a time.
type link struct {
	client *client.Client
	limit  int // the longest value

	mu   sync.Mutex
	conn net.Conn // the client's newest connection
}

// dialer returns a function that opens connections.
func (s *Sink) dialer(t target) (func(ctx context.Context, network, address string) (net.Conn, error), error) {
	config, err := s.o.TLS.Client()
	if err != nil {
		return nil, err
	}
	config.ServerName = cmp.Or(config.ServerName, t.Hostname())
	plain := &net.Dialer{Timeout: s.o.Timeout, KeepAlive: 30 * time.Second}
	dial := plain.DialContext
	if t.Secure {
		dial = (&tls.Dialer{NetDialer: plain, Config: config}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, s.o.Timeout) // covers the handshake
		defer cancel()
		return dial(ctx, network, address)
	}, nil
}

// open opens a client. It checks whether transactions are allowed, and reads the limit on values.
func (s *Sink) open(ctx context.Context) (*link, error) {
	l, config := &link{}, *s.config
	config.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := s.config.Dialer(ctx, network, address)
		if err == nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.conn = conn
		}
		return conn, err
	}
	l.client = client.NewClient(&config)
	defer l.hangUpAfter(ctx)()
	var err error
	if l.limit, err = probe(ctx, l.client); err != nil {
		_ = l.client.Close() // err is the error to report
		return nil, err
	}
	return l, nil
}

// probe checks whether transactions are allowed, and returns the limit on values. If the user may not read it, probe
// returns the default. Transactions are tried alone first: a server that refuses MULTI would take the following
// commands one by one, with every attempt.
func probe(ctx context.Context, c *client.Client) (limit int, err error) {
	pipe := c.Pipeline()
	multi, exec := pipe.Do(ctx, "multi"), pipe.Do(ctx, "exec")
	config := pipe.ConfigGet(ctx, "proto-max-bulk-len")
	_, _ = pipe.Exec(ctx) // each command has its own error
	if err := cmp.Or(multi.Err(), exec.Err()); err != nil {
		return 0, err
	}
	values, err := config.Result()
	if err != nil && !configForbidden(err) {
		return 0, err
	}
	if n, err := strconv.Atoi(values["proto-max-bulk-len"]); err == nil && n > 0 {
		return n, nil
	}
	return defaultLimit, nil
}

// hangUpAfter closes the newest connection when ctx ends, which ends any wait for an answer: the client checks the
// context only before it waits.
func (l *link) hangUpAfter(ctx context.Context) (stop func()) {
	hung := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(hung)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.conn != nil {
			_ = l.conn.Close() // it may be closed already
		}
	})
	return func() {
		if !cancel() {
			<-hung // otherwise it could close the next connection
		}
	}
}
