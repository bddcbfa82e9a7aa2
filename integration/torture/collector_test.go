package torture

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/trace/tracetest"
)

// collector receives traces, with random responses. What it refuses counts, too: it was reported.
type collector struct {
	*httptest.Server

	mu      sync.Mutex
	rng     *rand.Rand // nil: it takes all
	text    bytes.Buffer
	spans   []*tracepb.Span
	answers map[string]int
	errs    []error
	closed  chan struct{}
}

func newCollector(t *testing.T, rng *rand.Rand) *collector {
	t.Helper()
	c := &collector{rng: rng, answers: map[string]int{}, closed: make(chan struct{})}
	c.Server = httptest.NewServer(c)
	t.Cleanup(func() {
		close(c.closed)
		c.CloseClientConnections()
		c.Close()
	})
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed: an incomplete message
	}
	switch c.take(r, text) {
	case "ok":
		w.Header().Set("Content-Type", "application/x-protobuf")
	case "503":
		http.Error(w, fmt.Sprint("no: ", r.Header), http.StatusServiceUnavailable)
	case "429":
		w.Header().Set("Retry-After", "1")
		http.Error(w, fmt.Sprint("later: ", r.Header), http.StatusTooManyRequests)
	case "413":
		http.Error(w, "too long", http.StatusRequestEntityTooLarge)
	case "hang":
		select {
		case <-r.Context().Done():
		case <-c.closed:
		}
	default: // a reset
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			reset(conn)
		}
	}
}

// take keeps the spans of a request, and chooses the response.
func (c *collector) take(r *http.Request, body []byte) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	request, text, err := tracetest.Read(bytes.NewReader(body))
	if err != nil || r.URL.Path != "/v1/traces" {
		c.errs = append(c.errs, fmt.Errorf("a request to %s: %w", r.URL.Path, err))
	}
	c.text.Write(text)
	c.spans = append(c.spans, tracetest.Spans(request)...)
	answer := "ok"
	if c.rng != nil {
		if all := []string{"503", "429", "413", "hang", "reset"}; c.rng.IntN(3) == 0 {
			answer = all[c.rng.IntN(len(all))]
		}
	}
	c.answers[answer]++
	return answer
}

// exported returns the content of all requests.
func (c *collector) exported() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.text.Bytes())
}

// received returns the spans.
func (c *collector) received() []*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spans
}

// traces judges spans against the journal: a change is reported only if it is in the journal, and a delivery only to a sink
// that wants the change. The span of a change may be sent again, but stays the same: a change that could not be written, and
// was reported all the same, would get another one later.
func (j *judge) traces(sinks map[string]func(*row) bool, spans []*tracepb.Span) (changes, deliveries int) {
	rows := map[string]*row{}
	for i := range j.listed {
		r := &j.listed[i]
		if id, err := event.TraceID(r.id); err == nil {
			rows[string(id[:])] = r
		}
	}
	roots := map[string]*tracepb.Span{}
	for _, s := range spans {
		r := rows[string(s.TraceId)]
		if r == nil {
			j.find(invented, "a span of %x, which is not in the journal, or quiet: %v", s.TraceId, s)
			continue
		}
		has := map[string]string{}
		for _, a := range s.Attributes {
			has[a.Key] = a.Value.GetStringValue()
		}
		wants := sinks[has["tattler.sink"]]
		switch {
		case s.Name == "change" && !bytes.Equal(s.SpanId, s.TraceId[:8]), s.Name == "deliver" && !bytes.Equal(s.ParentSpanId, s.TraceId[:8]):
			j.find(falsified, "a span of %v has the ID %s and the parent %s", r, hex.EncodeToString(s.SpanId), hex.EncodeToString(s.ParentSpanId))
		case has["tattler.id"] != r.id || s.EndTimeUnixNano < s.StartTimeUnixNano:
			j.find(falsified, "a span of %v: %v", r, s)
		case s.Name == "change" && (has["tattler.op"] != string(r.op) || has["k8s.namespace.name"] != r.namespace || has["tattler.name"] != r.name):
			j.find(falsified, "a span of %v: %v", r, s)
		case s.Name == "change" && roots[r.id] != nil && !proto.Equal(roots[r.id], s):
			j.find(twice, "%v was reported as journaled twice: %v, %v", r, roots[r.id], s)
		case s.Name == "change":
			changes++
			roots[r.id] = s
		case s.Name != "deliver" || wants == nil || !wants(r):
			j.find(invented, "a span of %v: %v", r, s)
		default:
			deliveries++
		}
	}
	return changes, deliveries
}
