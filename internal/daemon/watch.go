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

// Waits between attempts to go on after the journal could not be written.
const (
	firstWait = time.Second
	lastWait  = 30 * time.Second
)

// capture watches until ctx ends. After the journal could not be written it watches anew, from what
// is written.
func (d *daemon) capture(ctx context.Context) error {
	wait, started := firstWait, false
	for ctx.Err() == nil {
		began := time.Now()
		unwritten, err := d.watch(ctx)
		started = started || unwritten != nil
		switch {
		case ctx.Err() != nil: // the end on request
			if unwritten != nil {
				d.o.Log.Error("the last changes are not recorded; the next start asks for them again", "err", unwritten)
			}
			continue
		case !started:
			return err
		}
		d.o.Log.Error("changes cannot be recorded; they will be asked for again", "err", errors.Join(unwritten, err), "in", wait)
		if errors.Is(unwritten, journal.ErrFull) {
			select {
			case d.full <- struct{}{}:
			default: // retention knows already
			}
		}
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

// watch records what one watcher tells. Unwritten is why the journal could not be written, which ended
// it; err why there is nothing to watch.
func (d *daemon) watch(ctx context.Context) (unwritten, err error) {
	k, err := newKept(ctx, d.journal, d.o.Log)
	if err != nil {
		return nil, err
	}
	w, err := capture.New(capture.Options{
		Config: d.o.Config, Scopes: d.o.Scopes, Redactor: d.redactor, Quiet: d.rules, Kept: k, Audited: d.audited,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.state.watches(w)
	rec := &recorder{journal: d.journal, state: &d.state, tell: d.tell}
	if rec.absence, err = d.absent(ctx); err != nil {
		return nil, err
	}
	var recording sync.WaitGroup
	recording.Go(func() {
		// What came before the end is written, too.
		rec.run(context.WithoutCancel(ctx), w.Messages(), func(err error) {
			unwritten = err
			cancel()
		})
	})
	err = w.Run(ctx)
	recording.Wait()
	d.state.ended(unwritten, err)
	if unwritten == nil {
		since := time.Now()
		if !rec.outages.open.IsZero() { // nothing was recorded since then
			since = rec.outages.open
		}
		if noteErr := d.journal.NoteAbsent(context.WithoutCancel(ctx), since); noteErr != nil {
			d.o.Log.Warn("the end of recording cannot be noted: the next absence seems longer", "err", noteErr)
		}
	}
	return unwritten, err
}

// absent is the time up to now in which nothing was recorded; nil in a new journal.
func (d *daemon) absent(ctx context.Context) (*absence, error) {
	since, err := d.journal.AbsentSince(ctx)
	if err != nil || since.IsZero() {
		return nil, err
	}
	reason := event.AbsenceStopped
	if d.state.hasSettled() {
		reason = event.AbsenceUnwritten
	}
	return &absence{since: since, Absence: event.Absence{Reason: reason}, gaps: map[journal.Stream]bool{}}, nil
}

// audited counts an audit, and logs what it found.
func (d *daemon) audited(info informer.AuditInfo) {
	resource, log := info.Stream.Resource.GroupResource().String(), d.o.Log
	switch log = log.With("resource", resource, "namespace", info.Stream.Namespace); {
	case errors.Is(info.Err, informer.ErrMissed):
		log.Warn("an audit found changes that the watch had not shown: everything is listed, and the net change recorded behind a gap")
	case info.Err != nil:
		log.Debug("an audit could not decide and is repeated", "err", info.Err)
	}
	d.state.audited(resource, info)
}

func (d *daemon) tell(m capture.Message) {
	d.state.hear(m)
	if m.Problem != nil {
		d.o.Log.Warn("watch", "problem", m.Problem)
	}
	if d.o.Tell != nil {
		d.o.Tell(m)
	}
}
