package integration

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/trace/tracetest"
)

// collector receives traces.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	text  bytes.Buffer
	spans []*tracepb.Span
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(c)
	t.Cleanup(func() {
		c.CloseClientConnections()
		c.Close()
	})
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request, body, err := tracetest.Read(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.Write(body)
	c.spans = append(c.spans, tracetest.Spans(request)...)
}

// has waits until the trace of each event has a span of the change, in the event's cluster, and of its delivery to a sink. No
// trace has a text that is given, such as a value of an object.
func (c *collector) has(t *testing.T, events, sink string, without ...string) {
	t.Helper()
	text := func(s *tracepb.Span, key string) string {
		for _, a := range s.Attributes {
			if a.Key == key {
				return a.Value.GetStringValue()
			}
		}
		return ""
	}
	found := func(e *event.Event) (changed, delivered bool) {
		id, err := event.TraceID(e.ID)
		if err != nil {
			t.Fatal(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, s := range c.spans {
			if bytes.Equal(s.TraceId, id[:]) {
				changed = changed || s.Name == "change" && "/clusters/"+text(s, "k8s.cluster.name") == e.Source && text(s, "tattler.name") == e.Data.Resource.Name
				delivered = delivered || s.Name == "deliver" && text(s, "tattler.sink") == sink && bytes.Equal(s.ParentSpanId, id[:8])
			}
		}
		return changed, delivered
	}
	for line := range strings.Lines(events) {
		var e event.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for deadline := time.Now().Add(patience); ; pause() {
			changed, delivered := found(&e)
			if changed && delivered {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the trace of an event: its change %v, its delivery %v: %s", changed, delivered, line)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, value := range without {
		if !strings.Contains(events, value) || bytes.Contains(c.text.Bytes(), []byte(value)) {
			t.Errorf("%q is in a trace, or in no event", value)
		}
	}
}
