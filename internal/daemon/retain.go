package daemon

import (
	"context"
	"time"
)

// retainEvery is how often what is too old is removed.
const retainEvery = time.Minute

// retain keeps the journal within its bounds, until ctx ends. A sink that is further behind than changes
// are kept does not hold them: the disk would fill for one dead receiver.
func (d *daemon) retain(ctx context.Context) {
	last := time.Now()
	tick := time.NewTicker(retainEvery)
	defer tick.Stop()
	kept, err := d.journal.Clock(ctx)
	if err != nil && ctx.Err() == nil {
		d.o.Log.Error("reading the clock of the journal failed", "err", err)
	}
	c := &clock{Clock: kept, age: d.o.Retention.Age}
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			at, err := d.now(ctx, c, now.Sub(last))
			last = now
			if err != nil && ctx.Err() == nil {
				d.o.Log.Error("keeping the clock in the journal failed", "err", err)
			}
			if err := d.shrink(ctx, at); err != nil && ctx.Err() == nil {
				d.o.Log.Error("removing old changes failed", "err", err)
			}
			if err := d.forgetStreams(ctx); err != nil && ctx.Err() == nil {
				d.o.Log.Error("forgetting streams that are watched no more failed", "err", err)
			}
		}
	}
}

// shrink removes what is too old by a clock, and says what that takes from sinks; the journal counts it.
func (d *daemon) shrink(ctx context.Context, now time.Time) error {
	last, err := d.journal.Last(ctx)
	if err != nil {
		return err
	}
	keep, configured := d.o.Retention, map[string]bool{}
	for _, o := range d.o.Sinks {
		if configured[o.Name] = true; o.Snapshots {
			keep.Snapshots = append(keep.Snapshots, o.Name)
		}
	}
	done, err := d.journal.Retain(ctx, now, keep, last)
	d.state.removed(int64(done.Removed)) // also where it failed then
	for _, m := range done.Lost {
		if configured[m.Sink] {
			d.o.Log.Error("a sink was too far behind: changes are removed that it did not get", "sink", m.Sink, "lost", m.Changes)
		}
	}
	return err
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
		d.o.Log.Info("a kind is not watched so any more: what was recorded of it stays",
			"kind", name.GroupResource, "namespace", name.Namespace, "selection", name.Selection)
	}
	return nil
}
