package auth

import (
	"net"
	"sync"
)

// maxConnections bounds the memory and the file descriptors that clients can take, also those that send no request.
const maxConnections = 1024

// connections limits the connections of a listener. It closes further ones at once, so that their clients see an error
// instead of waiting.
type connections struct {
	net.Listener
	refusals *Refusals
	limit    int

	mu   sync.Mutex
	open int
}

// Accept implements net.Listener.
func (l *connections) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.enter() {
			return &connection{Conn: c, of: l}, nil
		}
		_ = c.Close() // nothing was sent
	}
}

// enter counts a connection, or a refusal.
func (l *connections) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open < l.limit {
		l.open++
		return true
	}
	l.refusals.Add(RefusedConnections)
	return false
}

func (l *connections) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
}

// connection is a counted connection.
type connection struct {
	net.Conn
	of   *connections
	once sync.Once
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.once.Do(c.of.leave)
	return c.Conn.Close()
}
