package web

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
)

// place is where a page of the timeline begins. Each change is on one page: an entry that folds changes beyond the end of
// its page has them, and the next page leaves them out.
type place struct {
	// before is the number of the oldest change of the newer page; 0 for the newest page.
	before int64
	// shown are the numbers of older changes that newer pages show in folded entries, in ascending order.
	shown []int64
}

// older returns the URL of the page that begins at a place.
func (f *filter) older(at place) string {
	return f.with("/", "before", strconv.FormatInt(at.before, 10), "shown", encodeNumbers(at.shown))
}

// list reads the page at a place.
func (p *Page) list(ctx context.Context, f *filter, at place) (l list, err error) {
	if l.Last, err = p.past.source.Last(ctx); err != nil {
		return l, err
	}
	end, budget := p.o.Now(), moreSearch
	if at.before == 0 {
		at.before, budget = l.Last+1, firstSearch
	} else if end, err = p.next(ctx, f, at, end); err != nil {
		return l, err
	}
	s, err := p.search(ctx, f, f.Query, at, p.pageChanges, budget)
	if err != nil {
		return l, err
	}
	l.remark(f, &s)
	next := place{before: s.next, shown: at.shown}
	if len(s.seqs) > 0 {
		more, shown, err := p.fill(ctx, f, at, &s, end, &l)
		if err != nil {
			return l, err
		}
		next.shown = append(next.shown, shown...)
		if !more {
			next.before = 0
		}
	}
	if next.before > 0 {
		slices.Sort(next.shown)
		next.shown = slices.DeleteFunc(slices.Compact(next.shown), func(seq int64) bool { return seq >= next.before })
		l.Older = f.older(next)
	}
	slices.Reverse(l.Entries)
	slices.SortStableFunc(l.Entries, func(a, b entry) int { return b.At.Compare(a.At) })
	days(l.Entries)
	return l, nil
}

// remark notes how the search ended.
func (l *list) remark(f *filter, s *found) {
	if s.early {
		l.Note = "looked at " + thousands(s.read) + " changes, back to " + stamp(s.until) + " UTC"
	}
	if s.damage != nil {
		l.Note = strings.TrimPrefix(l.Note+"; ", "; ") + "older changes cannot be read, because " + partDamaged + "; a time range before the damage may work"
	}
	if s.failed > 0 {
		l.Note = strings.TrimPrefix(l.Note+"; ", "; ") + "the expression could not judge " + thousands(s.failed) + " changes, such as " + f.LastError.Error()
	}
}

// next returns the time of the first change after a page, up to which the page is played back: what happened later is on
// newer pages.
func (p *Page) next(ctx context.Context, f *filter, at place, now time.Time) (time.Time, error) {
	q := f.Query
	q.Since, q.Until, q.After, q.Limit, q.OldestFirst = time.Time{}, time.Time{}, at.before-1, 1, true
	for e, err := range p.past.rows(journal.WithPause(ctx, p.budget(contextSearch)), q) {
		var paused *journal.Paused
		if errors.As(err, &paused) {
			break
		}
		return e.At, err
	}
	return now, nil
}

// fill makes the entries of the changes that a search found. It returns whether there are more changes on older pages, and
// the numbers of the shown changes.
func (p *Page) fill(ctx context.Context, f *filter, at place, s *found, end time.Time, l *list) (more bool, shown []int64, err error) {
	low, all, more := s.seqs[0], s.seqs, s.next > 0
	var before found
	if !f.flat {
		q := f.Query
		q.Since, q.Until = time.Time{}, time.Time{}
		before, err = p.search(ctx, f, q, place{low, at.shown}, p.contextChanges, contextSearch)
		switch damage := (*journal.DamagedError)(nil); {
		case errors.As(err, &damage):
			before = found{next: low} // the older page says so
		case err != nil:
			return more, nil, err
		}
		all = slices.Concat(before.seqs, s.seqs)
	}
	covered := map[int64]bool{}
	show := func(line render.Line) {
		e := p.entry(f, line)
		if e.Newest() < low {
			return
		}
		l.Entries = append(l.Entries, e)
		for _, seq := range e.Changes {
			covered[seq] = true
		}
		shown = append(shown, e.Changes...)
	}
	if err := p.play(ctx, f, all, end, show); err != nil {
		return more, nil, err
	}
	left := slices.DeleteFunc(slices.Clone(s.seqs), func(seq int64) bool { return covered[seq] })
	if len(left) > 0 && !f.flat { // the rest of what an entry of an older page folds
		single := *f
		single.flat = true
		if err := p.play(ctx, &single, left, end, show); err != nil {
			return more, nil, err
		}
	}
	hidden := slices.ContainsFunc(before.seqs, func(seq int64) bool { return !covered[seq] })
	if !f.flat && !s.early && before.next == 0 && !hidden {
		more = false // the entries have all older changes
	}
	return more, shown, nil
}
