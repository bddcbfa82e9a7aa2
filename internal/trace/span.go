package trace

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/meta"
)

// Delivery is the end of a change's way to one sink.
type Delivery struct {
	// ID is the event's id, Sink the sink's name.
	ID, Sink string
	// Taken is when the change was first read to be sent, Done when the sink acknowledged it or it was set aside.
	Taken, Done time.Time
	// Attempts is how often it was sent. Failure is the kind of the last error, or empty: see docs/operations.md.
	Attempts int
	Failure  string
	// SetAside says that it became a dead letter. Again says that a user asked to send it again.
	SetAside, Again bool
}

// journaled is a change that was committed.
type journaled struct {
	cluster         string
	op              event.Op
	kind            meta.Kind
	namespace, name string
	manager         string
	seen, committed time.Time
	since, time     time.Time // zero if unknown
}

// record is what a span is made of: a change that was journaled, or a delivery.
type record struct {
	trace [16]byte
	id    string
	*journaled
	delivery *Delivery
}

// request returns the message for a batch.
func (e *Exporter) request(batch []record) *tracepb.TracesData {
	name, version, _ := strings.Cut(e.agent, "/")
	all := map[string]string{"service.name": name, "service.version": version}
	maps.Copy(all, e.resource)
	var a attributes
	for _, key := range slices.Sorted(maps.Keys(all)) {
		a.text(key, all[key])
	}
	spans := make([]*tracepb.Span, len(batch))
	for i := range batch {
		spans[i] = batch[i].encode()
	}
	return &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource:   &resourcepb.Resource{Attributes: a},
		ScopeSpans: []*tracepb.ScopeSpans{{Scope: &commonpb.InstrumentationScope{Name: name, Version: version}, Spans: spans}},
	}}}
}

// encode returns the span of a record.
func (r *record) encode() *tracepb.Span {
	if r.journaled == nil {
		return r.deliver()
	}
	root := r.span("change", tracepb.Span_SPAN_KIND_INTERNAL, r.seen, r.committed)
	root.SpanId, root.ParentSpanId = root.ParentSpanId, nil
	root.Attributes = r.attributes()
	return root
}

// span returns a child of the root, without its own ID.
func (r *record) span(name string, kind tracepb.Span_SpanKind, start, end time.Time) *tracepb.Span {
	root := event.SpanID(r.trace)
	if end.Before(start) { // the clock was set back
		end = start
	}
	const sampled = 1
	return &tracepb.Span{
		TraceId: slices.Clone(r.trace[:]), ParentSpanId: root[:], Name: name, Kind: kind, Flags: sampled,
		StartTimeUnixNano: nanos(start), EndTimeUnixNano: nanos(end),
	}
}

// attributes are those of the root.
func (r *record) attributes() (a attributes) {
	a.text("k8s.cluster.name", r.cluster)
	a.text("k8s.namespace.name", r.namespace)
	a.text("k8s.resource.name", r.kind.GroupResource())
	a.text("tattler.kind", r.kind.Kind)
	a.text("tattler.name", r.name)
	a.text("tattler.op", string(r.op))
	a.text("tattler.id", r.id)
	a.text("tattler.manager", r.manager)
	a.time("tattler.time", r.time)
	a.time("tattler.after", r.since)
	return a
}

// deliver returns the span of a delivery.
func (r *record) deliver() *tracepb.Span {
	d := r.delivery
	s := r.span("deliver", tracepb.Span_SPAN_KIND_PRODUCER, d.Taken, d.Done)
	s.SpanId = deliverID(r.trace, d.Sink, d.Taken)
	outcome := "acknowledged"
	if d.SetAside {
		outcome = "set aside"
		s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: "set aside as a dead letter"}
	}
	var a attributes
	a.text("tattler.sink", d.Sink)
	a.text("tattler.id", d.ID)
	a.text("tattler.outcome", outcome)
	a = append(a, attribute("tattler.attempts", &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: int64(d.Attempts)}}))
	a.text("tattler.failure", d.Failure)
	if d.SetAside {
		a.text("error.type", d.Failure)
	}
	if d.Again {
		a = append(a, attribute("tattler.again", &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: true}}))
	}
	s.Attributes = a
	return s
}

// deliverID returns the ID of the span of a delivery: always the same for the same arguments.
func deliverID(trace [16]byte, sink string, start time.Time) []byte {
	b := append(append(slices.Clone(trace[:]), sink...), 0)
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(b, nanos(start)))
	return sum[:8]
}

// nanos returns a time for OTLP; 0 if it has none.
func nanos(t time.Time) uint64 {
	return uint64(max(0, t.UnixNano())) //nolint:gosec // not negative
}

// attributes are those of a span or a resource. Empty values are left out.
type attributes []*commonpb.KeyValue

func (a *attributes) text(key, value string) {
	if value != "" {
		*a = append(*a, attribute(key, &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: valid(value)}}))
	}
}

func (a *attributes) time(key string, t time.Time) {
	if !t.IsZero() {
		a.text(key, t.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	}
}

func attribute(key string, value *commonpb.AnyValue) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: valid(key), Value: value}
}

// valid makes a text UTF-8, as protobuf requires: otherwise a whole request would fail.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
