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

// An audit compares a stream's state with a list that is read beside the watch. A watch that never fails
// can still miss changes: the server's history was replaced and has overtaken our version, or one of us has
// a defect. The list has nothing but metadata: UID and version of each object must be what is stored. Where
// the kind is served in another form than when contents were compared last, the audit lists whole objects
// and replaces those that differ at the same version.

const (
	defaultAuditEvery = 6 * time.Hour
	// maxAuditEvery bounds the interval, so that no time overflows.
	maxAuditEvery = 10 * 365 * 24 * time.Hour
	// auditDelay is the wait after a resumption, an outage or a new form, at least: a server that comes back
	// has other things to do. auditSpacing is the time between two such audits of one stream.
	auditDelay   = 10 * time.Second
	auditSpacing = 10 * time.Minute
	// auditRetry is the wait after an audit that failed or could not decide.
	auditRetry = time.Minute
	// auditPatience is how long an audit waits for the watch to reach its list's version. Bookmarks come
	// every minute.
	auditPatience = 3 * time.Minute
)

// auditing is what a stream knows of its audits. The stream's mu guards all but wake.
type auditing struct {
	wake  chan struct{} // holds a token where something of what follows, or the served form, has changed
	delay time.Duration // the stream's own auditDelay

	due          time.Time // when an audit is wanted after a resumption or an outage; zero: it is not
	regular      time.Time // when the next one comes anyway
	notBefore    time.Time // before that, none: there was one not long ago
	contentsFrom time.Time // before that, none compares contents: API servers serve different forms
	fails        int       // audits in a row that failed

	listed time.Time // when the last completed list began, if it compared all contents
	done   time.Time // when everything was compared last
}

// wakeAudits has every stream look whether an audit is due.
func (s *Source) wakeAudits() {
	for _, st := range s.streams {
		st.wakeAudit()
	}
}

func (s *stream) wakeAudit() {
	select {
	case s.auditing.wake <- struct{}{}:
	default:
	}
}

// wantAudit asks for an audit after a resumption or an outage.
func (s *stream) wantAudit() {
	s.mu.Lock()
	if a := &s.auditing; a.due.IsZero() { // else one is due already: what comes and goes must not put it off
		a.due = latest(time.Now().Add(a.delay), a.done.Add(auditSpacing))
	}
	s.mu.Unlock()
	s.wakeAudit()
}

// compared notes that the list that ends now has compared everything.
func (s *stream) markCompared() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.auditing.due, s.auditing.listed, s.auditing.done = time.Time{}, s.began, time.Now()
	if s.mixedFormats {
		s.auditing.listed = time.Time{}
	}
}

// startAudits runs the stream's audits beside r until stop is called, which waits for them.
func (s *stream) startAudits(ctx context.Context, r *reflector.Reflector) (stop func()) {
	every := min(cmp.Or(s.source.cluster.opts.AuditEvery, defaultAuditEvery), maxAuditEvery)
	if every < 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.audits(ctx, every, r.Interrupt) })
	return func() {
		cancel()
		running.Wait()
	}
}

// audits runs the stream's audits until ctx ends.
func (s *stream) audits(ctx context.Context, every time.Duration, interrupt func(error)) {
	for {
		if !s.awaitAudit(ctx, every) {
			return
		}
		info, settled := s.audit(ctx)
		if errors.Is(info.Err, reflector.ErrMissed) {
			interrupt(info.Err)
		}
		s.mu.Lock()
		s.status.Audits++
		a := &s.auditing
		if a.fails++; info.Err == nil {
			a.due, a.done, a.fails = time.Time{}, time.Now(), 0
		}
		a.notBefore, a.regular = time.Now().Add(jittered(min(auditRetry<<min(a.fails, 10), every))), time.Time{}
		if info.Err == nil && info.Contents {
			a.contentsFrom = settled
		}
		if info.Err != nil {
			a.due = a.notBefore // also where a list should follow: it says when it is complete
		}
		s.mu.Unlock()
		s.hooks().audit(info)
	}
}

// awaitAudit waits until an audit is due; it returns false when ctx ends.
func (s *stream) awaitAudit(ctx context.Context, every time.Duration) bool {
	for {
		at := s.nextAudit(every)
		wait := time.NewTimer(time.Until(at))
		select {
		case <-s.auditing.wake:
			wait.Stop()
		case <-wait.C:
			if st := s.Status(); st.Synced && st.State == Watching {
				return true
			}
		case <-ctx.Done():
			wait.Stop()
			return false
		}
	}
}

// nextAudit returns when an audit is due.
func (s *stream) nextAudit(every time.Duration) time.Time {
	reformed := s.reformed()
	s.mu.Lock()
	defer s.mu.Unlock()
	a, now := &s.auditing, time.Now()
	if a.regular.IsZero() {
		a.regular = now.Add(jittered(every))
	}
	at := a.regular
	if !a.due.IsZero() && a.due.Before(at) {
		at = a.due
	}
	if reformed {
		form := s.form()
		if contents := latest(latest(now, form.since.Add(a.delay)), a.contentsFrom); contents.Before(at) {
			at = contents
		}
	}
	if st := s.status; !st.Synced || st.State != Watching { // its next transition wakes us up
		return now.Add(every)
	}
	return latest(at, a.notBefore)
}

// mayCompare reports whether an audit may compare contents now.
func (s *stream) mayCompare() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !time.Now().Before(s.auditing.contentsFrom)
}

// reformed reports whether the kind is served in another form than when contents were compared last. A
// form that was asked for before the last list began is that list's.
func (s *stream) reformed() bool {
	form := s.form()
	if s.store.Served() == 0 && form.sum != 0 {
		s.mu.Lock()
		listed := s.auditing.listed
		s.mu.Unlock()
		if !listed.IsZero() && !listed.Before(form.stableAt()) {
			s.store.Commit(store.Commit{Served: form.sum, At: time.Now()})
		}
	}
	return form.sum != 0 && form.sum != s.store.Served()
}

// form is the form in which the stream's kind is served now.
func (s *stream) form() form {
	return s.source.cluster.forms.get(s.source.served().GroupVersion())
}

// listForm is what a list that begins now leaves as the form in which the kind was served. While not all
// API servers may serve the new form, it stays the old one, so that an audit follows.
func (s *stream) listForm() uint64 {
	form := s.form()
	if time.Now().Before(form.stableAt()) {
		return s.store.Served()
	}
	return form.sum
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// jittered adds up to as much again, so that streams do not ask together.
func jittered(d time.Duration) time.Duration { return d + rand.N(d) }

// pause waits; it returns false when ctx ends.
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
