package torture

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy lies between the daemon and the observer, which is the API server to it: it passes bytes on, until it is told otherwise.
type proxy struct {
	listener net.Listener
	to       string

	mu      sync.Mutex
	pairs   map[*pair]struct{}
	refused bool
	fuse    int64 // bytes from the server after which a new connection breaks; 0: none
}

// pair is a connection and its other half.
type pair struct {
	near, far net.Conn
	once      sync.Once
	stalled   chan struct{} // closed where nothing is to come through any more
	stall     sync.Once
}

// newProxy listens until the test's end.
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
		p.cut()
		serving.Wait()
	})
	return p
}

func (p *proxy) serve(near net.Conn) {
	p.mu.Lock()
	refused, fuse := p.refused, p.fuse
	p.mu.Unlock()
	if refused {
		snap(near)
		return
	}
	far, err := net.Dial("tcp", p.to)
	if err != nil {
		snap(near) // as a server that is not there
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
	both.Go(func() { c.pass(far, near, 0) })
	both.Go(func() { c.pass(near, far, fuse) })
	both.Wait()
}

// pass copies until one end or the fuse does not go on, and breaks both.
func (c *pair) pass(to io.Writer, from io.Reader, fuse int64) {
	defer c.snap()
	buf := make([]byte, 16<<10)
	for sent := int64(0); ; {
		n, err := from.Read(buf)
		select {
		case <-c.stalled: // it reads, so that the other side thinks all is well
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

// snap closes both ends with a reset.
func (c *pair) snap() {
	c.once.Do(func() {
		snap(c.near)
		snap(c.far)
	})
}

func snap(c net.Conn) {
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
func (p *proxy) cut() { p.each((*pair).snap) }

// hush makes every connection silent for good; new ones are not.
func (p *proxy) hush() { p.each(func(c *pair) { c.stall.Do(func() { close(c.stalled) }) }) }

// refuse breaks new connections at once, or not, and those that there are.
func (p *proxy) refuse(on bool) {
	p.mu.Lock()
	p.refused = on
	p.mu.Unlock()
	if on {
		p.cut()
	}
}

// fray breaks connections after so many bytes, in the midst of whatever comes; 0 ends it.
func (p *proxy) fray(after int64) {
	p.mu.Lock()
	p.fuse = after
	p.mu.Unlock()
	if after > 0 {
		p.cut()
	}
}
