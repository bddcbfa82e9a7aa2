package notify

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// single makes each change a message, with its id in the link.
func single(target string) Options {
	return Options{URL: target, Service: Mattermost, BaseURL: "https://tattler.example.com", Timeout: time.Minute}
}

func TestMain(m *testing.M) {
	sinktest.Main(m, func(target string) (sink.Sink, error) { return New("tattler/test", single(target)) })
}

// TestSuiteOnFakeMattermost runs the conformance suite against a server that is not Mattermost, but answers like it.
func TestSuiteOnFakeMattermost(t *testing.T) {
	sinktest.Run(t, sinktest.Suite{
		Type: "*notify.Sink", Name: "notify",
		Start: func(t *testing.T) sinktest.Receiver { return newFake(t) },
		Open: func(t *testing.T, r sinktest.Receiver) sink.Sink {
			return must(New("tattler/test", single(r.Target())))(t)
		},
	})
}

// fake is a server that remembers the ids of the reported changes.
type fake struct {
	t      *testing.T
	server *httptest.Server

	mu      sync.Mutex
	ids     []string
	b       sinktest.Behaviour
	id      string
	changed chan struct{} // closed when the behaviour changes
	downs   int
}

func newFake(t *testing.T) *fake {
	f := &fake{t: t, changed: make(chan struct{})}
	f.server = httptest.NewServer(f)
	t.Cleanup(f.server.Close)
	return f
}

func (f *fake) Target() string { return f.server.URL + "/hooks/t0ken-of-the-webhook" }

func (f *fake) Behave(b sinktest.Behaviour, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.b, f.id = b, id
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fake) Received(*testing.T) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.ids...)
}

var linked = regexp.MustCompile(`/changes/([a-z2-7]{26})\)`)

func (f *fake) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the client has gone
	}
	var post struct{ Attachments []struct{ Text string } }
	if err := json.Unmarshal(body, &post); err != nil || len(post.Attachments) != 1 {
		f.t.Errorf("body %q: %v", body, err)
		return
	}
	ids := linked.FindStringSubmatch(post.Attachments[0].Text)
	if len(ids) != 2 || req.URL.Path != "/hooks/t0ken-of-the-webhook" {
		f.t.Errorf("path %s, body %q: no id", req.URL.Path, body)
		return
	}
	f.mu.Lock()
	b, id, changed := f.b, f.id, f.changed
	f.downs++
	downs := f.downs
	f.mu.Unlock()
	switch {
	case b == sinktest.Down && downs%3 == 0:
		reset(f.t, w)
	case b == sinktest.Down:
		w.WriteHeader([]int{http.StatusInternalServerError, http.StatusForbidden}[downs%2])
	case b == sinktest.Busy:
		w.Header().Set("Retry-After", strconv.Itoa(int(sinktest.BusyFor/time.Second)))
		w.WriteHeader(http.StatusTooManyRequests)
	case b == sinktest.Refuses && ids[1] == id:
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"id":"web.incoming_webhook.split_props_length.app_error"}`)
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
		f.mu.Lock()
		f.ids = append(f.ids, ids[1])
		f.mu.Unlock()
		_, _ = io.WriteString(w, "ok")
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
