package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"time"

	client "github.com/redis/go-redis/v9"
)

// dialer returns a function that opens connections and remembers the newest.
func (s *Sink) dialer(t target) (func(ctx context.Context, network, address string) (net.Conn, error), error) {
	config, err := s.o.TLS.Client()
	if err != nil {
		return nil, err
	}
	config.ServerName = cmp.Or(config.ServerName, t.host)
	plain := &net.Dialer{Timeout: s.o.Timeout, KeepAlive: 30 * time.Second}
	dial := plain.DialContext
	if t.tls {
		dial = (&tls.Dialer{NetDialer: plain, Config: config}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, s.o.Timeout) // covers the handshake
		defer cancel()
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.conn = conn
		return conn, nil
	}, nil
}

// open returns the client, or nil if the sink is closed.
func (s *Sink) open() *client.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil && !s.closed {
		s.client = client.NewClient(s.config)
	}
	return s.client
}

// drop closes the client, if any. The caller holds mu.
func (s *Sink) drop() error {
	if s.client == nil {
		return nil
	}
	err := s.client.Close()
	s.client, s.conn = nil, nil
	return err
}

// hangUp closes the newest connection, which ends any wait for an answer.
func (s *Sink) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		_ = s.conn.Close() // it may be closed already
		s.conn = nil
	}
}
