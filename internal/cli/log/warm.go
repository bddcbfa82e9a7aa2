package log

import (
	"context"
	"time"

	"github.com/tattler-dev/tattler/internal/journal"
)

// What is read before the first change that is shown, for stories that had begun then: as long as a rollout may take by
// default before it counts as stuck, but not more than a second's work where much changes.
const (
	storyTime    = 10 * time.Minute
	storyChanges = 2000
)

// warmUp plays back changes that are not shown themselves, but begin stories that are.
func (t *telling) warmUp(ctx context.Context, q journal.Query) error {
	if t.nothing() {
		return nil
	}
	q.Quiet = t.noise
	first, err := t.warmFrom(ctx, q)
	if err != nil || first == 0 {
		return err
	}
	q.OldestFirst, q.After = true, first-1
	for e, err := range t.journal.Rows(ctx, q) {
		if err != nil {
			return err
		}
		if !t.warms(q, &e) {
			continue
		}
		c, err := t.journal.Change(ctx, &e)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || !t.labelled(&c) { // what is unreadable was not asked for
			continue
		}
		if err := t.out.Change(c); err != nil {
			return err
		}
	}
	return nil
}

// warmFrom is the number of the change with which the warm-up begins; 0: there is none.
func (t *telling) warmFrom(ctx context.Context, q journal.Query) (first int64, err error) {
	n := 0
	for e, err := range t.journal.Rows(ctx, q) {
		if err != nil {
			return 0, err
		}
		if !t.warms(q, &e) {
			continue
		}
		first = e.Seq
		if n++; n == storyChanges {
			break
		}
	}
	return first, nil
}

// warms reports whether a change belongs to the warm-up: it was not recorded within the time range that is shown.
func (t *telling) warms(q journal.Query, e *journal.Entry) bool {
	late := q.Before == 0 && !e.At.Before(q.Until)
	return !late && t.takes(e)
}
