package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
)

// A journal that cannot be written loses nothing: what was not committed is dropped, the watcher is stopped, and the
// next one requests everything after the last commit. Only a server that no longer has those versions causes a gap.
//
// A daemon that did not run records an absence. It lasts from the last sign of life in the journal, or from the end
// that a stop has recorded, until every stream is live again. It is a change without an object (absent), with the
// number of changes that were caught up with. If the daemon dies before that, the next one's absence begins where
// this one did.

const (
	// maxRows is about how many changes are written at once. More wait in the feeds, compressed.
	maxRows = 500
	// idleCommit is how long a batch without changes waits for one with changes: it only advances a stream's
	// version, and a crash may lose a little of that.
	idleCommit = time.Second
)

// recorder writes a watcher's batches to the journal.
type recorder struct {
	cluster string // see journal.ClusterKey
	journal *journal.Journal
	state   *state
	// recorded receives the changes that were written, before the journal's readers learn of them.
	recorded func(seq int64, v capture.Version)
	// onMessage receives all other messages; Ready once the earlier batches are written.
	onMessage func(capture.Message)
	traces    *traces

	pending []journal.Batch
	changes [][]capture.Version // of pending; nil for an absence
	rows    int
	flush   []chan<- struct{} // to close once pending is written
	ready   *capture.Ready    // to pass on once pending is written
	broken  bool              // nothing can be written
	written time.Time         // of pending; set for traces
	live    map[journal.Stream]bool

	// absence is written once everything is caught up; nil before an absence and after the write.
	absence *absence
	outages outages
}

// absence is a time in which nothing was recorded, with the changes caught up so far.
type absence struct {
	since time.Time
	event.Absence
	gaps map[journal.Stream]bool
}

// count counts the changes of a batch that are caught up.
func (a *absence) count(b *journal.Batch) {
	for i := range b.Rows {
		switch v := &b.Rows[i]; {
		case v.Rewritten || v.Op == event.Snapshot || v.Op == event.Converted:
		case v.Op == event.Gap:
			a.gaps[b.Stream] = true
		case !v.Since.IsZero():
			a.Changes++
		}
	}
}

// row returns the absence's row in the journal, given its end and the number of collections that still cannot
// be watched.
func (a *absence) row(end time.Time, failing int) journal.Row {
	a.Incomplete = int64(len(a.gaps) + failing)
	c := change.Change{Meta: journal.Meta{Op: event.Absent, Kind: journal.AbsenceKind, Since: a.since, At: end, Time: end, Absence: &a.Absence}}
	c.Judge()
	return journal.Row{Meta: c.Meta}
}

// run writes until messages is closed. If that fails, it calls failed, once, and drops the rest: the watcher
// must be stopped, and another one started, which resumes from the journal.
func (r *recorder) run(ctx context.Context, messages <-chan capture.Message, failed func(error)) {
	r.live = map[journal.Stream]bool{}
	tick := time.NewTicker(idleCommit)
	defer tick.Stop()
	for open := true; open; {
		var due bool
		select {
		case m, ok := <-messages:
			open, due = ok, !ok || r.take(m)
		case now := <-tick.C:
			due = true
			r.absent(r.outages.due(now))
		}
		for more := true; more && open && r.rows < maxRows; { // include what has arrived meanwhile
			select {
			case m, ok := <-messages:
				due = r.take(m) || !ok || due
				open = ok
			default:
				more = false
			}
		}
		if !open {
			r.absent(r.outages.row())
		}
		if !due || r.broken {
			continue // versions alone wait for the tick
		}
		if err := r.write(ctx); err != nil {
			r.broken, r.pending, r.changes = true, nil, nil
			failed(err)
		}
	}
}

