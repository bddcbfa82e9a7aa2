package sinkadmin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/journal"
)

// skipNext makes a dead letter of the change after a sink's cursor, if it is the one that is named. Another one is
// refused: the cursor would pass changes that the sink did not get.
func (d *Admin) skipNext(ctx context.Context, s journal.Sink, id string) (done control.Skipped, err error) {
	if !s.HasCursor {
		return done, control.Refuse("nothing holds sink %s up: it has not started yet", s.Name)
	}
	next, ok, err := d.next(ctx, s.Cursor)
	if err != nil {
		return done, err
	}
	subject := event.Subject(event.Resource{
		Group: next.Kind.Group, Version: next.Kind.Version, Resource: next.Kind.Resource, Namespace: next.Namespace, Name: next.Name,
	})
	switch {
	case !ok:
		return done, control.Refuse("nothing holds sink %s up: it has everything", s.Name)
	case id == "":
		return done, control.Refuse("no daemon runs that knows what holds sink %s up; the next change that it lacks is %s (%s): tattler sinks skip %s %s skips it",
			s.Name, next.ID, subject, s.Name, next.ID)
	case !strings.HasPrefix(next.ID, id):
		return done, control.Refuse("no daemon runs, and the next change that sink %s lacks is %s (%s), not %s: start tattler run, which finds what holds it up",
			s.Name, next.ID, subject, id)
	}
	letter := journal.DeadLetter{Sink: s.Name, Seq: next.Seq, ID: next.ID, Reason: "skipped while no daemon ran", At: time.Now()}
	_, err = d.Journal.Skip(ctx, letter, next.Seq)
	return control.Skipped{ID: next.ID, Subject: subject}, err
}

// next returns the first change after a cursor, of any kind: a stopped sink's filter is not known.
func (d *Admin) next(ctx context.Context, cursor int64) (next journal.Entry, ok bool, err error) {
	q := journal.Query{After: cursor, Quiet: true, Snapshots: true, OldestFirst: true, Limit: 1}
	for e, err := range d.Reader.Rows(ctx, q) {
		if err != nil {
			return next, false, fmt.Errorf("read the next change: %w", err)
		}
		next, ok = e, true
	}
	return next, ok, nil
}
