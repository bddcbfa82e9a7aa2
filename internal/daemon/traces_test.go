package daemon

import (
	"bytes"
	"context"
	"encoding/base32"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/trace"
	"github.com/tattler-dev/tattler/internal/trace/tracetest"
)

// collector is an OTLP receiver.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	raw   bytes.Buffer // all requests, uncompressed
	spans []*tracepb.Span
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request, body, err := tracetest.Read(r.Body)
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, "not a request of a trace exporter", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw.Write(body)
	c.spans = append(c.spans, tracetest.Spans(request)...)
}

// of returns the spans of the event with an id, by name.
func (c *collector) of(id string) map[string][]*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	traceID, _ := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(id)) // as a consumer does it
	out := map[string][]*tracepb.Span{}
	for _, s := range c.spans {
		if bytes.Equal(s.TraceId, traceID) {
			out[s.Name] = append(out[s.Name], s)
		}
	}
	return out
}

func attribute(s *tracepb.Span, key string) string {
	i := slices.IndexFunc(s.Attributes, func(a *commonpb.KeyValue) bool { return a.Key == key })
	if i < 0 {
		return ""
	}
	if n, ok := s.Attributes[i].Value.Value.(*commonpb.AnyValue_IntValue); ok {
		return string(rune('0' + n.IntValue))
	}
	return s.Attributes[i].Value.GetStringValue()
}

// flaky is a sink that fails until it is repaired.
type flaky struct {
	mu     sync.Mutex
	err    error
	failed int
	names  []string
	ids    map[string]string // by name
}

func (f *flaky) Send(_ context.Context, ms []sink.Message) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		f.failed++
		return 0, f.err
	}
	if f.ids == nil {
		f.ids = map[string]string{}
	}
	for _, m := range ms {
		f.names = append(f.names, m.Event.Data.Resource.Name)
		f.ids[m.Event.Data.Resource.Name] = m.ID
	}
	return len(ms), nil
}

func (f *flaky) Close(context.Context) error { return nil }
func (f *flaky) String() string              { return "flaky" }

func (f *flaky) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *flaky) failures() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// id returns the id of the event of a name; empty if it has not arrived.
func (f *flaky) id(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ids[name]
}

// traced runs a daemon that exports traces to an address, with the sinks steady and flaky.
func (r *rig) traced(dir, endpoint string, steady, flaky sink.Sink) (ask func() control.Status, stop func() trace.Status) {
	r.Helper()
	o := trace.DefaultOptions()
	o.Endpoint, o.Timeout = endpoint, time.Minute // a request that takes long must not be repeated
	e, err := trace.New("tattler/test", o, nil)
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended, asked := make(chan error, 1), make(chan func(context.Context) (control.Status, error), 1)
	retry := deliver.Retry{Min: time.Millisecond, Max: 10 * time.Millisecond}
	go func() {
		ended <- Run(ctx, Options{
			Config: r.server.Config(), Cluster: "test", Scopes: []capture.Scope{{Types: []string{"configmaps"}}}, Traces: e,
			Journal: filepath.Join(dir, "journal.db"), Key: filepath.Join(dir, "key"), Log: slog.New(slog.DiscardHandler),
			Sinks: []deliver.Options{{Name: "steady", Sink: steady, Retry: retry}, {Name: "flaky", Sink: flaky, Retry: retry}},
			Serve: func(ctx context.Context, status func(context.Context) (control.Status, error)) error {
				asked <- status
				<-ctx.Done()
				return nil
			},
		})
	}()
	status := <-asked
	ask = func() control.Status {
		s, err := status(r.Context())
		if err != nil {
			r.Error(err)
		}
		return s
	}
	await(r.T, "a daemon that has settled", func() bool { return ask().Settled })
	return ask, func() trace.Status {
		cancel()
		if err := <-ended; err != nil {
			r.Error(err)
		}
		return e.Status()
	}
}

const canary = "canary-9f8e7d"

