package web

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/story"
)

const (
	// pageItems is how many changes and stories are on a page of the timeline: about a screen.
	pageItems = 60
	// maxRead is how many are looked at for a page; the reader can continue the search.
	maxRead = 20_000
	// searchTime is how long a search may take that needs the objects of changes.
	searchTime = 250 * time.Millisecond
)

// found is a page of the timeline.
type found struct {
	items []history.Item // the newest first
	// next is where to continue, as journal.Query.Before; 0 at the end. Early says that the page is not full.
	next  int64
	early bool
	// read counts what was looked at, and failed the changes for which the expression failed.
	read, failed int
	// low is the number of the last one that was looked at, and until its time.
	low   int64
	until time.Time
	// damage is why older changes cannot be read.
	damage *journal.DamagedError
}

// budget returns for how long a search or a view may read.
func (p *Page) budget(d time.Duration) time.Duration { return time.Duration(p.patience) * d }

// deadline returns when a search or a view that begins now must end.
func (p *Page) deadline(budget time.Duration) time.Time { return time.Now().Add(p.budget(budget)) }

// items yields what the journal's query selects before a change, the newest first: changes, and unless the filter is flat,
// stories in place of routine changes.
func (p *Page) items(ctx context.Context, f *filter, before int64) iter.Seq2[history.Item, error] {
	q := f.Query
	q.Before = before
	if f.flat {
		if f.ReadsObjects() {
			ctx = journal.WithPause(ctx, p.budget(searchTime))
		}
		return history.Items(p.past.rows(ctx, q), func(func(story.Tree, error) bool) {}, false)
	}
	stories := p.past.builder.Stories(ctx, q)
	q.Plain, q.Severities = true, nil // see matches
	return history.Items(p.past.rows(ctx, q), stories, false)
}

// search finds the newest matching changes and stories before a change. Those of one number are on one page. It returns what it
// found before a damaged part of the journal.
func (p *Page) search(ctx context.Context, f *filter, before int64) (s found, err error) {
	failed, now := f.Failed, f.end(p.o.Now())
	var deadline time.Time // it counts from when the viewer's rights are known
	for i, err := range p.items(ctx, f, before) {
		if deadline.IsZero() {
			deadline = p.deadline(searchTime)
		}
		if s.next = pausedAt(err); s.next > 0 {
			s.early = true
			break
		}
		if p.damaged(&s, err) {
			break
		}
		if err != nil {
			return s, err
		}
		full := len(s.items) >= p.pageItems
		early := !full && (s.read >= maxRead || f.ReadsObjects() && s.read%16 == 15 && time.Now().After(deadline))
		if (full || early) && i.Seq < s.low {
			s.next, s.early = s.low, early
			break
		}
		s.read++
		s.low = i.Seq
		var ok bool
		if i.Story != nil {
			said := render.Tell(i.Story, now)
			s.until, ok = said.At, !said.Silent
		} else {
			s.until = i.Entry.Time
			if ok, err = p.matches(ctx, f, i.Entry); err != nil {
				return s, err
			}
		}
		if ok {
			s.items = append(s.items, i)
		}
	}
	s.failed = f.Failed - failed
	return s, nil
}

// matches reports whether an entry matches what the journal's query does not cover. A damaged change matches: it is shown
// as such, because it might.
func (p *Page) matches(ctx context.Context, f *filter, e *journal.Entry) (bool, error) {
	if !f.flat && !history.HasSeverity(&f.Query, e) {
		return false, nil
	}
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
