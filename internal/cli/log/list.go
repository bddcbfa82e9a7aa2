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
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
)

// lister is one run of the verb.
type lister struct {
	o       *Options
	journal *past.Journal
	*selected
	out printer

	last    int64 // sequence number up to which everything is read
	read    int64 // sequence number up to which everything was shown, or did not match, when reading the oldest first
	lowest  int64 // sequence number of the oldest change that was read; 0 without one
	shown   int
	quiet   int // quiet changes that were not shown; maxQuiet means that many or more
	damaged int
	limits  []string // what --limit leaves out
}

// maxQuiet bounds the counted quiet changes: if most changes are quiet, counting takes most of the time.
const maxQuiet = 5000

// pollEvery is how often the journal is polled for new changes: soon enough for a viewer, and it reads only one row.
const pollEvery = 250 * time.Millisecond

// run shows everything, until ctx ends.
func (t *lister) run(ctx context.Context) error {
	err := t.list(ctx)
	if err != nil && ctx.Err() == nil {
		return err
	}
	if err := t.out.Flush(t.end()); err != nil {
		return err
	}
	if err := t.finish(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return t.complain("shown")
}

// complain returns an error if changes are damaged.
func (t *lister) complain(what string) error {
	if t.damaged == 0 {
		return nil
	}
	return fmt.Errorf("%s cannot be %s; tattler journal verify looks for all damage", count(t.damaged, "change"), what)
}

// finish prints what is kept until the end, and on stderr what was not shown.
func (t *lister) finish(ctx context.Context) error {
	notes, err := t.notes(ctx)
	if err != nil {
		return err
	}
	if f, ok := t.out.(*folding); ok && f.tree != nil {
		err = f.tree.print(t.o.IO.Out)
	} else if ok && f.page != nil {
		err = t.writePage(ctx, f.page, append(slices.Clip(t.limits), notes...))
	}
	if err != nil {
		return err
	}
	return t.sumUp(notes)
}

// end returns the end of the requested time range.
func (t *lister) end() time.Time {
	now := t.o.Now()
	if until := t.Query.Until; !until.IsZero() && until.Before(now) {
		return until
	}
	return now
}

func (t *lister) list(ctx context.Context) error {
	if err := t.prepare(ctx); err != nil {
		return err
	}
	if t.related != nil { // a tree needs to know its objects
		out, err := t.o.printer(t.selected, t.journal.Cluster())
		if err != nil {
			return err
		}
		t.out = out
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
	if err := t.listPast(ctx); err != nil || !t.o.Follow {
		return err
	}
	removed, err := t.removed(ctx)
	if err != nil {
		return err
	}
	if removed != "" {
		fmt.Fprintf(t.o.IO.Err, "%s\n", removed)
	}
	t.read = t.last
	return t.follow(ctx)
}

// prepare finds the selected kinds and objects, and the end of the journal.
func (t *lister) prepare(ctx context.Context) error {
	err := t.Resolve(ctx, t.journal)
	if err != nil {
		return err
	}
	for _, word := range t.Types.Unknown {
		unknown := t.journal.Explain(ctx, word)
		if !t.o.Follow {
			return unknown
		}
		fmt.Fprintf(t.o.IO.Err, "%s\n", terminal.Line(unknown.Error())) // so far
	}
	if err := t.relate(ctx, t.o, t.journal); err != nil {
		return err
	}
	t.last, err = t.journal.Last(ctx)
	return err
}

// listPast shows what is in the journal.
func (t *lister) listPast(ctx context.Context) error {
	switch folds := t.o.folds(t.Selection); {
	case t.o.Limit > 0 && folds:
		return t.lastStories(ctx)
	case t.o.Limit > 0:
		return t.lastChanges(ctx)
	case folds:
		return t.allStories(ctx, 0)
	}
	return t.listAll(ctx, 0)
}

// play shows changes, given by their sequence numbers.
func (t *lister) play(ctx context.Context, seqs []int64) error {
	q := t.Query
	q.OldestFirst, q.After, q.Before = true, seqs[0]-1, seqs[len(seqs)-1]+1
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

// follow shows changes as they are added to the journal.
func (t *lister) follow(ctx context.Context) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		switch err := t.catchUp(ctx); {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
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

// listNew shows new changes, which may be of kinds that the journal did not have. After an error, it can be called again.
func (t *lister) listNew(ctx context.Context) error {
	last, err := t.journal.Last(ctx)
	if err != nil || last <= t.read {
		return err
	}
	if len(t.Types.Unknown) > 0 {
		if err := t.Resolve(ctx, t.journal); err != nil {
			return err
		}
	}
	t.last = last
	list := t.listAll
	if t.o.folds(t.Selection) {
		list = t.allStories
	}
	if err := list(ctx, t.read); err != nil {
		return err
	}
	t.read = last
	return nil
}

// listAll shows the selected changes after a sequence number.
func (t *lister) listAll(ctx context.Context, after int64) error {
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

// newest returns the sequence numbers of the last selected changes, in order.
func (t *lister) newest(ctx context.Context, limit int) (seqs []int64, err error) {
	for e, err := range t.rows(ctx, journal.Query{}) {
		if err != nil {
			return nil, err
		}
		if t.ReadsObjects() {
			if matches, err := t.matches(ctx, &e); err != nil || !matches {
				if err != nil {
					return nil, err
				}
				continue
			}
		}
		if seqs = append(seqs, e.Seq); len(seqs) == limit {
			break
		}
	}
	slices.Reverse(seqs)
	return seqs, nil
}

// rows yields the selected entries within the bounds and in the order of a query. It counts quiet changes, unless that
// would need their objects, or stories stand for routine changes: then an index has the others.
func (t *lister) rows(ctx context.Context, in journal.Query) iter.Seq2[journal.Entry, error] {
	q := t.Query
	q.After, q.Before, q.OldestFirst = in.After, t.last+1, in.OldestFirst
	q.Plain = t.o.folds(t.Selection) && !t.o.Stat
	if q.Plain { // absences are shown with any severity
		q.Severities = nil
	}
	q.Quiet = t.Noise || !q.Plain && !t.ReadsObjects() && t.quiet < maxQuiet
	return func(yield func(journal.Entry, error) bool) {
		for again := true; again; {
			again = false
			for e, err := range t.journal.Rows(ctx, q) {
				if err != nil {
					yield(e, err)
					return
				}
				if t.lowest == 0 || e.Seq < t.lowest {
					t.lowest = e.Seq
				}
				listed := !e.Quiet || t.Noise
				switch selected := t.selects(&e); {
				case selected && listed && !yield(e, nil):
					return
				case selected && !listed:
					t.quiet++
				}
				if q.OldestFirst {
					t.read = e.Seq
				}
				if !listed && t.quiet == maxQuiet && q.Quiet {
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

// change shows a change that matches, or that was judged before. A damaged change becomes a notice, and the others follow.
func (t *lister) change(ctx context.Context, e *journal.Entry, judged bool) error {
	c, err := t.journal.Change(ctx, e)
	switch {
	case errors.Is(err, journal.ErrNotFound): // retention has removed it meanwhile
		return nil
	case err != nil && (ctx.Err() != nil || !history.Damaged(err)):
		return err
	case err != nil:
		t.damaged++
		return t.out.Notice(e.At, fmt.Sprintf("change %s (%s) cannot be shown: %v", e.ID, e.Op, err))
	case !judged && !t.Matches(&c):
		return nil
	}
	t.shown++
	return t.out.Change(c)
}
