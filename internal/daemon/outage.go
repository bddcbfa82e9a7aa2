package daemon

import (
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/journal"
)

// An outage of the API server of 5 s or more, from the last sign of life to its return, is an absence with the reason
// "unreachable": a restart is one, a reconnect is not. It is written 2 s after the last change that was caught up
// with, so that it can count them. A daemon that is stopped meanwhile records one absence for both. One that is
// killed within these seconds loses it.

const (
	// minOutage is how long the API server must be unreachable to count as an absence. A reconnect takes less,
	// a restart of the server more.
	minOutage = 5 * time.Second
	// caughtUp is how long no old change may arrive before an absence counts as caught up.
	caughtUp = 2 * time.Second
	// lateKept is how long late changes are remembered: an outage may be noticed after it is over.
	lateKept = time.Minute
)

// outages turns outages of the API server into absences.
type outages struct {
	open  time.Time // when the server went away; zero if it is there
	over  *absence  // an absence that has ended, while its changes may still arrive
	until time.Time // its end
	ended time.Time // the end of the last absence
	late  []late
}

// late counts changes that arrived within a second and may have happened long before.
type late struct {
	at      time.Time
	changes int64
	gaps    map[journal.Stream]bool
}

// observe takes the watcher's report about the API server. It returns an absence that another one follows at
// once.
func (o *outages) observe(a *capture.Away) *journal.Row {
	since := a.Since
	if since.Before(o.ended) {
		since = o.ended
	}
	if a.Until.IsZero() {
		o.open = since
		return nil
	}
	o.open = time.Time{}
	if a.Until.Sub(since) < minOutage {
		return nil
	}
	before := o.row()
	if before != nil && since.Before(o.ended) {
		since = o.ended
	}
	reason := event.AbsenceUnreachable
	if a.Paused {
		reason = event.AbsenceStopped
	}
	o.over, o.until = &absence{since: since, Absence: event.Absence{Reason: reason}, gaps: map[journal.Stream]bool{}}, a.Until
	return before
}

// count records changes that may have happened long before they were seen.
func (o *outages) count(now time.Time, b *journal.Batch) {
	n := &absence{gaps: map[journal.Stream]bool{}}
	if n.count(b); n.Changes == 0 && len(n.gaps) == 0 {
		return
	}
	if last := len(o.late) - 1; last < 0 || now.Sub(o.late[last].at) >= time.Second {
		o.late = append(o.late, late{at: now, gaps: map[journal.Stream]bool{}})
	}
	l := &o.late[len(o.late)-1]
	l.changes += n.Changes
	for stream := range n.gaps {
		l.gaps[stream] = true
	}
}

// due returns the absence that is over, if none of its changes has arrived for a while.
func (o *outages) due(now time.Time) *journal.Row {
	if o.over == nil && o.open.IsZero() {
		for len(o.late) > 0 && now.Sub(o.late[0].at) > lateKept {
			o.late = o.late[1:]
		}
		return nil
	}
	last := o.until
	if n := len(o.late); n > 0 && o.late[n-1].at.After(last) {
		last = o.late[n-1].at
	}
	if o.over == nil || now.Sub(last) < caughtUp {
		return nil
	}
	return o.row()
}

// row returns the absence that is over, in its current state, or nil.
func (o *outages) row() *journal.Row {
	if o.over == nil {
		return nil
	}
	a := o.over
	for _, l := range o.late {
		if l.at.Before(a.since) {
			continue
		}
		a.Changes += l.changes
		for stream := range l.gaps {
			a.gaps[stream] = true
		}
	}
	row := a.row(o.until, 0)
	o.over, o.late, o.ended = nil, nil, o.until
	return &row
}
