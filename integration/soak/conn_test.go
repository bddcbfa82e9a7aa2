package soak

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// line is the connection between a client and the API server: it can be cut, stalled and refused.
type line struct {
	mu      sync.Mutex
	conns   map[*conn]struct{}
	refused bool
	fuse    int64 // bytes after which a new connection breaks; 0: never
}

var errRefused = errors.New("soak: the line is refused")

// DialContext implements rest.Config.Dial.
func (l *line) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	refused := l.refused
	l.mu.Unlock()
	if refused {
		return nil, errRefused
	}
	var d net.Dialer
	inner, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns == nil {
		l.conns = map[*conn]struct{}{}
	}
	c := &conn{Conn: inner, line: l, closed: make(chan struct{}), fuse: l.fuse}
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
func (l *line) cut() int { return l.each(func(c *conn) { c.reset() }) }

// stall silences the existing connections forever, but not new ones.
func (l *line) stall() int {
	return l.each(func(c *conn) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stalled = true
	})
}

// breakAfter breaks the existing connections, and makes new ones break after that many bytes, wherever that is;
// 0 ends it.
func (l *line) breakAfter(after int64) {
	l.mu.Lock()
	l.fuse = after
	l.mu.Unlock()
	l.cut()
}

func (l *line) each(f func(*conn)) int {
	l.mu.Lock()
	var all []*conn
	for c := range l.conns {
		all = append(all, c)
	}
	l.mu.Unlock()
	for _, c := range all {
		f(c)
	}
	return len(all)
}

// conn is one connection of a line.
type conn struct {
	net.Conn
	line   *line
	once   sync.Once
	closed chan struct{}

	mu      sync.Mutex
	stalled bool
	fuse    int64
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	stalled := c.stalled
	broken := c.fuse > 0 && c.fuse <= int64(n)
	if broken {
		n = int(c.fuse)
	}
	c.fuse -= int64(n)
	c.mu.Unlock()
	if broken {
		c.reset()
	}
	if stalled {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.line.mu.Lock()
		defer c.line.mu.Unlock()
		delete(c.line.conns, c)
	})
	return c.Conn.Close()
}

// reset closes the connection with a reset.
func (c *conn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// requests records requests; wrap is for rest.Config.Wrap.
type requests struct {
	mu  sync.Mutex
	all []*url.URL
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		r.mu.Lock()
		r.all = append(r.all, req.URL)
		r.mu.Unlock()
		return next.RoundTrip(req)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// lists returns the requests for lists, except lists of a single object.
func (r *requests) lists() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, u := range r.all {
		q := u.Query()
		collection := strings.HasSuffix(u.Path, "/pods") || strings.HasSuffix(u.Path, "/widgets")
		plainWatch := q.Get("watch") != "" && q.Get("sendInitialEvents") == ""
		if collection && !plainWatch && q.Get("limit") != "1" {
			out = append(out, u.RequestURI())
		}
	}
	return out
}

// probes counts the lists of a single object.
func (r *requests) probes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, u := range r.all {
		if u.Query().Get("limit") == "1" {
			n++
		}
	}
	return n
}
