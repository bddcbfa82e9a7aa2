package webhook

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestMain(m *testing.M) {
	sinktest.Main(m, func(target string) (sink.Sink, error) { return New("tattler/test", Options{URL: target}) })
}

func TestSuite(t *testing.T) {
	for name, o := range map[string]Options{
		"signed": {Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
		"plain":  {},
	} {
		t.Run(name, func(t *testing.T) {
			sinktest.Run(t, sinktest.Suite{
				Type: "*webhook.Sink", Name: "webhook",
				Start: func(t *testing.T) sinktest.Receiver { return newReceiver(t) },
				Open: func(t *testing.T, r sinktest.Receiver) sink.Sink {
					o.URL, o.Timeout = r.Target(), long
					return must(New("tattler/test", o))(t)
				},
			})
		})
	}
}

// receiver is a server that remembers the ids that it has acknowledged.
type receiver struct {
	t      *testing.T
	server *httptest.Server

	mu      sync.Mutex
	ids     []string
	b       sinktest.Behaviour
	id      string
	changed chan struct{} // closed when the behaviour changes
	downs   int
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t, changed: make(chan struct{})}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

func (r *receiver) Target() string { return r.server.URL }

func (r *receiver) Behave(b sinktest.Behaviour, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.b, r.id = b, id
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *receiver) Received(*testing.T) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.ids...)
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the client has gone
	}
	var e struct{ ID string }
	if err := json.Unmarshal(body, &e); err != nil || e.ID == "" {
		r.t.Errorf("body %q: %v", body, err)
	}
	r.mu.Lock()
	b, id, changed := r.b, r.id, r.changed
	r.downs++
	downs := r.downs
	r.mu.Unlock()
	switch {
	case b == sinktest.Down && downs%3 == 0:
		reset(r.t, w)
	case b == sinktest.Down:
		w.WriteHeader([]int{http.StatusInternalServerError, http.StatusBadGateway}[downs%2])
	case b == sinktest.Busy:
		w.Header().Set("Retry-After", strconv.Itoa(int(sinktest.BusyFor/time.Second)))
		w.WriteHeader(http.StatusTooManyRequests)
	case b == sinktest.Refuses && e.ID == id:
		w.WriteHeader(http.StatusUnprocessableEntity)
	default:
		if b == sinktest.Slow {
			<-time.After(20 * time.Millisecond)
		}
		if b == sinktest.Hangs {
			select {
			case <-changed:
			case <-req.Context().Done():
				return
			}
		}
		r.mu.Lock()
		r.ids = append(r.ids, e.ID)
		r.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
	}
}

// reset ends a connection like a process that dies.
func reset(t *testing.T, w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
