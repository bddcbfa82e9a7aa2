package request

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestStreamWindow: a server is blocked soon after its client stops reading.
func TestStreamWindow(t *testing.T) {
	const much = 3 << 20
	sent := make(chan int, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		within := func(limit time.Duration) {
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit)); err != nil {
				t.Error(err)
			}
		}
		within(time.Minute)
		n := 0
		for n < much {
			if n >= streamWindow/2 { // as far as it must come, however slow the machine is; from here on it may block
				within(2 * time.Second)
			}
			k, err := w.Write(make([]byte, 32<<10))
			if n += k; err != nil {
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Log(err) // HTTP/2 has its own error for it
				}
				break
			}
		}
		sent <- n
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	c, err := New(&rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdle)
	body, _, err := c.Open(t.Context(), "/x", nil, Want{})
	if err != nil {
		t.Fatal(err)
	}
	n := <-sent
	if n < streamWindow/2 || n >= 2*streamWindow {
		t.Errorf("the server sent %d unread bytes, want about %d", n, streamWindow)
	}
	_, _ = io.Copy(io.Discard, body)
	if err := body.Close(); err != nil {
		t.Error(err)
	}
}

// TestOwnConnections: settings of our connections do not affect other clients of the process.
func TestOwnConnections(t *testing.T) {
	cfg := &rest.Config{Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	other, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if ours, theirs := base(c.http.Transport), base(other.Transport); ours == nil || ours == theirs || theirs.HTTP2 != nil {
		t.Errorf("ours %p, theirs %p", ours, theirs)
	}
	own := &http.Transport{}
	if c, err = New(&rest.Config{Host: "http://127.0.0.1:1", Transport: own}); err != nil || base(c.http.Transport) != own || own.HTTP2 != nil {
		t.Errorf("a caller's own transport: %v", err)
	}
}
