package dropin

import (
	"context"
	"errors"
	"net"
	"sync"
)

// line is the connection between a client and the API server; it can be cut and refused.
type line struct {
	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	refused bool
}

var errRefused = errors.New("dropin: the line is refused")

// dial implements rest.Config.Dial.
func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused {
		return nil, errRefused
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if l.conns == nil {
		l.conns = map[net.Conn]struct{}{}
	}
	l.conns[c] = struct{}{}
	return c, nil
}

// refuse makes new connections fail, or not.
func (l *line) refuse(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = on
}

// cut breaks every connection without closing it properly.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
	clear(l.conns)
}
