package rig

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// pause is the delay of each slow answer.
const pause = 10 * time.Millisecond

// Proxy stands between a sink and a server, and can be down, silent or slow.
type Proxy struct {
	listener net.Listener
	to       func() string

	mu      sync.Mutex
	b       sinktest.Behaviour
	changed chan struct{} // closed when the behaviour changes
	conns   map[net.Conn]bool
	running sync.WaitGroup
}

// NewProxy listens on a free loopback port until the test ends. It asks for the server's host:port with each
// connection, because a restarted server may have another one. If nothing listens there, it hangs up.
func NewProxy(t *testing.T, to func() string) *Proxy {
	t.Helper()
	p := &Proxy{
		listener: Must(net.Listen("tcp", "127.0.0.1:0"))(t), to: to,
		b: sinktest.Works, changed: make(chan struct{}), conns: map[net.Conn]bool{},
	}
	p.running.Go(p.accept)
	t.Cleanup(func() {
		_ = p.listener.Close() // ends accept
		p.Behave(sinktest.Down)
		p.running.Wait()
	})
	return p
}

// Addr returns the proxy's host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Behave sets how bytes are treated. Down cuts all current and new connections, and drops held bytes; Hangs holds
// both directions until the next change; Slow delays answers. With every other behaviour, bytes pass.
func (p *Proxy) Behave(b sinktest.Behaviour) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.b = b
	close(p.changed)
	p.changed = make(chan struct{})
	if b == sinktest.Down {
		for c := range p.conns {
			hangUp(c)
		}
	}
}

func (p *Proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to())
		if err != nil { // the server is down
			hangUp(in)
			continue
		}
		p.mu.Lock()
		p.conns[in], p.conns[out] = true, true
		if p.b == sinktest.Down {
			hangUp(in, out)
		}
		p.mu.Unlock()
		p.running.Go(func() { p.relay(out, in, false) })
		p.running.Go(func() { p.relay(in, out, true) })
	}
}

// relay copies one direction until either end closes.
func (p *Proxy) relay(to, from net.Conn, answers bool) {
	defer func() {
		hangUp(from, to)
		p.mu.Lock()
		delete(p.conns, from)
		p.mu.Unlock()
	}()
	for b := make([]byte, 64<<10); ; {
		n, err := from.Read(b)
		if n > 0 {
			if !p.wait(answers) {
				return
			}
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// wait blocks until bytes may pass. It returns false if the connection is cut.
func (p *Proxy) wait(answers bool) bool {
	for {
		p.mu.Lock()
		b, changed := p.b, p.changed
		p.mu.Unlock()
		switch {
		case b == sinktest.Down:
			return false
		case b == sinktest.Hangs:
			<-changed
		case b == sinktest.Slow && answers:
			<-time.After(pause)
			return true
		default:
			return true
		}
	}
}

// hangUp closes connections. Unsent bytes are meant to be lost, so it ignores errors.
func hangUp(conns ...net.Conn) {
	for _, c := range conns {
		_ = c.Close()
	}
}
