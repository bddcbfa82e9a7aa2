package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/journal"
)

const (
	// retainEvery is how often what is too old is removed.
	retainEvery = time.Minute
	// statesEvery is how many times that passes until states are measured again, which reads all of them.
	statesEvery = 10
)

// retain keeps the journal within its bounds, until ctx ends, and makes room as soon as the disk is full. A sink
// that is further behind than changes are kept does not hold them: the disk would fill for one dead receiver.
func (d *daemon) retain(ctx context.Context) {
	kept, err := d.journal.Clock(ctx)
	if err != nil && ctx.Err() == nil {
		d.o.Log.Error("reading the clock of the journal failed", "err", err)
	}
	r := retainer{daemon: d, clock: clock{Clock: kept, age: d.o.Retention.Age}, last: time.Now()}
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
		r.shrink(ctx)
		if n%statesEvery == 0 {
			d.measure(ctx)
		}
		if err := d.forgetStreams(ctx); err != nil && ctx.Err() == nil {
			d.o.Log.Error("forgetting streams that are no longer watched failed", "err", err)
		}
	}
}

// retainer removes old changes, now and then.
type retainer struct {
	*daemon
	clock
	last       time.Time // when it did so
	unreserved bool      // there was no room for the reserve, which was logged
}

// shrink removes what is too old or too much, and logs what that takes from sinks; the journal counts it.
func (r *retainer) shrink(ctx context.Context) {
	now := time.Now()
	at, err := r.now(ctx, now.Sub(r.last))
	r.last = now
	if err != nil && ctx.Err() == nil && !errors.Is(err, journal.ErrFull) {
		r.o.Log.Error("keeping the clock in the journal failed", "err", err)
	}
	newest, err := r.journal.Last(ctx)
	if err == nil {
		err = r.remove(ctx, at, newest)
	}
	if err != nil && ctx.Err() == nil {
		r.o.Log.Error("removing old changes failed", "err", err)
	}
}

// remove removes changes up to the newest.
func (r *retainer) remove(ctx context.Context, at time.Time, newest int64) error {
	keep, configured := r.o.Retention, map[string]bool{}
	for _, o := range r.o.Sinks {
		if configured[o.Name] = true; o.Snapshots {
			keep.Snapshots = append(keep.Snapshots, o.Name)
		}
	}
	done, err := r.journal.Retain(ctx, at, keep, newest)
	r.state.removed(int64(done.Removed)) // also where it failed then
	if done.Full {
		r.o.Log.Error("the disk is full: the oldest changes were removed to go on recording; make it larger, or journal.retain.size smaller",
			"removed", done.Removed, "used", done.Used)
	}
	if done.Unreserved != nil && !r.unreserved {
		r.o.Log.Warn("the disk has no room for the journal's reserve: once it is full, old changes cannot be removed", "err", done.Unreserved)
	}
	r.unreserved = done.Unreserved != nil
	for _, m := range done.Lost {
		if configured[m.Sink] {
			r.o.Log.Error("a sink was too far behind: changes are removed that it did not get", "sink", m.Sink, "lost", m.Changes)
		}
	}
	return err
}

// measure notes what the last states take, and warns when they leave little to the history.
func (d *daemon) measure(ctx context.Context) {
	size, err := d.reader.States(ctx)
	if err != nil {
		if ctx.Err() == nil {
			d.o.Log.Error("measuring the states in the journal failed", "err", err)
		}
		return
	}
	now := control.Journal{States: size, Limit: d.o.Retention.Size}
	if d.state.measured(size); now.Crowded() && !d.crowded {
		d.o.Log.Warn("the last states of what is watched take half of journal.retain.size or more: the history gets what they leave, and a quarter at least",
			"states", size, "limit", now.Limit)
	}
	d.crowded = now.Crowded()
}

// forgetStreams has the journal forget streams that the configuration selects no more: else it kept their
// objects as live for ever. That is done once the start has settled, and from then on now and then, for a
// kind may come back later, and then under another selection. See capture.Watcher.Unselected for what is
// not forgotten. A stream that is selected again after it was forgotten begins with a gap and a first list:
// what exists then is a snapshot, not a change.
func (d *daemon) forgetStreams(ctx context.Context) error {
	w := d.state.watching()
	if w == nil {
		return nil
	}
	all, err := d.journal.Streams(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		name := s.Stream
		if !w.Unselected(name.GroupResource, name.Namespace, name.Selection) {
			continue
		}
		if err := d.journal.Forget(ctx, name); err != nil {
			return err
		}
		d.o.Log.Info("a kind is no longer watched in this way: what was recorded of it stays",
			"kind", name.GroupResource, "namespace", name.Namespace, "selection", name.Selection)
	}
	return nil
}