// take adds a message to the pending ones, and reports whether to write now.
func (r *recorder) take(m capture.Message) (due bool) {
	switch {
	case m.Batch != nil && r.broken:
	case m.Batch != nil:
		b := batchOf(m.Batch, r.cluster)
		if r.absence != nil {
			r.absence.count(&b)
		} else {
			r.outages.count(time.Now(), &b)
		}
		r.pending, r.changes = append(r.pending, b), append(r.changes, m.Batch.Changes)
		r.rows += len(b.Rows)
		turned := r.live[b.Stream] != b.Head.Live
		r.live[b.Stream] = b.Head.Live
		return turned || len(b.Rows) > 0
	case m.Flush != nil:
		r.flush = append(r.flush, m.Flush)
		return true
	case m.Ready != nil && r.broken:
	case m.Ready != nil:
		if r.absence != nil {
			row := r.absence.row(time.Now(), len(m.Ready.Failing))
			r.absent(&row)
			r.absence, r.outages.ended = nil, row.At
		}
		r.ready = m.Ready
		return true
	case m != (capture.Message{}):
		if m.Away != nil && r.absence == nil { // otherwise the absence covers it
			r.absent(r.outages.observe(m.Away))
		}
		r.onMessage(m)
	}
	return false
}

// absent adds an absence to the pending rows; nil adds nothing.
func (r *recorder) absent(row *journal.Row) {
	if row != nil && !r.broken {
		row.Kind.Cluster = r.cluster
		r.pending, r.changes = append(r.pending, journal.Batch{Rows: []journal.Row{*row}}), append(r.changes, nil)
	}
}

// write commits the pending rows.
func (r *recorder) write(ctx context.Context) error {
	if len(r.pending) > 0 {
		r.state.writes()
		done, err := r.journal.AppendThen(ctx, r.pending, r.pass)
		if r.state.wrote(done, err); err != nil {
			return fmt.Errorf("record changes: %w", err)
		}
		r.trace()
	}
	if r.ready != nil {
		r.onMessage(capture.Message{Ready: r.ready})
		r.ready = nil
	}
	for _, done := range r.flush {
		close(done)
	}
	clear(r.pending)
	clear(r.changes)
	r.pending, r.changes, r.rows, r.flush = r.pending[:0], r.changes[:0], 0, nil
	return nil
}

// pass passes on the changes that were written.
func (r *recorder) pass() {
	if r.traces != nil {
		r.written = time.Now()
	}
	for i, changes := range r.changes {
		for k := range changes {
			if row := &r.pending[i].Rows[k]; row.Seq > 0 {
				changes[k].Form = row.Form // a part of the id
				r.recorded(row.Seq, changes[k])
			}
		}
	}
}

// trace exports the spans of the changes that were written.
func (r *recorder) trace() {
	if r.traces == nil {
		return
	}
	for i := range r.pending {
		for k := range r.pending[i].Rows {
			if row := &r.pending[i].Rows[k]; row.Seq > 0 {
				r.traces.journaled(&row.Meta, r.written)
			}
		}
	}
}

// batchOf returns a batch of a cluster for the journal. The changes then name the cluster, too.
func batchOf(b *capture.Batch, cluster string) journal.Batch {
	if b.Ended {
		return journal.Batch{Stream: streamOf(b.Stream, cluster), Ended: true}
	}
	kind := b.Stream.Resource.ID()
	kind.Cluster = cluster
	out := journal.Batch{
		Stream: streamOf(b.Stream, cluster),
		Head: journal.Head{
			Version: b.Version, Epoch: b.Epoch, Live: b.Live, EverLive: b.EverLive,
			Pipeline: b.Pipeline, Identity: b.Identity, Served: b.Served, At: b.At,
		},
		Rows:       make([]journal.Row, len(b.Changes)),
		ShortNames: b.Stream.Resource.ShortNames,
	}
	if b.Schema != nil {
		out.Schemas = map[journal.Kind][]byte{kind: b.Schema}
	}
	for i := range b.Changes {
		b.Changes[i].Kind.Cluster = cluster
		if in := b.Changes[i].Story; in != nil {
			in.Object.Cluster = cluster
		}
		out.Rows[i] = rowOf(&b.Changes[i])
	}
	return out
}

func rowOf(v *capture.Version) journal.Row {
	if !v.Op.HasObject() && !v.Rewritten { // others were judged by their objects
		v.Judge()
	}
	return journal.Row{Meta: v.Meta, Before: v.BeforeJSON, After: v.AfterJSON, Sum: v.Sum, Rewritten: v.Rewritten, Story: v.Story}
}
