package web

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
)

// found is the result of a search, the oldest first.
type found struct {
	seqs []int64
	// next is where to continue, as journal.Query.Before; 0 at the end. Early says that the search took too long.
	next  int64
	early bool
	// read counts the changes that were looked at, and failed those for which the expression failed.
	read, failed int
	// until is the time of the oldest change that was looked at.
	until time.Time
	// damage is why older changes cannot be read.
	damage *journal.DamagedError
}

// budget returns for how long a search or a view may read.
func (p *Page) budget(d time.Duration) time.Duration { return time.Duration(p.patience) * d }

// deadline returns when a search or a view that begins now must end.
func (p *Page) deadline(budget time.Duration) time.Time { return time.Now().Add(p.budget(budget)) }

// search finds the newest matching changes of a query before a place. The query is the filter's, or a part of it. It returns
// what it found before a damaged part of the journal.
func (p *Page) search(ctx context.Context, f *filter, q journal.Query, at place, limit int, budget time.Duration) (s found, err error) {
	q.Before = at.before
	failed := f.Failed
	var deadline time.Time // it counts from when the viewer's rights are known
	for e, err := range p.past.rows(journal.WithPause(ctx, p.budget(budget)), q) {
		if deadline.IsZero() {
			deadline = p.deadline(budget)
		}
		var paused *journal.Paused
		if errors.As(err, &paused) {
			s.next, s.early = paused.Seq, true
			break
		}
		if len(s.seqs) > 0 && errors.As(err, &s.damage) {
			p.o.Log.Error("cannot read older changes", "before", s.seqs[len(s.seqs)-1], "error", err)
			break
		}
		if err != nil {
			return s, err
		}
		if _, shown := slices.BinarySearch(at.shown, e.Seq); shown {
			continue
		}
		if s.early = s.read == maxRead || s.read%16 == 15 && time.Now().After(deadline); s.early || len(s.seqs) == limit {
			s.next = e.Seq + 1
			break
		}
		s.read++
		s.until = e.Time
		ok, err := p.matches(ctx, f, &e)
		if err != nil {
			return s, err
		}
		if ok {
			s.seqs = append(s.seqs, e.Seq)
		}
	}
	s.failed = f.Failed - failed
	slices.Reverse(s.seqs)
	return s, nil
}

// matches reports whether an entry matches what the journal's query does not cover. A damaged change matches: it is shown
// as such, because it might.
func (p *Page) matches(ctx context.Context, f *filter, e *journal.Entry) (bool, error) {
	if !f.ReadsObjects() {
		return true, nil
	}
	c, err := p.past.build(ctx, e)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(err, journal.ErrNotFound): // removed meanwhile
		return false, nil
	case history.Damaged(err):
		return true, nil
	case err != nil:
		return false, err
	}
	return f.Matches(&c), nil
}
