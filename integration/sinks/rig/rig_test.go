package rig_test

import (
	"io"
	"net"
	"testing"

	"go.uber.org/goleak"

	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestProxy checks that bytes held while the server is silent arrive afterwards, or are lost with the connection,
// and that new connections work as soon as the proxy does.
func TestProxy(t *testing.T) {
	echo := rig.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	ended := make(chan struct{})
	t.Cleanup(func() {
		echo.Close()
		<-ended
	})
	go func() {
		defer close(ended)
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(c, c) // until the proxy cuts the connection
			c.Close()
		}
	}()
	p := rig.NewProxy(t, func() string { return echo.Addr().String() })
	dial := func() net.Conn {
		c := rig.Must(net.Dial("tcp", p.Addr()))(t)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	said := func(c net.Conn) error {
		_, err := io.ReadFull(c, make([]byte, 4))
		return err
	}
	say := func(c net.Conn) { rig.Must(io.WriteString(c, "ping"))(t) }

	c := dial()
	for _, b := range []sinktest.Behaviour{sinktest.Works, sinktest.Slow, sinktest.Hangs} {
		p.Behave(b)
		say(c)
		if b == sinktest.Hangs {
			p.Behave(sinktest.Hangs) // again: no effect
			p.Behave(sinktest.Works)
		}
		if err := said(c); err != nil {
			t.Errorf("%s: %v", b, err)
		}
	}
	p.Behave(sinktest.Hangs)
	say(c)
	p.Behave(sinktest.Down)
	if err := said(c); err == nil {
		t.Error("an answer by a connection that is cut")
	}
	if err := said(dial()); err == nil {
		t.Error("an answer while it is down")
	}
	p.Behave(sinktest.Works)
	c = dial()
	say(c)
	if err := said(c); err != nil {
		t.Error(err)
	}
}
