package daemon

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/journal"
)

const (
	// retainEvery is the interval of removing old changes.
	retainEvery = time.Minute
	// statesEvery is the number of these intervals between measurements of the states, which read all of them.
	statesEvery = 10
	// paidEvery is how often the log says at most whose changes the size limit removed.
	paidEvery = time.Hour
)

// retain keeps the journal within its limits until ctx ends, and frees space as soon as the disk is full.
// Changes are not kept for a sink that is too far behind: one dead receiver would fill the disk.
func (d *daemon) retain(ctx context.Context) {
	r := d.retainer
	tick := time.NewTicker(retainEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-d.full:
			r.shrink(ctx)
			continue
		case <-tick.C:
		}
		if n%statesEvery == 0 {
			d.measure(ctx)
		}
		r.shrink(ctx)
		if err := d.forgetStreams(ctx); err != nil && ctx.Err() == nil {
			d.o.Log.Error("forgetting streams that are no longer watched failed", "error", err)
		}
	}
}

// newRetainer returns what keeps the journal within its limits.
func (d *daemon) newRetainer(ctx context.Context) *retainer {
	kept, err := d.journal.Clock(ctx)
	if err != nil && ctx.Err() == nil {
		d.o.Log.Error("reading the journal's clock failed", "error", err)
	}
	return &retainer{daemon: d, clock: clock{Clock: kept, age: d.o.Retention.Age}, last: time.Now()}
}

// retainer removes old changes periodically.
type retainer struct {
	*daemon
	clock
	last       time.Time // when it last did
	unreserved bool      // there was no space for the reserve, which was logged
	paid       time.Time // when it was last logged whose changes the size limit removed
}

// shrink removes changes that exceed the limits, and logs which sinks lose changes; the journal counts them.
func (r *retainer) shrink(ctx context.Context) {
	now := time.Now()
	at, err := r.now(ctx, now.Sub(r.last))
	r.last = now
	if err != nil && ctx.Err() == nil && !errors.Is(err, journal.ErrFull) {
		r.o.Log.Error("storing the clock in the journal failed", "error", err)
	}
	newest, err := r.journal.Last(ctx)
	if err == nil {
		err = r.remove(ctx, at, newest)
	}
	if err != nil && ctx.Err() == nil {
		r.o.Log.Error("removing old changes failed", "error", err)
	}
}

// remove removes changes up to the newest.
func (r *retainer) remove(ctx context.Context, at time.Time, newest int64) error {
	keep, configured := r.o.Retention, map[string]bool{}
	keep.States = r.states
	for _, o := range r.o.Sinks {
		if configured[o.Name] = true; o.Snapshots {
			keep.Snapshots = append(keep.Snapshots, o.Name)
		}
	}
	done, err := r.journal.Retain(ctx, at, keep, newest)
	r.overall.removed(int64(done.Removed)) // even if it failed later
	if done.Full {
		what := "removed the oldest changes"
		if done.Removed == 0 {
			what = "returned unused space of the journal"
		}
		r.o.Log.Error("the disk is full: "+what+" to continue recording; enlarge the disk or reduce journal.retain.size",
			"removed", done.Removed, "used", done.Used)
	}
	r.logPaid(at, &done)
	if done.Unreserved != nil && !r.unreserved {
		r.o.Log.Warn("the disk has no room for the journal's reserve: once it is full, old changes cannot be removed", "error", done.Unreserved)
	}
	r.unreserved = done.Unreserved != nil
	for _, m := range done.Lost {
		if configured[m.Sink] {
			r.o.Log.Error("a sink was too far behind and loses changes to retention", "sink", m.Sink, "lost", m.Changes)
		}
	}
	return err
}

// logPaid logs whose changes went because the journal was too big, at most once in a while.
func (r *retainer) logPaid(at time.Time, done *journal.Retained) {
	if len(done.Paid) == 0 || !r.paid.IsZero() && time.Since(r.paid) < paidEvery {
		return
	}
	r.paid = time.Now()
	level, now := slog.LevelInfo, control.Journal{Cut: done.Cut, Age: int64(r.o.Retention.Age / time.Second)}
	if now.Short(at) {
		level = slog.LevelWarn
	}
	most := done.Paid[0]
	why := "the journal exceeded journal.retain.size"
	if done.Full {
		why = "the disk is full"
	}
	r.o.Log.Log(context.Background(), level, why+": removed the oldest changes of the namespaces that take the most",
		"cluster", most.Cluster, "namespace", cmp.Or(most.Namespace, "(none)"), "removed", most.Changes, "bytes", most.Size, "seen until", done.Cut, "other namespaces", len(done.Paid)-1)
}

// measure records the size of the last states, and warns if they leave little space for the history.
func (d *daemon) measure(ctx context.Context) {
	size, err := d.reader.States(ctx)
	if err != nil {
		if ctx.Err() == nil {
			d.o.Log.Error("measuring the states in the journal failed", "error", err)
		}
		return
	}
	d.states = size
	now := control.Journal{States: size, Limit: d.o.Retention.Size}
	if d.overall.measured(size); now.Crowded() && !d.crowded {
		d.o.Log.Warn("the last states of watched objects take half of journal.retain.size or more: the history gets the rest, at least a quarter",
			"states", size, "limit", now.Limit)
	}
	d.crowded = now.Crowded()
}

// forgetStreams makes the journal drop streams that the configuration no longer selects, whose objects would
// otherwise stay live forever. It runs once the start has settled, and periodically after that, because a kind
// may come back later under another selection. See capture.Watcher.Unselected for the exceptions. A dropped
// stream that is selected again starts with a gap and a first list: its objects are snapshots, not changes.
func (d *daemon) forgetStreams(ctx context.Context) error {
	all, err := d.journal.Streams(ctx)
	if err != nil {
		return err
	}
	for _, r := range d.recordings {
		if err := r.forgetStreams(ctx, all); err != nil {
			return err
		}
	}
	return d.forgetClusters(ctx, all)
}

func (r *recording) forgetStreams(ctx context.Context, all []journal.StreamHead) error {
	w := r.state.watching()
	if w == nil {
		return nil
	}
	for _, s := range all {
		name := s.Stream
		if name.Cluster != r.key || !w.Unselected(name.GroupResource, name.Namespace, name.Selection) {
			continue
		}
		if err := r.journal.Forget(ctx, name); err != nil {
			return err
		}
		r.log.Info("a kind is no longer watched with this selection; its history stays",
			"kind", name.GroupResource, "namespace", name.Namespace, "selection", name.Selection)
	}
	return nil
}
