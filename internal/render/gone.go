package render

import (
	"cmp"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// gone prints an object that was deleted or left the selection, and counts its folded changes.
func (t *Text) gone(now time.Time, c change.Change) {
	t.flushFailure(now, c)
	o := t.track(c)
	if o.hot != nil && o.hot.count > 0 { // writes before the deletion
		t.hotLine(c.At, o)
	}
	o.hot = nil
	if t.absorbDeletion(o, c) {
		t.forget(o)
		return
	}
	if c.Op == event.Deleted && c.Owner != nil && isPod(c.Kind) && !t.o.Flat {
		t.counts.Pending++
		o.ended = podGone(c, o.fold)
		if podReady(c.Before) {
			o.fold.report = report{} // such as Killing
		}
		o.fold.count++
		o.fold.changes.add(c.Seq)
		o.gone, o.fold.last, o.fold.to, o.fold.lateSpan = true, c.At, c.Before, lateSpanOf(c)
		t.schedule(o)
		return
	}
	absorbed := 0
	var changes numbers
	f := o.fold
	if f != nil {
		absorbed += f.pending()
		changes = f.pendingNumbers()
	}
	t.counts.Pending -= absorbed
	t.counts.Folded += absorbed
	t.forget(o)

	r := t.row(c, signDeleted)
	r.changes.add(changes...)
	switch {
	case c.Op == event.Left:
		r.sign, r.info, r.manager = signLeft, "left the selection", crossedBy(c)
	default:
		r.info, r.manager = existedFor(c), unknown
	}
	t.counts.Shown++
	if absorbed > 0 {
		r.count = "(" + plural(absorbed+1, "change") + ")"
	}
	t.begin(r)
	t.printSelected(c)
	t.whole(c.Before)
	if c.Op == event.Deleted && workloads[c.Kind.GroupKind()] > 0 && !t.o.Flat {
		t.trackOrphans(c)
	}
}

// unknownBefore describes a change whose previous state was purged from the journal.
const unknownBefore = "the previous state was purged"

func existedFor(c change.Change) string {
	if c.Blind {
		return unknownBefore
	}
	if age, known := lifetime(c); known {
		return "existed " + Duration(age)
	}
	return ""
}

// lifetime returns how long a deleted object existed, if both ends are known.
func lifetime(c change.Change) (age time.Duration, known bool) {
	created := createdAt(c.Before)
	from, gone := c.Span()
	return gone.Sub(created), !created.IsZero() && from.Equal(gone)
}

// trackOrphans begins the story of a deleted workload's objects, which the garbage collector deletes.
func (t *Text) trackOrphans(c change.Change) {
	o := t.track(c)
	o.fold = &fold{orphans: true, last: c.At, from: c.Before, to: c.Before}
	t.schedule(o)
}

// orphanSummary describes what happened to a deleted workload's objects.
func (t *Text) orphanSummary(o *object) string {
	rest := "owned objects are gone"
	if len(t.family.of(o)) > 0 {
		rest = "owned objects changed"
	}
	return cmp.Or(o.fold.members.pods(false), rest)
}

// orphanDeadline returns until when a deleted workload's objects are waited for.
func (t *Text) orphanDeadline(o *object) time.Time {
	switch f := o.fold; {
	case len(t.family.of(o)) > 0:
		return f.last.Add(orphanWait)
	case len(f.members.gone) > 0:
		return f.last.Add(idleDelay)
	default:
		return f.last.Add(firstOrphanWait)
	}
}

// absorbDeletion handles a deletion that needs no line: it is part of a story, or was expected.
func (t *Text) absorbDeletion(o *object, c change.Change) bool {
	if t.o.Flat || c.Op != event.Deleted || c.Owner == nil {
		return false
	}
	w := t.storyOwner(o)
	if o.fold == nil {
		o.fold = &fold{from: c.Before, to: c.Before}
	}
	pending := o.fold.pending()
	finished := isPod(c.Kind) && podEnded(c.Before) && c.Owner.Kind == "Job" ||
		c.Kind.GroupKind() == "Job.batch" && jobEnd(c.Before).kind != "" && c.Owner.Kind == "CronJob"
	switch {
	case w != nil && !(w.fold.orphans && finished && !t.o.Noise):
		t.counts.Pending++
		o.fold.count++
		o.fold.changes.add(c.Seq)
		o.gone, o.fold.last, o.fold.lateSpan = true, c.At, lateSpanOf(c)
		w.fold.absorb(o)
		t.forget(o)
		t.schedule(w)
		return true
	case t.o.Noise:
		return false
	case o.replaced, finished && pending == 0:
		t.counts.Pending -= pending
		t.counts.Quiet += pending + 1
		return true
	}
	return false
}
