package incluster

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/tattler-dev/tattler/internal/incluster/inclustertest"
)

// holdable is a cluster whose API server does not answer requests to forward ports until the test ends or lets it.
type holdable struct {
	*inclustertest.Cluster
	held chan struct{} // receives each held request
	free chan struct{} // closed: they are answered
}

// hold starts a cluster that holds the requests with a method: GET is WebSocket, POST is the SPDY that follows its refusal.
func hold(t *testing.T, method string) *holdable {
	t.Helper()
	c, err := inclustertest.Start(t.TempDir(), http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	h := &holdable{c, make(chan struct{}, 10), make(chan struct{})}
	c.Hold = func(r *http.Request) {
		if r.Method != method {
			return
		}
		h.held <- struct{}{}
		select {
		case <-h.free:
		case <-r.Context().Done():
		}
	}
	return h
}

func (h *holdable) options(t *testing.T) Options {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", h.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Config: c}
}

func (h *holdable) tunnel(t *testing.T) *tunnel {
	t.Helper()
	s, err := newServer(h.options(t).Config)
	if err != nil {
		t.Fatal(err)
	}
	return s.forward(inclustertest.Namespace, inclustertest.Pod, 8443)
}

// soon fails the test if done is not closed in time.
func soon(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal(what + " hangs")
	}
}

// async runs f, and returns a channel that is closed when it has returned.
func async(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}

// TestSilentServer: an API server that accepts the request for a port-forward and never answers holds up neither a connection
// nor, after Ctrl-C, the end of the command.
func TestSilentServer(t *testing.T) {
	for _, tc := range []struct{ why, method string }{
		{"WebSocket", http.MethodGet},
		{"SPDY, which follows a refusal of WebSocket", http.MethodPost},
	} {
		t.Run(tc.why, func(t *testing.T) {
			t.Run("time limit", func(t *testing.T) {
				f := hold(t, tc.method).tunnel(t)
				f.limit = time.Second
				soon(t, "connecting", async(func() {
					if _, err := f.dial(context.WithoutCancel(t.Context()), "", ""); err == nil || !strings.Contains(err.Error(), "the API server did not answer within 1s") {
						t.Errorf("connecting returns %v", err)
					}
				}))
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			})
			t.Run("close", func(t *testing.T) {
				h := hold(t, tc.method)
				f := h.tunnel(t)
				connecting := async(func() {
					if _, err := f.dial(context.WithoutCancel(t.Context()), "", ""); !errors.Is(err, errTunnelClosed) {
						t.Errorf("connecting returns %v", err)
					}
				})
				soon(t, "the request", h.held)
				soon(t, "Close", async(func() {
					if err := errors.Join(f.Close(), f.Close()); err != nil {
						t.Error(err)
					}
				}))
				soon(t, "connecting", connecting)
				if _, err := f.dial(t.Context(), "", ""); !errors.Is(err, errTunnelClosed) {
					t.Errorf("after Close, connecting returns %v", err)
				}
			})
			t.Run("Ctrl-C", func(t *testing.T) {
				h := hold(t, tc.method)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				opening := async(func() {
					if _, err := Open(ctx, h.options(t)); !errors.Is(err, context.Canceled) {
						t.Errorf("Open returns %v", err)
					}
				})
				soon(t, "the request", h.held)
				cancel()
				soon(t, "Open", opening)
			})
		})
	}
}

// TestLateConnection: a connection that is established after Close is closed, and so is its port-forward.
func TestLateConnection(t *testing.T) {
	h := hold(t, http.MethodPost)
	f := h.tunnel(t)
	begin := f.upgrade
	upgraded := make(chan httpstream.Connection, 1)
	f.upgrade = func(ctx context.Context) (httpstream.Connection, error) {
		conn, err := begin(context.WithoutCancel(ctx)) // as if it ended a moment before Close
		upgraded <- conn
		return conn, err
	}
	connecting := async(func() {
		if _, err := f.dial(context.WithoutCancel(t.Context()), "", ""); !errors.Is(err, errTunnelClosed) {
			t.Errorf("connecting returns %v", err)
		}
	})
	soon(t, "the request", h.held)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	soon(t, "connecting", connecting)
	close(h.free)
	conn := <-upgraded
	if conn == nil {
		t.Fatal("the API server did not upgrade the request")
	}
	select {
	case <-conn.CloseChan():
	case <-time.After(time.Minute):
		t.Error("the late connection stays open")
	}
}

// TestOneAttempt: connections that are made at the same time share one upgraded request.
func TestOneAttempt(t *testing.T) {
	h := hold(t, http.MethodPost)
	f := h.tunnel(t)
	var all [3]<-chan struct{}
	for i := range all {
		all[i] = async(func() {
			conn, err := f.dial(context.WithoutCancel(t.Context()), "", "")
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Close()
		})
	}
	soon(t, "the request", h.held)
	close(h.free)
	for _, done := range all {
		soon(t, "connecting", done)
	}
	if n := len(h.held); n > 0 {
		t.Errorf("%d more requests", n)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
