package daemon

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/control"
)

// nowhere is a listener without connections: with a real socket, a bubble would never be idle.
func nowhere(string) (net.Listener, error) { return &silent{closed: make(chan struct{})}, nil }

type silent struct {
	once   sync.Once
	closed chan struct{}
}

func (s *silent) Accept() (net.Conn, error) {
	<-s.closed
	return nil, net.ErrClosed
}

func (s *silent) Addr() net.Addr { return &net.UnixAddr{} }

func (s *silent) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// lines is a log that a test reads while it is being written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// running is a daemon in a bubble.
type running struct {
	*rig
	log    lines
	ask    func(context.Context) (control.Status, error)
	cancel context.CancelFunc
	ended  chan error
}

// daemon starts one; options that are not set are filled in.
func (r *rig) daemon(dir string, o Options) *running {
	r.Helper()
	return r.daemonOf("test", dir, o)
}

// daemonOf is daemon with the cluster's name.
func (r *rig) daemonOf(cluster, dir string, o Options) *running {
	r.Helper()
	d := &running{rig: r, ended: make(chan error, 1)}
	o.Config, o.Cluster, o.listen = r.server.Config(), cluster, nowhere
	o.Journal, o.Key = filepath.Join(dir, "journal.db"), filepath.Join(dir, "key")
	o.Log = slog.New(slog.NewTextHandler(&d.log, nil))
	if o.Scopes == nil {
		o.Scopes = []capture.Scope{{Types: []string{"configmaps"}}}
	}
	asked := make(chan func(context.Context) (control.Status, error), 1)
	o.Serve = func(ctx context.Context, status func(context.Context) (control.Status, error)) error {
		asked <- status
		<-ctx.Done()
		return nil
	}
	var ctx context.Context
	ctx, d.cancel = context.WithCancel(r.Context())
	go func() { d.ended <- Run(ctx, o) }()
	select {
	case d.ask = <-asked:
	case err := <-d.ended:
		r.Fatalf("it does not start: %v", err)
	}
	synctest.Wait()
	return d
}

// status returns the state once everything is idle.
func (d *running) status() control.Status {
	d.Helper()
	synctest.Wait()
	s, err := d.ask(d.Context())
	if err != nil {
		d.Error(err)
	}
	return s
}

// pass advances the time.
func (d *running) pass(t time.Duration) {
	<-time.After(t)
	synctest.Wait()
}

// stop ends the daemon, which must not fail.
func (d *running) stop() {
	d.Helper()
	d.cancel()
	if err := <-d.ended; err != nil {
		d.Errorf("Run: %v", err)
	}
}

// open opens a daemon without running it.
func open(ctx context.Context, o Options) (*daemon, error) {
	d := newDaemon(o)
	return d, d.open(ctx)
}
