package render

import (
	"cmp"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// gone prints an object that was deleted or left the selection; what was folded goes along.
func (t *Text) gone(now time.Time, c change.Change) {
	t.overtaken(now, c)
	o := t.track(c)
	if o.hot != nil && o.hot.count > 0 { // what somebody wrote before it went
		t.hotLine(c.At, o)
	}
	o.hot = nil
	if t.goneQuietly(o, c) {
		t.forget(o)
		return
	}
	if c.Op == event.Deleted && c.Owner != nil && isPod(c.Resource) && !t.o.Flat {
		t.counts.Pending++
		o.ended = podGone(c, o.fold)
		if podReady(c.Before) {
			o.fold.report = report{} // such as that it is stopped
		}
		o.fold.count++
		o.gone, o.fold.last, o.fold.to, o.fold.caught = true, c.At, c.Before, caughtUp(c)
		t.schedule(o)
		return
	}
	absorbed := 0
	f := o.fold
	if f != nil {
		absorbed += f.pending()
	}
	t.counts.Pending -= absorbed
	t.counts.Folded += absorbed
	t.forget(o)

	r := t.row(c, signDeleted)
	switch {
	case c.Op == event.Left:
		r.sign, r.info, r.manager = signLeft, "left the selection", unknown
	default:
		r.info, r.manager = existed(c), unknown
	}
	t.counts.Shown++
	if absorbed > 0 {
		r.count = "(" + plural(absorbed+1, "change") + ")"
	}
	t.begin(r)
	t.printSelected(c)
	t.whole(c.Before)
	if c.Op == event.Deleted && workloads[kindOf(c.Resource)] > 0 && !t.o.Flat {
		t.orphan(c)
	}
}

// purged is said of a change of which nobody knows any more what was before it.
const purged = "what it was before was purged"

func existed(c change.Change) string {
	if c.Blind {
		return purged
	}
	if age, known := lived(c); known {
		return "existed " + Duration(age)
	}
	return ""
}

// lived is how long an object existed that is gone, if both ends are known.
func lived(c change.Change) (age time.Duration, known bool) {
	born := createdAt(c.Before)
	from, gone := c.Span()
	return gone.Sub(born), !born.IsZero() && from.Equal(gone)
}

// orphan begins the story of what a workload leaves behind: the garbage collector deletes it.
func (t *Text) orphan(c change.Change) {
	o := t.track(c)
	o.fold = &fold{orphans: true, last: c.At, from: c.Before, to: c.Before}
	t.schedule(o)
}

// legacy says what became of what an object left behind.
func (t *Text) legacy(o *object) string {
	rest := "what it owned is gone"
	if len(t.family.of(o)) > 0 {
		rest = "what it owned changed"
	}
	return cmp.Or(o.fold.cast.pods(false), rest)
}

// orphansUntil is until when what an object left behind is waited for.
func (t *Text) orphansUntil(o *object) time.Time {
	switch f := o.fold; {
	case len(t.family.of(o)) > 0:
		return f.last.Add(orphanage)
	case len(f.cast.gone) > 0:
		return f.last.Add(calm)
	default:
		return f.last.Add(heirs)
	}
}

// goneQuietly takes the end of an object that needs no line: it is part of a story, or was to be expected.
func (t *Text) goneQuietly(o *object, c change.Change) bool {
	if t.o.Flat || c.Op != event.Deleted || c.Owner == nil {
		return false
	}
	w := t.teller(o)
	if o.fold == nil {
		o.fold = &fold{from: c.Before, to: c.Before}
	}
	pending := o.fold.pending()
	finished := isPod(c.Resource) && podEnded(c.Before) && c.Owner.Kind == "Job" ||
		kindOf(c.Resource) == "Job.batch" && jobEnd(c.Before).kind != "" && c.Owner.Kind == "CronJob"
	switch {
	case w != nil && !(w.fold.orphans && finished && !t.o.Noise):
		t.counts.Pending++
		o.fold.count++
		o.gone, o.fold.last, o.fold.caught = true, c.At, caughtUp(c)
		w.fold.take(o)
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
