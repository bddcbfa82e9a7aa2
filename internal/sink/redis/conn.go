package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"time"

	client "github.com/redis/go-redis/v9"
)

// dialer makes connections, and remembers the newest.
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
		ctx, cancel := context.WithTimeout(ctx, s.o.Timeout) // the handshake included
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

// open is the client; nil where the sink is closed.
func (s *Sink) open() *client.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil && !s.closed {
		s.client = client.NewClient(s.config)
	}
	return s.client
}

// drop closes the client, if there is one. The caller holds mu.
func (s *Sink) drop() error {
	if s.client == nil {
		return nil
	}
	err := s.client.Close()
	s.client, s.conn = nil, nil
	return err
}

// hangUp ends whatever waits for an answer.
func (s *Sink) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		_ = s.conn.Close() // a second time is no matter
		s.conn = nil
	}
}
