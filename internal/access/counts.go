package access

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/journal"
)

// Counter counts changes without reading them: *journal.Reader.
type Counter interface {
	Counts(ctx context.Context, q journal.Query, step time.Duration) ([]journal.Series, error)
}

// errNoCounts is an error of the program.
var errNoCounts = errors.New("the journal cannot count changes")

// Counts returns the series that the viewer may see: see journal.Reader.Counts. As in Rows, a gap of a whole kind counts
// for viewers of the kind in all namespaces. The Journal must be a Counter.
func (s *Source) Counts(ctx context.Context, q journal.Query, step time.Duration) ([]journal.Series, error) {
	if _, err := May(ctx, nil); err != nil {
		return nil, err
	}
	counter, ok := s.Journal.(Counter)
	if !ok {
		return nil, errNoCounts
	}
	all, err := counter.Counts(ctx, q, step)
	if err != nil {
		return nil, err
	}
	c := newChecker(ctx)
	for i := range all {
		if all[i].Op != event.Absent {
			c.want(TargetOf(all[i].Kind, all[i].Namespace))
		}
	}
	if err := c.decide(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(s journal.Series) bool {
		return s.Op != event.Absent && !c.known[TargetOf(s.Kind, s.Namespace)]
	}), nil
}
