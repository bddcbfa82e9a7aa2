package torture

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy lies between the daemon and the observer. It passes bytes on until a fault is set.
type proxy struct {
	listener net.Listener
	to       string

	mu      sync.Mutex
	pairs   map[*pair]struct{}
	refused bool
	held    chan struct{} // closed when bytes pass again; nil: they pass
	fuse    int64         // bytes from the server after which a new connection breaks; 0: never
}

// pair is a connection and its counterpart.
type pair struct {
	near, far net.Conn
	once      sync.Once
	stalled   chan struct{} // closed once the connection is stalled
	stall     sync.Once
}

// newProxy listens until the end of the test.
func newProxy(t *testing.T, o *observer) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: o.server.Listener.Addr().String(), pairs: map[*pair]struct{}{}}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.release()
		p.cut()
		serving.Wait()
	})
	return p
}

func (p *proxy) serve(near net.Conn) {
	p.wait()
	p.mu.Lock()
	refused, fuse := p.refused, p.fuse
	p.mu.Unlock()
	if refused {
		reset(near)
		return
	}
	far, err := net.Dial("tcp", p.to)
	if err != nil {
		reset(near) // like an unreachable server
		return
	}
	c := &pair{near: near, far: far, stalled: make(chan struct{})}
	p.mu.Lock()
	p.pairs[c] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.pairs, c)
		p.mu.Unlock()
	}()
	var both sync.WaitGroup
	both.Go(func() { p.pass(c, far, near, 0) })
	both.Go(func() { p.pass(c, near, far, fuse) })
	both.Wait()
}

// pass copies until one end closes or the fuse blows, and breaks both.
func (p *proxy) pass(c *pair, to io.Writer, from io.Reader, fuse int64) {
	defer c.reset()
	buf := make([]byte, 16<<10)
	for sent := int64(0); ; {
		n, err := from.Read(buf)
		p.wait()
		select {
		case <-c.stalled: // keep reading, so that the other side notices nothing
			n = 0
		default:
		}
		if fuse > 0 && sent+int64(n) >= fuse {
			_, _ = to.Write(buf[:fuse-sent])
			return
		}
		sent += int64(n)
		if _, werr := to.Write(buf[:n]); werr != nil || err != nil {
			return
		}
	}
}

// reset closes both ends with a reset.
func (c *pair) reset() {
	c.once.Do(func() {
		reset(c.near)
		reset(c.far)
	})
}

func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func (p *proxy) each(f func(*pair)) {
	p.mu.Lock()
	var all []*pair
	for c := range p.pairs {
		all = append(all, c)
	}
	p.mu.Unlock()
	for _, c := range all {
		f(c)
	}
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// cut breaks every connection.
func (p *proxy) cut() { p.each((*pair).reset) }

// silence stalls the existing connections forever, but not new ones.
func (p *proxy) silence() { p.each(func(c *pair) { c.stall.Do(func() { close(c.stalled) }) }) }

// hold keeps all bytes and new connections back until release.
func (p *proxy) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = make(chan struct{})
}

func (p *proxy) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held != nil {
		close(p.held)
		p.held = nil
	}
}

// wait waits until bytes may pass.
func (p *proxy) wait() {
	p.mu.Lock()
	held := p.held
	p.mu.Unlock()
	if held != nil {
		<-held
	}
}

// refuse breaks existing and new connections at once, or accepts them again.
func (p *proxy) refuse(on bool) {
	p.mu.Lock()
	p.refused = on
	p.mu.Unlock()
	if on {
		p.cut()
	}
}

// breakAfter breaks connections after that many bytes, wherever that is; 0 ends it.
func (p *proxy) breakAfter(after int64) {
	p.mu.Lock()
	p.fuse = after
	p.mu.Unlock()
	if after > 0 {
		p.cut()
	}
}
