package informer

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// An audit compares a stream's state with a list that is read beside the watch. A watch that never fails can still miss
// changes: if the server's history was replaced and has overtaken our version, or through a bug on either side. The list
// contains only metadata: each object's UID and version must equal the stored ones. If the kind is served in another form
// than when contents were last compared, the audit lists whole objects and replaces those that differ at the same version.

const (
	defaultAuditEvery = 6 * time.Hour
	// maxAuditEvery limits the interval, so that no time overflows.
	maxAuditEvery = 10 * 365 * 24 * time.Hour
	// auditDelay is the minimum wait after a resumption, an outage or a new form: a server that has just recovered is
	// busy. auditSpacing is the time between two such audits of one stream.
	auditDelay   = 10 * time.Second
	auditSpacing = 10 * time.Minute
	// auditRetry is the wait after a failed or inconclusive audit.
	auditRetry = time.Minute
	// auditPatience is how long an audit waits for the watch to reach its list's version. Bookmarks come every minute.
	auditPatience = 3 * time.Minute
)

// auditor audits a stream now and then. Its goroutine runs beside the reflector's. The stream's mu guards all fields but
// wake.
type auditor struct {
	*stream
	wake  chan struct{} // signals a change of the schedule or of the served form
	delay time.Duration // the stream's auditDelay, jittered

	due          time.Time // when an audit after a resumption or an outage is due; zero: not due
	regular      time.Time // when the next regular audit is due
	notBefore    time.Time // no audit before: one ran recently
	contentsFrom time.Time // no audit of contents before: API servers still serve different forms
	fails        int       // consecutive failures

	listed time.Time // when the last complete list began, if it compared all contents
	done   time.Time // when all objects were last compared
	// compared is when the last list or audit began that left all objects as the server had them. It is zero before the
	// first one, even if a state was loaded: earlier runs may have missed changes, too.
	compared time.Time
}

// wakeAudits makes every stream check whether an audit is due.
func (s *Source) wakeAudits() {
	for _, st := range s.streams {
		st.auditor.notify()
	}
}

// notify makes the loop check whether an audit is due.
func (a *auditor) notify() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// want schedules an audit after a resumption or an outage.
func (a *auditor) want() {
	a.mu.Lock()
	if a.due.IsZero() { // an audit that is due must not be delayed by further outages
		a.due = latest(time.Now().Add(a.delay), a.done.Add(auditSpacing))
	}
	a.mu.Unlock()
	a.notify()
}

// markCompared records that the list that ends now has compared all objects.
func (a *auditor) markCompared(began time.Time, mixedFormats bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.due, a.listed, a.done = time.Time{}, began, time.Now()
	a.compared = latest(a.compared, began)
	if mixedFormats {
		a.listed = time.Time{}
	}
}

// start runs the stream's audits beside r until stop is called, which waits for them.
func (a *auditor) start(ctx context.Context, r *reflector.Reflector) (stop func()) {
	every := min(cmp.Or(a.source.cluster.opts.AuditEvery, defaultAuditEvery), maxAuditEvery)
	if every < 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { a.loop(ctx, every, r.Interrupt) })
	return func() {
		cancel()
		running.Wait()
	}
}

// loop runs the audits until ctx ends.
func (a *auditor) loop(ctx context.Context, every time.Duration, interrupt func(error)) {
	for {
		if !a.awaitDue(ctx, every) {
			return
		}
		info, stable := a.audit(ctx)
		if errors.Is(info.Err, reflector.ErrMissed) {
			interrupt(info.Err)
		}
		a.mu.Lock()
		a.status.Audits++
		if a.fails++; info.Err == nil {
			a.due, a.done, a.fails = time.Time{}, time.Now(), 0
		}
		a.notBefore, a.regular = time.Now().Add(jittered(min(auditRetry<<min(a.fails, 10), every))), time.Time{}
		if info.Err == nil && info.Contents {
			a.contentsFrom = stable
		}
		if info.Err != nil {
			a.due = a.notBefore // even if a list should follow: a complete list clears it
		}
		a.mu.Unlock()
		a.hooks().audit(info)
	}
}

// awaitDue waits until an audit is due; it returns false if ctx ends first.
func (a *auditor) awaitDue(ctx context.Context, every time.Duration) bool {
	for {
		at := a.next(every)
		wait := time.NewTimer(time.Until(at))
		select {
		case <-a.wake:
			wait.Stop()
		case <-wait.C:
			if st := a.Status(); st.Synced && st.State == Watching {
				return true
			}
		case <-ctx.Done():
			wait.Stop()
			return false
		}
	}
}

// next returns when an audit is due.
func (a *auditor) next(every time.Duration) time.Time {
	reformed := a.reformed()
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if a.regular.IsZero() {
		a.regular = now.Add(jittered(every))
	}
	at := a.regular
	if !a.due.IsZero() && a.due.Before(at) {
		at = a.due
	}
	if reformed {
		form := a.form()
		if contents := latest(latest(now, form.since.Add(a.delay)), a.contentsFrom); contents.Before(at) {
			at = contents
		}
	}
	if st := a.status; !st.Synced || st.State != Watching { // its next transition wakes the loop
		return now.Add(every)
	}
	return latest(at, a.notBefore)
}

// mayCompare reports whether an audit may compare contents now.
func (a *auditor) mayCompare() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !time.Now().Before(a.contentsFrom)
}

// reformed reports whether the kind is served in another form than when contents were last compared. A form that was
// known to be stable before the last list began is that list's form.
func (a *auditor) reformed() bool {
	form := a.form()
	if a.store.Served() == 0 && form.sum != 0 {
		a.mu.Lock()
		listed := a.listed
		a.mu.Unlock()
		if !listed.IsZero() && !listed.Before(form.stableAt()) {
			a.store.Commit(store.Commit{Served: form.sum, At: time.Now()})
		}
	}
	return form.sum != 0 && form.sum != a.store.Served()
}

// form returns the form in which the stream's kind is served now.
func (a *auditor) form() form {
	return a.source.cluster.forms.get(a.source.served().GroupVersion())
}

// listForm returns the form to record for a list that begins now. While some API servers may still serve the old form, it
// returns the recorded one, so that an audit follows.
func (a *auditor) listForm() uint64 {
	form := a.form()
	if time.Now().Before(form.stableAt()) {
		return a.store.Served()
	}
	return form.sum
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// jittered adds a random delay of up to d, so that streams do not send requests together.
func jittered(d time.Duration) time.Duration { return d + rand.N(d) }

// pause waits; it returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
