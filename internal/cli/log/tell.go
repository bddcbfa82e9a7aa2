package log

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
)

// telling is one run of the verb.
type telling struct {
	o       *Options
	journal *past.Journal
	*selection
	out printer

	last    int64 // sequence number up to which everything was looked at
	shown   int
	quiet   int // not shown for that; maxQuiet stands for as many or more
	damaged int
}

// maxQuiet is how many quiet changes are counted: where most are, counting is what takes time.
const maxQuiet = 5000

// pollEvery is how often a journal is asked whether it has more: soon enough for who watches, and a read
// of one row.
const pollEvery = 250 * time.Millisecond

// run tells until all is told, or ctx ends.
func (t *telling) run(ctx context.Context) error {
	err := t.tell(ctx)
	if err != nil && ctx.Err() == nil {
		return err
	}
	if err := t.out.Flush(t.end()); err != nil {
		return err
	}
	if err := t.sumUp(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if t.damaged > 0 {
		return fmt.Errorf("%s cannot be shown; tattler journal verify looks for all damage", count(t.damaged, "change"))
	}
	return nil
}

// end is the time up to which the journal was asked about.
func (t *telling) end() time.Time {
	now := t.o.Now()
	if until := t.query.Until; !until.IsZero() && until.Before(now) {
		return until
	}
	return now
}

func (t *telling) tell(ctx context.Context) error {
	types, err := t.journal.Types(ctx, t.o.Types)
	if err != nil {
		return err
	}
	t.resolve(types)
	for _, word := range types.Unknown {
		unknown := t.journal.Explain(ctx, word)
		if !t.o.Follow {
			return unknown
		}
		fmt.Fprintf(t.o.IO.Err, "%s\n", terminal.Line(unknown.Error())) // so far
	}
	if t.last, err = t.journal.Last(ctx); err != nil {
		return err
	}
	if t.o.Follow {
		ended, err := t.ended(ctx)
		if err != nil {
			return err
		}
		if ended != "" {
			fmt.Fprintf(t.o.IO.Err, "%s, and goes on once tattler run starts\n", ended)
		}
	}
	if err := t.tellPast(ctx); err != nil || !t.o.Follow {
		return err
	}
	return t.follow(ctx)
}

// tellPast shows what is in the journal.
func (t *telling) tellPast(ctx context.Context) error {
	folds := t.o.folds(t.selection)
	switch since := t.query.Since; {
	case t.o.Limit > 0 && folds:
		return t.lastStories(ctx)
	case t.o.Limit > 0:
		return t.lastChanges(ctx)
	case folds && !since.IsZero():
		t.out.(*folding).gate.from = since
		q := t.query
		q.Since, q.Until = since.Add(-storyTime), since
		if err := t.warmUp(ctx, q); err != nil {
			return err
		}
	}
	return t.tellAll(ctx, 0)
}

// play shows changes, given by their sequence numbers.
func (t *telling) play(ctx context.Context, seqs []int64) error {
	q := t.query
	q.OldestFirst, q.Quiet, q.After, q.Before = true, t.noise, seqs[0]-1, seqs[len(seqs)-1]+1
	for e, err := range t.journal.Rows(ctx, q) {
		if err != nil {
			return err
		}
		if _, listed := slices.BinarySearch(seqs, e.Seq); !listed {
			continue
		}
		if err := t.change(ctx, &e, true); err != nil {
			return err
		}
	}
	return nil
}

// follow tells what is added to the journal.
func (t *telling) follow(ctx context.Context) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		last, err := t.journal.Last(ctx)
		if err != nil {
			return err
		}
		if last > t.last {
			if err := t.tellMore(ctx, last); err != nil {
				return err
			}
		}
		if err := t.out.Until(t.o.Now()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// tellMore tells what was added. It may be of kinds that the journal did not have.
func (t *telling) tellMore(ctx context.Context, last int64) error {
	if len(t.types.Unknown) > 0 {
		types, err := t.journal.Types(ctx, t.o.Types)
		if err != nil {
			return err
		}
		t.resolve(types)
	}
	from := t.last
	t.last = last
	return t.tellAll(ctx, from)
}

// tellAll tells what is selected between a sequence number and the last.
func (t *telling) tellAll(ctx context.Context, after int64) error {
	for e, err := range t.rows(ctx, journal.Query{After: after, OldestFirst: true}) {
		if err != nil {
			return err
		}
		if err := t.change(ctx, &e, false); err != nil {
			return err
		}
	}
	return nil
}

// newest returns the sequence numbers of the last changes that are selected, in their order, and when the first
// of them was seen.
func (t *telling) newest(ctx context.Context, limit int) (seqs []int64, oldest time.Time, err error) {
	for e, err := range t.rows(ctx, journal.Query{}) {
		if err != nil {
			return nil, oldest, err
		}
		if t.deep() {
			c, err := t.journal.Change(ctx, &e)
			if errors.Is(err, journal.ErrNotFound) || err == nil && !t.matches(t.journal.Cluster(), &c) {
				continue
			} // what cannot be read cannot be judged: it is told that it cannot
		}
		oldest = e.At
		if seqs = append(seqs, e.Seq); len(seqs) == limit {
			break
		}
	}
	slices.Reverse(seqs)
	return seqs, oldest, nil
}

// rows yields what the selection takes within the bounds and in the order of a query, and counts what
// is quiet, but where objects would have to be read for that.
func (t *telling) rows(ctx context.Context, in journal.Query) iter.Seq2[journal.Entry, error] {
	q := t.query
	q.After, q.Before, q.OldestFirst = in.After, t.last+1, in.OldestFirst
	q.Quiet = t.noise || !t.deep() && t.quiet < maxQuiet
	return func(yield func(journal.Entry, error) bool) {
		for again := !t.nothing(); again; {
			again = false
			for e, err := range t.journal.Rows(ctx, q) {
				switch {
				case err != nil:
					yield(e, err)
					return
				case !t.takes(&e):
					continue
				case !e.Quiet || t.noise:
					if !yield(e, nil) {
						return
					}
					continue
				}
				if t.quiet++; t.quiet == maxQuiet {
					q.Quiet, again = false, true
					if q.OldestFirst {
						q.After = e.Seq
					} else {
						q.Before = e.Seq
					}
					break
				}
			}
		}
	}
}

// change tells a change, if it was judged before or matches. One that cannot be read is told of, and the
// others are told.
func (t *telling) change(ctx context.Context, e *journal.Entry, judged bool) error {
	c, err := t.journal.Change(ctx, e)
	var disk *journal.WriteError
	switch {
	case errors.Is(err, journal.ErrNotFound): // retention has removed it meanwhile
		return nil
	case err != nil && (ctx.Err() != nil || errors.Is(err, journal.ErrClosed) || errors.As(err, &disk)):
		return err
	case err != nil:
		t.damaged++
		return t.out.Notice(e.At, fmt.Sprintf("change %s (%s) cannot be shown: %v", e.ID, e.Op, err))
	case !judged && !t.matches(t.journal.Cluster(), &c):
		return nil
	}
	t.shown++
	return t.out.Change(c)
}
