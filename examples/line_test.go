package examples

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// line is a way to the API server, or to another one, that can be cut, or frozen.
type line struct {
	listener net.Listener
	to       func() string // the server's address
	running  sync.WaitGroup

	mu     sync.Mutex
	cutUp  bool
	n      int // connections so far
	conns  map[net.Conn]struct{}
	frozen map[net.Conn]chan struct{} // closed when the connection goes on
}

func newLine(t *testing.T) *line {
	t.Helper()
	return newLineTo(t, func() string { return strings.TrimPrefix(cluster.URL(), "https://") })
}

func newLineTo(t *testing.T, to func() string) *line {
	t.Helper()
	l := &line{to: to, conns: map[net.Conn]struct{}{}}
	var err error
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	l.running.Go(func() {
		for {
			conn, err := l.listener.Accept()
			if err != nil {
				return
			}
			l.running.Go(func() { l.pass(conn) })
		}
	})
	t.Cleanup(func() {
		l.listener.Close()
		l.cut()
		l.running.Wait()
	})
	return l
}

// pass connects a connection with the server.
func (l *line) pass(conn net.Conn) {
	defer conn.Close()
	server, err := net.Dial("tcp", l.to())
	if err != nil {
		return
	}
	defer server.Close()
	l.mu.Lock()
	if l.cutUp {
		l.mu.Unlock()
		return
	}
	l.conns[conn], l.conns[server] = struct{}{}, struct{}{}
	l.n++
	l.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(thawed{l, conn}, server)
		conn.Close()
	})
	_, _ = io.Copy(server, conn)
	server.Close()
	back.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, conn)
	delete(l.conns, server)
}

// cut ends all connections, and refuses new ones.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cutUp = true
	for conn := range l.conns {
		conn.Close()
	}
	l.thawLocked()
}

// freeze holds back what the API server sends on the connections that there are, such as watches. New ones are not
// frozen, so writes pass. Use it with patientPings.
func (l *line) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = map[net.Conn]chan struct{}{}
	for conn := range l.conns {
		l.frozen[conn] = make(chan struct{})
	}
}

func (l *line) thaw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.thawLocked()
}

func (l *line) thawLocked() {
	for _, frozen := range l.frozen {
		close(frozen)
	}
	l.frozen = nil
}

// thawed writes to a connection while that is not frozen.
type thawed struct {
	l    *line
	conn net.Conn
}

func (w thawed) Write(b []byte) (int, error) {
	w.l.mu.Lock()
	frozen := w.l.frozen[w.conn]
	w.l.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
	return w.conn.Write(b)
}

// patientPings keep a program from giving up a connection that is frozen.
var patientPings = []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS=300", "HTTP2_PING_TIMEOUT_SECONDS=300"}

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cutUp = false
}

func (l *line) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// kubeconfig is another one by way of the line.
func (l *line) kubeconfig(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	by := strings.ReplaceAll(string(text), cluster.URL(), "https://"+l.listener.Addr().String())
	if by == string(text) {
		t.Fatalf("%s does not have %s", file, cluster.URL())
	}
	file = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(by), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
