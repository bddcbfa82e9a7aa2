package incluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
)

// tunnel is a port-forward. Unlike kubectl's, it has no local port, which every user of this machine could connect to.
// Its connections are streams of one upgraded request, which is repeated after it broke off.
type tunnel struct {
	upgrade func(ctx context.Context) (httpstream.Connection, error) // sends the request
	limit   time.Duration                                            // for upgrade
	port    int

	mu      sync.Mutex            // never held while anything is sent
	conn    httpstream.Connection // nil: not yet, or broken off
	attempt *attempt              // of upgrade, which runs; nil: none
	next    int                   // number of the next connection
	closed  chan struct{}
}

// attempt is a running upgrade. Its result can be read once done is closed.
type attempt struct {
	stop context.CancelFunc
	done chan struct{}
	conn httpstream.Connection
	err  error
}

// upgradeTime is how long the API server may take to upgrade the request.
const upgradeTime = 30 * time.Second

// forward returns the port-forward to a pod. It connects when it is used.
func (s *server) forward(namespace, pod string, port int) *tunnel {
	u := s.base.JoinPath("/api/v1/namespaces", namespace, "pods", pod, "portforward")
	return &tunnel{
		upgrade: func(ctx context.Context) (httpstream.Connection, error) { return upgrade(ctx, s.config, u) },
		limit:   upgradeTime, port: port, closed: make(chan struct{}),
	}
}

var errTunnelClosed = errors.New("the port-forward is closed")

// connect returns the upgraded request, and a number for a connection. Callers share one attempt.
func (t *tunnel) connect() (httpstream.Connection, int, error) {
	t.mu.Lock()
	t.next++
	conn, a, n := t.conn, t.attempt, t.next
	if conn != nil {
		select {
		case <-conn.CloseChan():
			t.conn, conn = nil, nil
		default:
		}
	}
	if conn == nil && a == nil && !t.isClosed() {
		a = t.start()
	}
	t.mu.Unlock()
	switch {
	case conn != nil:
		return conn, n, nil
	case a == nil:
		return nil, 0, errTunnelClosed
	}
	select {
	case <-a.done:
		return a.conn, n, a.err
	case <-t.closed:
		return nil, 0, errTunnelClosed
	}
}

func (t *tunnel) isClosed() bool {
	select {
	case <-t.closed:
		return true
	default:
		return false
	}
}

// start begins an attempt. The caller holds t.mu.
func (t *tunnel) start() *attempt {
	ctx, stop := context.WithTimeout(context.Background(), t.limit)
	a := &attempt{stop: stop, done: make(chan struct{})}
	t.attempt = a
	go func() {
		defer close(a.done)
		defer stop()
		conn, err := t.upgrade(ctx)
		switch {
		case err != nil && (ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded)):
			err = fmt.Errorf("forward a port to the daemon's pod: the API server did not answer within %s: %w", t.limit, err)
		case err != nil:
			err = fmt.Errorf("forward a port to the daemon's pod: %w", err)
		}
		t.mu.Lock()
		t.attempt = nil
		late := err == nil && t.isClosed()
		if err == nil && !late {
			t.conn = conn
		}
		t.mu.Unlock()
		if late {
			_ = conn.Close() // Close did not see it
			conn, err = nil, errTunnelClosed
		}
		a.conn, a.err = conn, err
	}()
	return a
}

// dial makes a connection to the pod's port, whatever the address.
func (t *tunnel) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() { // upgradeTime bounds the first step, and CreateStream has its own time limits
		c, err := t.open()
		done <- result{c, err}
	}()
	select {
	case r := <-done:
		return r.conn, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.conn != nil {
				_ = r.conn.Close() // nobody uses it
			}
		}()
		return nil, ctx.Err()
	}
}

func (t *tunnel) open() (net.Conn, error) {
	conn, n, err := t.connect()
	if err != nil {
		return nil, err
	}
	headers := http.Header{}
	headers.Set(core.PortHeader, strconv.Itoa(t.port))
	headers.Set(core.PortForwardRequestIDHeader, strconv.Itoa(n))
	headers.Set(core.StreamType, core.StreamTypeError)
	failed, err := conn.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("forward a port to the daemon's pod: %w", err)
	}
	_ = failed.Close() // it is only read
	c := &stream{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		if text, _ := io.ReadAll(io.LimitReader(failed, 4096)); len(text) > 0 { // an error of reading is one of the data, too
			c.failure = fmt.Errorf("forward a port to the daemon's pod: %s", text)
		}
	}()
	headers.Set(core.StreamType, core.StreamTypeData)
	data, err := conn.CreateStream(headers)
	if err != nil { // the kubelet may reset the stream before it confirms it
		err = c.why(fmt.Errorf("forward a port to the daemon's pod: %w", err))
		_ = failed.Reset()
		conn.RemoveStreams(failed)
		return nil, err
	}
	c.Stream, c.release = data, func() { conn.RemoveStreams(failed, data) }
	return c, nil
}

// Close ends all connections. It does not wait for an attempt to connect: what comes of it is closed.
func (t *tunnel) Close() error {
	t.mu.Lock()
	conn, a := t.conn, t.attempt
	if !t.isClosed() {
		close(t.closed)
	}
	t.mu.Unlock()
	if a != nil {
		a.stop()
	}
	if conn == nil {
		return nil
	}
	if err := conn.Close(); err != nil {
		return fmt.Errorf("close the port-forward: %w", err)
	}
	return nil
}

// errorWait is how long the end of the data waits for the kubelet's error, which comes with it or never.
const errorWait = 5 * time.Second

// stream is a connection to the pod. It has no deadlines: requests end by their contexts, which close it.
type stream struct {
	httpstream.Stream
	endless
	done    chan struct{} // closed once failure is known
	failure error         // what the kubelet says went wrong
	once    sync.Once
	release func()
}

// Read returns the kubelet's error, if there is one, where the data ends.
func (s *stream) Read(b []byte) (int, error) {
	n, err := s.Stream.Read(b)
	if err == nil {
		return n, nil
	}
	return n, s.why(err)
}

// why returns the kubelet's error, if there is one, or else err.
func (s *stream) why(err error) error {
	select {
	case <-s.done:
		if s.failure != nil {
			return s.failure
		}
	case <-time.After(errorWait):
	}
	return err
}

// Close ends the connection in both directions.
func (s *stream) Close() (err error) {
	s.once.Do(func() {
		err = errors.Join(s.Stream.Close(), s.Reset())
		s.release()
	})
	return err
}

// endless is the part of a net.Conn that a port-forward does not have: addresses and deadlines.
type endless struct{}

func (endless) LocalAddr() net.Addr              { return address{} }
func (endless) RemoteAddr() net.Addr             { return address{} }
func (endless) SetDeadline(time.Time) error      { return nil }
func (endless) SetReadDeadline(time.Time) error  { return nil }
func (endless) SetWriteDeadline(time.Time) error { return nil }

type address struct{}

func (address) Network() string { return "port-forward" }
func (address) String() string  { return "port-forward" }
