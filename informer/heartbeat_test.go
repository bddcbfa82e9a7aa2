package informer_test

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// network is a network that can stall: what is sent meanwhile arrives once it works again.
type network struct {
	mu   sync.Mutex
	open chan struct{} // closed while it works
}

func newNetwork() *network {
	n := &network{open: make(chan struct{})}
	close(n.open)
	return n
}

func (n *network) stall() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open = make(chan struct{})
}

func (n *network) work() { close(n.open) }

func (n *network) wait(ctx context.Context) error {
	n.mu.Lock()
	open := n.open
	n.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *network) wrap(rt http.RoundTripper) http.RoundTripper {
	return trip(func(r *http.Request) (*http.Response, error) {
		if err := n.wait(r.Context()); err != nil {
			return nil, err
		}
		resp, err := rt.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		if err := n.wait(r.Context()); err != nil {
			_ = resp.Body.Close()
			return nil, err
		}
		resp.Body = &stallingBody{resp.Body, n, r.Context()}
		return resp, nil
	})
}

type trip func(*http.Request) (*http.Response, error)

func (t trip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

type stallingBody struct {
	io.ReadCloser
	network *network
	ctx     context.Context
}

func (b *stallingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if stopped := b.network.wait(b.ctx); stopped != nil {
		return 0, stopped
	}
	return n, err
}

// TestStall: what arrives after a stall happened after the last heartbeat before it, and says so. Without a stall no watch
// is opened anew.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := informertest.NewServer()
		server.Serve(widgets, "Widget")
		two(server)
		network := newNetwork()
		config := rest.CopyConfig(server.Config())
		config.Wrap(network.wrap)
		type stall struct {
			since, until time.Time
			paused       bool
		}
		var stalls []stall
		c, err := informer.NewCluster(config, informer.Options{
			AuditEvery: -1, Heartbeat: 2 * time.Second,
			Hooks: informer.Hooks{Stalled: func(since, until time.Time, paused bool) { stalls = append(stalls, stall{since, until, paused}) }},
		})
		if err != nil {
			t.Fatal(err)
		}
		f, err := feed.Open(c, widgets, "f", feed.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		if err := f.Source().Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		var deltas []feed.Delta
		next := func() (d feed.Delta) {
			t.Helper()
			for len(deltas) == 0 {
				b, err := f.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if b.Gap != nil {
					t.Errorf("a gap: %+v", b.Gap)
				}
				deltas = b.Deltas
			}
			d, deltas = deltas[0], deltas[1:]
			return d
		}
		next()
		next()
		live := func(when string) {
			t.Helper()
			server.Put(widgets, "n", "a", spec(time.Now()))
			if d := next(); !d.After.IsZero() {
				t.Errorf("%s: %s after %v", when, line(d), d.After)
			}
		}
		<-time.After(4 * time.Minute)
		live("in quiet times")
		if n := f.Source().Status()[0].Watches; n != 1 {
			t.Errorf("%d watches were opened", n)
		}
		for i, seconds := range []int{8, 12, 20, 45, 12, 12} {
			<-time.After(33 * time.Second)
			if i > 3 { // soon after a watch was opened, before the next heartbeat
				<-time.After(time.Duration(i) * 300 * time.Millisecond)
				server.CloseWatches()
				<-time.After(100 * time.Millisecond)
			}
			began := time.Now()
			network.stall()
			<-time.After(3 * time.Second)
			written := time.Now()
			server.Put(widgets, "n", "b", spec(seconds))
			server.Put(widgets, "n", "c", spec(seconds))
			server.Delete(widgets, "n", "c")
			<-time.After(time.Duration(seconds-3) * time.Second)
			network.work()
			worked := time.Now()
			for range 3 {
				d := next()
				if d.After.IsZero() || !d.After.Before(written) || d.At.Before(worked) {
					t.Errorf("a stall of %d s: %s, written at %v, says that it was after %v and seen at %v", seconds, line(d), written, d.After, d.At)
				}
			}
			<-time.After(5 * time.Second)
			live("after a stall")
			if len(stalls) != 1 {
				t.Fatalf("a stall of %d s: %+v", seconds, stalls)
			}
			s := stalls[0]
			if s.paused || s.since.After(began) || began.Sub(s.since) > 3*time.Second || s.until.Before(worked) || s.until.Sub(worked) > 3*time.Second {
				t.Errorf("from %v to %v: %+v", began, worked, s)
			}
			stalls = nil
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}
