package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/journal"
)

// Waits between attempts to continue after a failed write to the journal.
const (
	firstWait = time.Second
	lastWait  = 30 * time.Second
)

// capture watches until ctx ends. After a failed write to the journal it starts over, from the journal's state.
func (r *recording) capture(ctx context.Context) error {
	wait, started := firstWait, false
	for ctx.Err() == nil {
		began := time.Now()
		unwritten, err := r.watch(ctx)
		started = started || unwritten != nil
		switch {
		case ctx.Err() != nil: // stopped on request
			if unwritten != nil {
				r.log.Error("the last changes are not recorded; the next start requests them again", "error", unwritten)
			}
			continue
		case !started:
			return err
		}
		r.log.Error("cannot record changes; requesting them again later", "error", errors.Join(unwritten, err), "in", wait)
		_ = r.freeSpace(errors.Join(unwritten, err))
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		if wait = min(2*wait, lastWait); time.Since(began) > 2*lastWait {
			wait = firstWait
		}
	}
	return nil
}

// freeSpace makes retention free space if an error is that the disk is full, and reports whether it is.
func (r *recording) freeSpace(err error) (full bool) {
	if !errors.Is(err, journal.ErrFull) {
		return false
	}
	select {
	case r.full <- struct{}{}:
	default: // retention is already pending
	}
	return true
}

// watch records the batches of one watcher. unwritten is why the journal could not be written, which ended the
// watcher; err is why there is nothing to watch.
func (r *recording) watch(ctx context.Context) (unwritten, err error) {
	config, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	k, err := newKept(ctx, r.journal, r.key, r.log)
	if err != nil {
		return nil, err
	}
	w, err := capture.New(capture.Options{
		Config: config, Scopes: r.Scopes, Redactor: r.redactor, Quiet: r.rules, Kept: k, Audited: r.audited,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.state.watches(w, config)
	rec := &recorder{cluster: r.key, journal: r.journal, state: &r.state, recorded: r.stores.recorded, onMessage: r.onMessage, traces: r.traces}
	if rec.absence, err = r.absent(ctx); err != nil {
		return nil, err
	}
	var recording sync.WaitGroup
	recording.Go(func() {
		// Batches from before the end are written, too.
		rec.run(context.WithoutCancel(ctx), w.Messages(), func(err error) {
			unwritten = err
			cancel()
		})
	})
	err = w.Run(ctx)
	recording.Wait()
	r.state.ended(unwritten, err)
	if unwritten == nil {
		since := time.Now()
		if !rec.outages.open.IsZero() { // nothing has been recorded since then
			since = rec.outages.open
		}
		if noteErr := r.journal.NoteAbsent(context.WithoutCancel(ctx), r.key, since); noteErr != nil {
			r.log.Warn("cannot store the end of recording: the next absence will seem longer", "error", noteErr)
		}
	}
	return unwritten, err
}

// absent returns the time up to now in which nothing was recorded; nil in a new journal.
func (r *recording) absent(ctx context.Context) (*absence, error) {
	since, err := r.journal.AbsentSince(ctx, r.key)
	if err != nil || since.IsZero() {
		return nil, err
	}
	reason := event.AbsenceStopped
	switch {
	case r.state.hasSettled():
		reason = event.AbsenceUnwritten
	case r.state.hasFailed() && since.After(r.overall.started):
		reason = event.AbsenceUnreachable
	}
	return &absence{since: since, Absence: event.Absence{Reason: reason}, gaps: map[journal.Stream]bool{}}, nil
}

// audited counts an audit, and logs its finding.
func (r *recording) audited(info informer.AuditInfo) {
	resource, log := info.Stream.Resource.GroupResource().String(), r.log
	switch log = log.With("resource", resource, "namespace", info.Stream.Namespace); {
	case errors.Is(info.Err, informer.ErrMissed):
		log.Warn("an audit found changes that the watch had missed: listing again, and recording the net changes after a gap")
	case info.Err != nil:
		log.Debug("an audit was inconclusive and will be repeated", "error", info.Err)
	}
	r.state.audited(resource, info)
}

func (r *recording) onMessage(m capture.Message) {
	r.state.observe(m)
	if m.Problem != nil {
		r.log.Warn("watch", "problem", m.Problem)
	}
	if r.OnMessage != nil {
		r.OnMessage(m)
	}
}
