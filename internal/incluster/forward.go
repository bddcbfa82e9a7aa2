package incluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// tunnel is a port-forward. Unlike kubectl's, it has no local port, which every user of this machine could connect to.
// Its connections are streams of one upgraded request, which is repeated after it broke off.
type tunnel struct {
	dialer httpstream.Dialer
	port   int

	mu     sync.Mutex
	conn   httpstream.Connection // nil: not yet, or broken off
	next   int                   // number of the next connection
	closed bool
}

// forward returns the port-forward to a pod. It connects when it is used.
func (s *server) forward(namespace, pod string, port int) (*tunnel, error) {
	u := s.base.JoinPath("/api/v1/namespaces", namespace, "pods", pod, "portforward")
	rt, upgrader, err := spdy.RoundTripperFor(s.config)
	if err != nil {
		return nil, fmt.Errorf("forward a port: %w", err)
	}
	old := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: rt}, http.MethodPost, u)
	dialer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(u, s.config)
	if err != nil {
		return nil, fmt.Errorf("forward a port: %w", err)
	}
	// As kubectl does: an older API server, or a proxy in between, may not speak WebSocket.
	dialer = portforward.NewFallbackDialerForStreaming(dialer, old, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	return &tunnel{dialer: dialer, port: port}, nil
}

var errTunnelClosed = errors.New("the port-forward is closed")

// connect returns the upgraded request.
func (t *tunnel) connect() (httpstream.Connection, int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, 0, errTunnelClosed
	}
	if t.conn != nil {
		select {
		case <-t.conn.CloseChan():
			t.conn = nil
		default:
		}
	}
	if t.conn == nil {
		conn, _, err := t.dialer.Dial(portforward.PortForwardProtocolV1Name)
		if err != nil {
			return nil, 0, fmt.Errorf("forward a port to the daemon's pod: %w", err)
		}
		t.conn = conn
	}
	t.next++
	return t.conn, t.next, nil
}

// dial makes a connection to the pod's port, whatever the address.
func (t *tunnel) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() { // the dialer has its own time limits
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

// Close ends all connections.
func (t *tunnel) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.conn == nil {
		return nil
	}
	if err := t.conn.Close(); err != nil {
		return fmt.Errorf("close the port-forward: %w", err)
	}
	return nil
}

// errorWait is how long the end of the data waits for the kubelet's error, which comes with it or never.
const errorWait = 5 * time.Second

// stream is a connection to the pod. It has no deadlines: requests end by their contexts, which close it.
type stream struct {
	httpstream.Stream
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

func (*stream) LocalAddr() net.Addr              { return address{} }
func (*stream) RemoteAddr() net.Addr             { return address{} }
func (*stream) SetDeadline(time.Time) error      { return nil }
func (*stream) SetReadDeadline(time.Time) error  { return nil }
func (*stream) SetWriteDeadline(time.Time) error { return nil }

type address struct{}

func (address) Network() string { return "port-forward" }
func (address) String() string  { return "port-forward" }
