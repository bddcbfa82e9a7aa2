package auth

import (
	"log/slog"
	"net"
	"sync"
	"time"
)

const (
	// maxConnections bounds the memory and the file descriptors that clients can take, also those that send no request.
	maxConnections = 1024
	// refusalsEvery is how often a log line counts refused connections.
	refusalsEvery = time.Minute
)

// connections limits the connections of a listener. It closes further ones at once, so that their clients see an error
// instead of waiting.
type connections struct {
	net.Listener
	log   *slog.Logger
	limit int

	mu      sync.Mutex
	open    int
	refused int       // since logged
	logged  time.Time // when the last log line counted them
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
	l.refused++
	if now := time.Now(); now.Sub(l.logged) >= refusalsEvery {
		l.log.Warn("connections to the web page refused: too many are open", "open", l.open, "refused", l.refused)
		l.refused, l.logged = 0, now
	}
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
