package mqtt_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// proxy stands between a sink and a server, and can be slow or silent.
type proxy struct {
	listener net.Listener
	to       func() string // the server's address; empty where there is none

	mu      sync.Mutex
	b       sinktest.Behaviour
	changed chan struct{} // closed at the next change of behaviour
	conns   map[net.Conn]bool
	ended   sync.WaitGroup
}

func newProxy(t *testing.T, to func() string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to, changed: make(chan struct{}), conns: map[net.Conn]bool{}}
	p.ended.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.behave(sinktest.Works)
		p.cut()
		p.ended.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) behave(b sinktest.Behaviour) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.b = b
	close(p.changed)
	p.changed = make(chan struct{})
}

// cut ends every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

func (p *proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("tcp", p.to())
		if err != nil {
			conn.Close()
			continue
		}
		p.mu.Lock()
		p.conns[conn], p.conns[up] = true, true
		p.mu.Unlock()
		p.ended.Go(func() { p.relay(up, conn, false) })
		p.ended.Go(func() { p.relay(conn, up, true) })
	}
}

// relay copies from one side to the other as the behaviour wants it.
func (p *proxy) relay(to, from net.Conn, answers bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			p.wait(answers)
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) wait(answers bool) {
	p.mu.Lock()
	b, changed := p.b, p.changed
	p.mu.Unlock()
	switch {
	case b == sinktest.Hangs:
		<-changed
	case b == sinktest.Slow && answers:
		<-time.After(5 * time.Millisecond)
	}
}
