// Package trace exports an OpenTelemetry trace of each change over OTLP: seen, journaled, delivered.
//
// A change has one trace, whose ID is that of event.TraceID, so that deliveries after a restart, replays and consumers join
// it. Spans have identities, times and counts. They have neither the fields of objects nor texts that may contain them, such
// as the answer of a receiver.
//
// Spans are optional: an Exporter that cannot keep up, or whose receiver is away, drops and counts them. It never delays the
// caller.
package trace

import (
	"context"
	"encoding/binary"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/meta"
	"github.com/tattler-dev/tattler/internal/sink/otlp"
)

// Exporter sends spans to one receiver. A nil Exporter drops everything at no cost. All methods may be called concurrently.
type Exporter struct {
	client    client
	agent     string
	resource  map[string]string
	threshold uint64 // see sampled
	log       *slog.Logger
	flush     time.Duration // bounds what Run does after its context has ended

	mu     sync.Mutex
	queue  []record      // each becomes a span
	status Status        // its Queued are those that are being sent
	wake   chan struct{} // receives an element when the queue has grown

	// The goroutine of Run has the fields below.
	logged   time.Time // when the last warning was logged
	reported int64     // dropped spans that were logged
	warned   bool      // and no success was logged since
}

// client is an otlp.Client, or that of a test.
type client interface {
	Export(ctx context.Context, request proto.Message) (rejected int64, said string, err error)
	Close()
	String() string
}

// Status is the state of an Exporter. Counters start with the process.
type Status struct {
	// To is the receiver's address without credentials.
	To string
	// Exported counts spans that the receiver took, Dropped those that it will never get; Queued are waiting, or being sent.
	Exported, Dropped int64
	Queued            int
	// Error is why nothing can be exported now, or empty; ErrorAt is when that happened last.
	Error   string
	ErrorAt time.Time
}

const (
	// maxQueued bounds the spans in memory that are not being sent.
	maxQueued = 8192
	// maxBatch is the maximum number of spans in a request.
	maxBatch = 512
)

// New returns an exporter. It reads the TLS files, and connects when Run has something to send. The agent, such as
// tattler/v1.2.3, is the User-Agent and the scope of the spans.
func New(agent string, o Options, log *slog.Logger) (*Exporter, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	c, err := otlp.NewClient(agent, o.client())
	if err != nil {
		return nil, err
	}
	return newExporter(c, agent, o, log), nil
}

func newExporter(c client, agent string, o Options, log *slog.Logger) *Exporter {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Exporter{
		client: c, agent: agent, resource: o.Resource, log: log, wake: make(chan struct{}, 1), status: Status{To: c.String()},
		flush:     flushTime,
		threshold: uint64(math.Round((1 - o.Sample) * randomness)),
	}
}

// randomness is the number of values that sampled distinguishes.
const randomness = 1 << 56

// sampled reports whether a trace is exported. As OpenTelemetry's consistent probability sampling defines it, the last 7 bytes
// of the ID decide, so that each daemon, and each run of it, takes the same traces.
func (e *Exporter) sampled(id [16]byte) bool {
	return binary.BigEndian.Uint64(id[8:])&(randomness-1) >= e.threshold
}

// Journaled adds the root span of a change that was committed to the journal. The cluster is the journal's.
func (e *Exporter) Journaled(cluster string, m *meta.Meta, committed time.Time) {
	if e == nil {
		return
	}
	id := m.ID(cluster)
	trace, err := event.TraceID(id)
	if err != nil || !e.sampled(trace) {
		return
	}
	j := &journaled{
		cluster: m.Kind.ClusterOr(cluster), op: m.Op, kind: m.Kind, manager: strings.Clone(m.Manager),
		namespace: strings.Clone(m.Namespace), name: strings.Clone(m.Name), seen: m.At, since: m.Since, committed: committed,
	}
	if m.Dated() {
		j.time = m.Time
	}
	e.add(record{trace: trace, id: id, journaled: j})
}

// Delivered adds the span of a delivery.
func (e *Exporter) Delivered(d Delivery) {
	if e == nil {
		return
	}
	trace, err := event.TraceID(d.ID)
	if err != nil || !e.sampled(trace) {
		return
	}
	own := d // allocated only here
	e.add(record{trace: trace, id: d.ID, delivery: &own})
}

// Samples reports whether the spans of an event are exported.
func (e *Exporter) Samples(id string) bool {
	if e == nil {
		return false
	}
	trace, err := event.TraceID(id)
	return err == nil && e.sampled(trace)
}

// Lost counts a span that the caller could not keep, of an event that is sampled.
func (e *Exporter) Lost() {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status.Dropped++
}

func (e *Exporter) add(r record) {
	e.mu.Lock()
	if len(e.queue) < maxQueued {
		e.queue = append(e.queue, r)
	} else {
		e.status.Dropped++
	}
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// Status returns the exporter's state.
func (e *Exporter) Status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.status
	s.Queued += len(e.queue)
	return s
}

// Probe exports a request without spans.
func (e *Exporter) Probe(ctx context.Context) error {
	_, _, err := e.client.Export(ctx, &tracepb.TracesData{})
	return err
}

// String returns the receiver's address without credentials.
func (e *Exporter) String() string { return e.client.String() }

// Close frees the connections of an exporter that Run does not get to close.
func (e *Exporter) Close() { e.client.Close() }
