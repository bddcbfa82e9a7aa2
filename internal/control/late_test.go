package control

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

// stopped is the listener of a process that the kernel stops: connections wait until it continues, and the test learns
// when there is one, and when the server is done with it.
type stopped struct {
	net.Listener
	accepted, goOn, done chan struct{}
}

func (s *stopped) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	s.accepted <- struct{}{}
	<-s.goOn
	return &watched{Conn: c, done: s.done}, nil
}

type watched struct {
	net.Conn
	done chan struct{}
}

func (w *watched) Close() error {
	err := w.Conn.Close()
	w.done <- struct{}{}
	return err
}

// stop serves orders with a stopped process.
func stop(t *testing.T, o Orders) (*Client, *stopped) {
	t.Helper()
	j := inDir(t)
	l, err := Listen(j)
	if err != nil {
		t.Fatal(err)
	}
	s := &stopped{l, make(chan struct{}, 10), make(chan struct{}), make(chan struct{}, 10)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, s, Options{Orders: o}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &Client{Journal: j}, s
}

// TestStoppedDaemon: an order that was reported as failed is not carried out when the daemon's process continues.
func TestStoppedDaemon(t *testing.T) {
	for name, give := range map[string]func(context.Context, *Client) error{
		"pause":       func(ctx context.Context, c *Client) error { return c.Pause(ctx, "x", true) },
		"resume":      func(ctx context.Context, c *Client) error { return c.Pause(ctx, "x", false) },
		"replay":      func(ctx context.Context, c *Client) error { return second(c.Replay(ctx, "x", Place{})) },
		"skip":        func(ctx context.Context, c *Client) error { return second(c.Skip(ctx, "x", "")) },
		"replay dead": func(ctx context.Context, c *Client) error { return second(c.ReplayDead(ctx, "x", []string{"a"})) },
		"drop":        func(ctx context.Context, c *Client) error { return second(c.DropDead(ctx, "x", []string{"a"})) },
		"remove":      func(ctx context.Context, c *Client) error { return c.Remove(ctx, "x") },
	} {
		for _, interrupted := range []bool{false, true} {
			o := &orders{}
			c, daemon := stop(t, o)
			ctx, cancel := context.WithCancel(t.Context())
			c.patience = 20 * time.Millisecond
			if interrupted {
				c.patience = time.Hour
				go func() {
					<-daemon.accepted
					cancel()
				}()
			}
			err := give(ctx, c)
			cancel()
			if !interrupted && (!errors.Is(err, ErrSilent) || errors.Is(err, ErrUncertain) || !strings.HasSuffix(err.Error(), ": it does not answer, and did not get the order")) {
				t.Errorf("%s: %v", name, err)
			}
			close(daemon.goOn)
			<-daemon.done
			if interrupted && !errors.Is(err, context.Canceled) || len(o.seen) > 0 {
				t.Errorf("%s (interrupted: %v) gave %v, and then the daemon did %v", name, interrupted, err, o.seen)
			}
		}
	}
}

// held are orders that end when the test lets them, or when nobody waits any more.
type held struct {
	Orders
	begun chan struct{}
	end   chan error
}

func (h *held) Pause(ctx context.Context, _ string, _ bool) error {
	close(h.begun)
	select {
	case err := <-h.end:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *held) Remove(context.Context, string) error { return <-h.end }

// TestClientLeaves: an order that waits for its turn is not carried out for a client that has gone.
func TestClientLeaves(t *testing.T) {
	h := &held{begun: make(chan struct{}), end: make(chan error)}
	a := NewAudit(h, nil)
	c, daemon := stop(t, a)
	close(daemon.goOn)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-h.begun
		cancel()
	}()
	if err := c.Pause(ctx, "x", true); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-daemon.done
	if got := a.Counts()[0]; got != (OrderCount{Order: "pause", Failed: 1}) {
		t.Errorf("%+v", got)
	}
}

// TestUncertain: if the daemon has got the order and does not answer, the client says that it may be carried out.
func TestUncertain(t *testing.T) {
	h := &held{end: make(chan error, 1)}
	c, daemon := stop(t, h)
	close(daemon.goOn)
	c.patience, c.result = time.Hour, 20*time.Millisecond
	err := c.Remove(t.Context(), "x")
	if !errors.Is(err, ErrSilent) || !errors.Is(err, ErrUncertain) || !strings.Contains(err.Error(), "it does not answer; it got the order, and may have carried it out") {
		t.Error(err)
	}
	h.end <- nil
	<-daemon.done
}
