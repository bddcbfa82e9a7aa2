package doctor

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/control"
)

// TestTraces reaches the receiver of traces, and shows no credential.
func TestTraces(t *testing.T) {
	s, away := serve(t), closed(t)
	asked := ""
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.Path
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer receiver.Close()
	file := func(address string) string {
		return "traces: {endpoint: 'http://me:geheim@" + address + "', headers: {x-key: geheim2}}\n"
	}
	o, _ := s.options(t, file(strings.TrimPrefix(receiver.URL, "http://")))
	x := s.examine(t, o)
	if l, title := level(t, x, "sinks.traces"); l != OK || strings.Contains(title, "geheim") || asked != "POST /v1/traces" {
		t.Errorf("%s: %s, asked %s", l, title, asked)
	}
	x.findings, x.status = nil, &control.Status{Traces: &control.Traces{Exported: 10, Dropped: 2}}
	x.traces(t.Context())
	if l, title := level(t, x, "sinks.spans"); l != Warning || title != "traces: the daemon has dropped 2 spans and exported 10" {
		t.Errorf("%s: %s", l, title)
	}
	o, _ = s.options(t, file(away))
	o.limit(checkSink, "", 2*time.Second)
	if l, title := level(t, s.examine(t, o), "sinks.traces"); l != Warning || strings.Contains(title, "geheim") || !strings.Contains(title, "cannot be reached") {
		t.Errorf("%s: %s", l, title)
	}
}
