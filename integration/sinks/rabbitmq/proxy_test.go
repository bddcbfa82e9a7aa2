package rabbitmq_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// proxy stands between a sink and the server, and misbehaves on request.
type proxy struct {
	listener net.Listener
	to       string

	mu      sync.Mutex
	b       sinktest.Behaviour
	changed chan struct{} // closed at the next change of behaviour
	conns   map[net.Conn]bool
	all     sync.WaitGroup
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to, b: sinktest.Works, changed: make(chan struct{}), conns: map[net.Conn]bool{}}
	p.all.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.behave(sinktest.Down)
		p.all.Wait()
	})
	return p
}

func (p *proxy) behave(b sinktest.Behaviour) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.b = b
	close(p.changed)
	p.changed = make(chan struct{})
	if b == sinktest.Down {
		for c := range p.conns {
			c.Close()
		}
	}
}

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil {
			in.Close()
			continue
		}
		p.mu.Lock()
		p.conns[in], p.conns[out] = true, true
		if p.b == sinktest.Down {
			in.Close()
			out.Close()
		}
		p.mu.Unlock()
		p.all.Go(func() { p.pass(in, out) })
		p.all.Go(func() { p.pass(out, in) })
	}
}

// pass copies one way until either end closes.
func (p *proxy) pass(from, to net.Conn) {
	defer func() {
		from.Close()
		to.Close()
		p.mu.Lock()
		delete(p.conns, from)
		p.mu.Unlock()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !p.hold() {
			return
		}
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

// hold waits as the behaviour asks for. It returns false where nothing may pass any more.
func (p *proxy) hold() bool {
	for {
		p.mu.Lock()
		b, changed := p.b, p.changed
		p.mu.Unlock()
		switch b {
		case sinktest.Down:
			return false
		case sinktest.Slow:
			<-time.After(10 * time.Millisecond)
			return true
		case sinktest.Hangs:
			<-changed
		default:
			return true
		}
	}
}
