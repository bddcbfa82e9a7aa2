package daemon

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/trace"
)

// traces connects the recorder and the pumps with an exporter. A nil traces does nothing.
type traces struct {
	*trace.Exporter
	cluster   string // the journal's
	snapshots bool   // a sink gets them
}

func newTraces(e *trace.Exporter, cluster string, sinks []deliver.Options) *traces {
	if e == nil {
		return nil
	}
	snapshots := slices.ContainsFunc(sinks, func(o deliver.Options) bool { return o.Snapshots })
	return &traces{Exporter: e, cluster: cluster, snapshots: snapshots}
}

// journaled exports the spans of a change that was committed. Quiet changes are not delivered, so they have no trace.
// Neither have snapshots that no sink gets: the first list would fill the queue.
func (t *traces) journaled(m *journal.Meta, committed time.Time) {
	if t == nil || m.Quiet || m.Op == event.Snapshot && !t.snapshots {
		return
	}
	t.Journaled(t.cluster, m, committed)
}

// sinkTraces exports the spans of the deliveries to a sink.
type sinkTraces struct {
	*traces
	sink string
}

func (t *sinkTraces) Follows(id string) bool { return t.Samples(id) }

func (t *sinkTraces) Delivered(d deliver.Delivery) {
	t.Exporter.Delivered(trace.Delivery{
		ID: d.ID, Sink: t.sink, Taken: d.Taken, Done: d.Done, Attempts: d.Attempts, Failure: failure(d.Err), SetAside: d.SetAside, Again: d.Again,
	})
}

func (t *sinkTraces) Untraced() { t.Lost() }

// failure returns the kind of an error. The text of an error is not exported: receivers may quote what they got.
func failure(err error) string {
	var permanent *sink.PermanentError
	var long *sink.TooLargeError
	var wait *sink.RetryAfterError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &long):
		return "too large"
	case errors.As(err, &permanent):
		return "refused"
	case errors.As(err, &wait):
		return "retry after"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "failed"
}

// status returns the exporter's state; nil without one.
func (t *traces) status() *control.Traces {
	if t == nil {
		return nil
	}
	s := t.Status()
	return &control.Traces{To: s.To, Exported: s.Exported, Dropped: s.Dropped, Queued: s.Queued, Error: s.Error, ErrorAt: s.ErrorAt}
}