// TestTraces: a change has one trace with its way: seen, journaled, delivered to each sink. A sink that fails first, and a
// restart, are part of it. No field of an object is.
func TestTraces(t *testing.T) {
	r, c, dir := newRig(t), newCollector(t), t.TempDir()
	steady, flaky := &flaky{}, &flaky{err: errors.New("bad object: " + canary)}
	r.put("before", "1") // a snapshot
	ask, stop := r.traced(dir, c.URL, steady, flaky)
	r.server.Put(configMaps, "shop", "web", map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"note": canary}}, "data": map[string]any{"password": canary, "plain": canary},
	})
	await(t, "a delivery, and failures", func() bool { return steady.id("web") != "" && flaky.failures() > 2 })
	flaky.set(nil)
	await(t, "the other delivery", func() bool { return flaky.id("web") != "" })
	id := steady.id("web")
	await(t, "its spans", func() bool { return len(c.of(id)["deliver"]) == 2 && len(c.of(id)["change"]) == 1 })
	flaky.set(errors.New("away"))
	r.put("late", "1")
	await(t, "a change that waits", func() bool { return steady.id("late") != "" && ask().Sinks[1].Behind > 0 })
	exported := func(deliveries int) func() bool { // the end does not wait for a collector that is slow
		return func() bool {
			late := c.of(steady.id("late"))
			return len(late["change"]) == 1 && len(late["deliver"]) == deliveries
		}
	}
	await(t, "the spans of what was delivered", exported(1))
	if s := ask().Traces; s == nil || s.To != c.URL || s.Dropped != 0 {
		t.Errorf("the status: %+v", s)
	}
	stop()

	way := c.of(id)
	root := way["change"][0]
	if len(way["change"]) != 1 || len(root.ParentSpanId) != 0 || !bytes.Equal(root.SpanId, root.TraceId[:8]) {
		t.Errorf("the root is not alone: %v", way)
	}
	for key, want := range map[string]string{
		"k8s.cluster.name": "test", "k8s.namespace.name": "shop", "k8s.resource.name": "configmaps", "tattler.kind": "ConfigMap",
		"tattler.name": "web", "tattler.op": "created", "tattler.id": id,
	} {
		if got := attribute(root, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if root.StartTimeUnixNano == 0 || root.EndTimeUnixNano < root.StartTimeUnixNano {
		t.Errorf("seen %d, journaled %d", root.StartTimeUnixNano, root.EndTimeUnixNano)
	}
	deliveries := map[string]*tracepb.Span{}
	for _, s := range way["deliver"] {
		if !bytes.Equal(s.ParentSpanId, root.SpanId) || bytes.Equal(s.SpanId, root.SpanId) {
			t.Errorf("%s has the parent %x, want %x", s.Name, s.ParentSpanId, root.SpanId)
		}
	}
	for _, s := range way["deliver"] {
		deliveries[attribute(s, "tattler.sink")] = s
		if s.StartTimeUnixNano < root.EndTimeUnixNano || s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("a delivery from %d to %d of a change that was journaled at %d", s.StartTimeUnixNano, s.EndTimeUnixNano, root.EndTimeUnixNano)
		}
	}
	if s := deliveries["steady"]; s == nil || attribute(s, "tattler.attempts") != "1" || attribute(s, "tattler.failure") != "" {
		t.Errorf("steady: %v", s)
	}
	if s := deliveries["flaky"]; s == nil || attribute(s, "tattler.attempts") <= "3" || attribute(s, "tattler.failure") != "failed" || attribute(s, "tattler.outcome") != "acknowledged" {
		t.Errorf("flaky: %v", s)
	}

	flaky.set(nil)
	_, stop = r.traced(dir, c.URL, steady, flaky)
	await(t, "the delivery after the restart", func() bool { return flaky.id("late") != "" })
	await(t, "the span of that", exported(2))
	stop()
	late := c.of(steady.id("late"))
	if len(late["change"]) != 1 || len(late["deliver"]) != 2 || flaky.id("late") != steady.id("late") {
		t.Fatalf("the trace of a change that was delivered after a restart: %v", late)
	}
	for _, s := range late["deliver"] {
		if !bytes.Equal(s.ParentSpanId, late["change"][0].SpanId) {
			t.Errorf("it has the parent %x", s.ParentSpanId)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if bytes.Contains(c.raw.Bytes(), []byte(canary)) || !bytes.Contains(c.raw.Bytes(), []byte("flaky")) {
		t.Error("a field of an object was exported, or nothing was")
	}
	if bytes.Contains(c.raw.Bytes(), []byte("before")) {
		t.Error("a snapshot that no sink gets has a trace")
	}
}

// TestTracesLost: a collector that does not answer delays neither recording nor delivery, and the spans are counted.
func TestTracesLost(t *testing.T) {
	r, dir := newRig(t), t.TempDir()
	hang := make(chan struct{})
	release := sync.OnceFunc(func() { close(hang) })
	var asked sync.WaitGroup
	asked.Add(1)
	first := sync.OnceFunc(asked.Done)
	gone := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		first()
		<-hang
		panic(http.ErrAbortHandler)
	}))
	defer gone.Close()
	defer release()
	steady, other := &flaky{}, &flaky{}
	ask, stop := r.traced(dir, gone.URL, steady, other)
	r.put("a", "1")
	asked.Wait() // the exporter waits for the collector
	r.put("b", "1")
	await(t, "both sinks", func() bool { return steady.id("b") != "" && other.id("b") != "" })
	await(t, "two changes in the status", func() bool { return ask().Journal.Recorded >= 2 }) // a sink may be faster
	if s := ask(); s.Journal.Recorded != 2 || s.Traces == nil || s.Traces.Queued == 0 || s.Traces.Exported != 0 {
		t.Errorf("meanwhile: %+v, %+v", s.Journal, s.Traces)
	}
	if s := stop(); s.Dropped != 6 || s.Exported != 0 { // two changes, each journaled and delivered twice
		t.Errorf("at the end, while the receiver still hangs: %+v", s)
	}
}
