package trace

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/leaktest"
	"github.com/tattler-dev/tattler/internal/meta"
	"github.com/tattler-dev/tattler/internal/trace/tracetest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var seen = time.Date(2026, 11, 21, 10, 0, 0, 5e8, time.UTC)

func change(n int) *meta.Meta {
	return &meta.Meta{
		Op: event.Updated, Namespace: "shop", Name: fmt.Sprint("web", n), UID: fmt.Sprint("u", n), ResourceVersion: "7", Manager: "kubectl\xff",
		Kind: meta.Kind{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespaced: true},
		At:   seen, Time: seen.Add(-time.Second),
	}
}

// receiver decodes what arrives.
type receiver struct {
	*httptest.Server
	answer http.HandlerFunc // instead of 200, if set

	mu       sync.Mutex
	requests []*coltracepb.ExportTraceServiceRequest
	header   http.Header
	path     string
}

func listen(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.answer != nil {
		r.answer(w, req)
		return
	}
	one, _, err := tracetest.Read(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests, r.header, r.path = append(r.requests, one), req.Header, req.URL.Path
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// show returns spans in lines.
func show(spans []*tracepb.Span) (lines []string) {
	for _, s := range spans {
		line := fmt.Sprintf("%s %v %x %x<%x", s.Name, s.Kind, s.TraceId, s.SpanId, s.ParentSpanId)
		line += fmt.Sprintf(" +%s +%s", time.Unix(0, int64(s.StartTimeUnixNano)).Sub(seen), time.Unix(0, int64(s.EndTimeUnixNano)).Sub(seen))
		for _, a := range s.Attributes {
			line += " " + a.Key + "=" + strings.TrimSpace(strings.ReplaceAll(strings.SplitN(a.Value.String(), ":", 2)[1], `"`, ""))
		}
		if s.Status != nil {
			line += " " + s.Status.Code.String() + " " + s.Status.Message
		}
		lines = append(lines, line)
	}
	return lines
}

// TestExport sends spans to a receiver, which decodes them.
func TestExport(t *testing.T) {
	r := listen(t, nil)
	o := DefaultOptions()
	o.Timeout = time.Minute
	o.Endpoint = strings.Replace(r.URL, "http://", "http://me:hunter2@", 1)
	o.Headers, o.Resource = map[string]string{"x-team": "shop"}, map[string]string{"deployment.environment.name": "prod"}
	e, err := New("tattler/v1.2.3", o, nil)
	if err != nil {
		t.Fatal(err)
	}
	e.flush = time.Minute
	if strings.Contains(e.Status().To+e.String(), "hunter2") {
		t.Errorf("the address shows the password: %s, %s", e, e.Status().To)
	}
	m := change(1)
	id := m.ID("prod")
	e.Journaled("prod", m, seen.Add(2*time.Millisecond))
	e.Delivered(Delivery{ID: id, Sink: "hook", Taken: seen.Add(3 * time.Millisecond), Done: seen.Add(time.Second), Attempts: 2, Failure: "failed"})
	e.Delivered(Delivery{ID: id, Sink: "chat", Taken: seen.Add(3 * time.Millisecond), Done: seen.Add(time.Minute), Attempts: 3, Failure: "refused", SetAside: true, Again: true})
	ctx, stop := context.WithCancel(t.Context())
	stop() // it sends what it has
	if err := e.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if s := e.Status(); s.Exported != 3 || s.Dropped != 0 || s.Queued != 0 || s.Error != "" {
		t.Errorf("%+v", s)
	}
	if r.path != "/v1/traces" || r.header.Get("Authorization") == "" || r.header.Get("X-Team") != "shop" || r.header.Get("User-Agent") != "tattler/v1.2.3" {
		t.Errorf("%s, %v", r.path, r.header)
	}
	if len(r.requests) != 1 {
		t.Fatalf("%d requests", len(r.requests))
	}
	of := r.requests[0].ResourceSpans[0]
	if got := fmt.Sprint(of.Resource.Attributes, of.ScopeSpans[0].Scope); !strings.Contains(got, "prod") || !strings.Contains(got, `"tattler"`) || !strings.Contains(got, `"v1.2.3"`) {
		t.Errorf("the resource is %s", got)
	}
	trace, err := event.TraceID(id)
	if err != nil {
		t.Fatal(err)
	}
	root := hex.EncodeToString(trace[:8])
	child := func(i int) string { return hex.EncodeToString(of.ScopeSpans[0].Spans[i].SpanId) }
	want := []string{
		fmt.Sprintf("change SPAN_KIND_INTERNAL %x %s< +0s +2ms k8s.cluster.name=prod k8s.namespace.name=shop k8s.resource.name=deployments.apps tattler.kind=Deployment tattler.name=web1 tattler.op=updated tattler.id=%s tattler.manager=kubectl\uFFFD tattler.time=2026-11-21T09:59:59.500Z", trace, root, id),
		fmt.Sprintf("deliver SPAN_KIND_PRODUCER %x %s<%s +3ms +1s tattler.sink=hook tattler.id=%s tattler.outcome=acknowledged tattler.attempts=2 tattler.failure=failed", trace, child(1), root, id),
		fmt.Sprintf("deliver SPAN_KIND_PRODUCER %x %s<%s +3ms +1m0s tattler.sink=chat tattler.id=%s tattler.outcome=set aside tattler.attempts=3 tattler.failure=refused error.type=refused tattler.again=true STATUS_CODE_ERROR set aside as a dead letter", trace, child(2), root, id),
	}
	if d := cmp.Diff(want, show(of.ScopeSpans[0].Spans)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	ids := map[string]bool{root: true, child(1): true, child(2): true}
	if len(ids) != 3 {
		t.Errorf("two spans have the same ID: %v", ids)
	}
}

// TestAnswers: whatever a receiver answers, spans are exported or counted as dropped, and no credential is shown.
func TestAnswers(t *testing.T) {
	say := func(code int, form, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", form)
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body+r.Header.Get("X-Key")) // the client may have gone
		}
	}
	rejects, err := proto.Marshal(&coltracepb.ExportTraceServiceResponse{PartialSuccess: &coltracepb.ExportTracePartialSuccess{RejectedSpans: 1, ErrorMessage: "no"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		why      string
		answer   http.HandlerFunc
		exported int64
	}{
		{"an empty answer", say(200, "application/x-protobuf", ""), 2},
		{"a partial success", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-protobuf")
			_, _ = w.Write(rejects)
		}, 1},
		{"too many", say(429, "text/plain", "later "), 0},
		{"an error", say(500, "text/plain", "oops "), 0},
		{"a wrong request", say(400, "text/plain", "no "), 0},
		{"a page", say(200, "text/html", "<html>"), 0},
		{"garbage", say(503, "application/x-protobuf", "\xff\xfe\x00"), 0},
		{"no answer", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0},
	} {
		r := listen(t, tc.answer)
		var log bytes.Buffer
		o := DefaultOptions()
		o.Timeout = time.Minute
		o.Endpoint, o.Headers = r.URL+"/custom", map[string]string{"x-key": "hunter2-and-more"}
		e, err := New("tattler/v1", o, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		e.flush = time.Minute
		e.Journaled("prod", change(1), seen)
		e.Journaled("prod", change(2), seen)
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := e.Run(ctx); err != nil {
			t.Error(err)
		}
		s := e.Status()
		if s.Exported != tc.exported || s.Dropped != 2-tc.exported || s.Queued != 0 || (s.Error == "") != (tc.exported == 2) {
			t.Errorf("%s: %+v", tc.why, s)
		}
		if tc.exported < 2 && strings.Count(log.String(), "level=WARN") == 0 {
			t.Errorf("%s: the log says nothing:\n%s", tc.why, log.String())
		}
		if strings.Contains(s.Error+log.String(), "hunter2") {
			t.Errorf("%s: a credential is shown: %s\n%s", tc.why, s.Error, log.String())
		}
		if err := e.Probe(t.Context()); (err == nil) != (tc.exported > 0) {
			t.Errorf("%s: Probe: %v", tc.why, err)
		}
		e.Close()
	}
}

// TestSample: the share of traces is about what was asked for, all spans of a trace are exported or none, and a larger share
// includes a smaller one.
func TestSample(t *testing.T) {
	with := func(share float64) *Exporter { return newExporter(&fake{}, "t/1", Options{Sample: share}, nil) }
	none, tenth, half, all := with(0), with(0.1), with(0.5), with(1)
	const changes = 4000
	counts := map[*Exporter]int{}
	for n := range changes {
		id, err := event.TraceID(change(n).ID("prod"))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []*Exporter{none, tenth, half, all} {
			if e.sampled(id) {
				counts[e]++
			}
		}
		if tenth.sampled(id) && !half.sampled(id) {
			t.Errorf("%x is in a tenth and not in the half", id)
		}
	}
	if counts[none] != 0 || counts[all] != changes || counts[tenth] < changes/20 || counts[tenth] > changes/5 || counts[half] < changes/3 || counts[half] > changes*2/3 {
		t.Errorf("none %d, a tenth %d, half %d, all %d", counts[none], counts[tenth], counts[half], counts[all])
	}
	none.Journaled("prod", change(1), seen)
	none.Delivered(Delivery{ID: change(1).ID("prod")})
	if s := none.Status(); s.Queued+int(s.Dropped) != 0 {
		t.Errorf("%+v", s)
	}
}

// TestOff: without an exporter, a change costs nothing. What connections of other tests allocate at their end does not count
// among so many runs.
func TestOff(t *testing.T) {
	var e *Exporter
	m := change(1)
	if n := testing.AllocsPerRun(10_000, func() {
		e.Journaled("prod", m, seen)
		e.Delivered(Delivery{ID: "x"})
		e.Lost()
		e.Samples("x")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
