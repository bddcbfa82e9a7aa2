package log

import (
	"context"
	"errors"
	"time"

	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
)

// How much is read before the first shown change, for stories that began earlier: the time that a rollout may take by
// default before it counts as stuck, but no more than a second's work if much changes.
const (
	storyTime    = 10 * time.Minute
	storyChanges = 2000
)

// warmUp plays back changes that are not shown, but begin shown stories.
func (t *lister) warmUp(ctx context.Context, q journal.Query) error {
	first, err := t.warmFrom(ctx, q)
	if err != nil || first == 0 {
		return err
	}
	q.OldestFirst, q.After = true, first-1
	for e, err := range t.journal.Rows(ctx, q) {
		if err != nil {
			return err
		}
		if !t.inWarmUp(q, &e) {
			continue
		}
		c, err := t.journal.Change(ctx, &e)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, journal.ErrNotFound), history.Damaged(err): // it was not requested
			continue
		case err != nil:
			return err
		case !t.MatchesLabels(&c):
			continue
		}
		if err := t.out.Change(c); err != nil {
			return err
		}
	}
	return nil
}

// warmFrom returns the number of the first change of the warm-up; 0 if it has none.
func (t *lister) warmFrom(ctx context.Context, q journal.Query) (first int64, err error) {
	n := 0
	for e, err := range t.journal.Rows(ctx, q) {
		if err != nil {
			return 0, err
		}
		if !t.inWarmUp(q, &e) {
			continue
		}
		first = e.Seq
		if n++; n == storyChanges {
			break
		}
	}
	return first, nil
}

// inWarmUp reports whether a change belongs to the warm-up: it was not recorded within the shown time range.
func (t *lister) inWarmUp(q journal.Query, e *journal.Entry) bool {
	late := q.Before == 0 && !e.At.Before(q.Until)
	return !late && t.selects(e)
}
