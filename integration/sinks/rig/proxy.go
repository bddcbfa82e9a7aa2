package rig

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// pause is before each answer that passes slowly.
const pause = 10 * time.Millisecond

// Proxy stands between a sink and a server, and can be down, silent or slow.
type Proxy struct {
	listener net.Listener
	to       func() string

	mu      sync.Mutex
	b       sinktest.Behaviour
	changed chan struct{} // closed at the next change of behaviour
	conns   map[net.Conn]bool
	running sync.WaitGroup
}

// NewProxy listens on a free port of loopback until the test ends. It asks for the server's host:port with each
// connection, as a server that is started again may have another; where nothing listens there, it hangs up.
func NewProxy(t *testing.T, to func() string) *Proxy {
	t.Helper()
	p := &Proxy{
		listener: Must(net.Listen("tcp", "127.0.0.1:0"))(t), to: to,
		b: sinktest.Works, changed: make(chan struct{}), conns: map[net.Conn]bool{},
	}
	p.running.Go(p.accept)
	t.Cleanup(func() {
		_ = p.listener.Close() // accept sees the end
		p.Behave(sinktest.Down)
		p.running.Wait()
	})
	return p
}

// Addr is the host:port at which it listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Behave changes what becomes of bytes. Down cuts all connections and each new one, and drops what was held; Hangs
// holds both directions until the next change; Slow delays answers. With all else, bytes pass.
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

// relay copies one way until either end closes.
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

// wait returns when bytes may pass, and false where they may not any more.
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

// hangUp closes connections: what was not sent is to be lost, which is all that an error could say.
func hangUp(conns ...net.Conn) {
	for _, c := range conns {
		_ = c.Close()
	}
}
