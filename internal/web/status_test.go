package web

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

// TestStatus: the daemon's streams and sinks, for viewers with the right only.
func TestStatus(t *testing.T) {
	p := recorded(t)
	state, failure := control.Status{
		Streams: []control.Stream{{Resource: "pods", State: control.Live}, {Resource: "secrets", State: control.Forbidden, Error: "<b>no</b>"}},
		Sinks:   []control.Sink{{Name: "hook", State: "retrying", Dead: 3, Error: "refused"}},
	}, error(nil)
	page, err := New(Options{Source: p.past.source, Now: p.o.Now, Status: func(context.Context) (control.Status, error) { return state, failure }})
	if err != nil {
		t.Fatal(err)
	}
	a, err := auth.New(auth.Options{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	get := func(h http.Handler) (int, string) {
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80})), http.MethodGet, "http://localhost/status", nil)
		r.RemoteAddr = "127.0.0.1:40000"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	if code, body := get(page); code == http.StatusOK || strings.Contains(body, "hook") {
		t.Errorf("without a viewer: %d", code)
	}
	_, body := get(a.Wrap(page))
	has(t, body, "hook", "retrying", "refused", "&lt;b&gt;no&lt;/b&gt;", "expired")
	if strings.Index(body, ">secrets<") > strings.Index(body, ">pods<") {
		t.Error("a stream that is not live does not come first")
	}
	state, failure = control.Status{}, &control.NoDaemonError{Journal: "j.db"}
	_, body = get(a.Wrap(page))
	has(t, body, "no daemon records into j.db", "expired")
}
