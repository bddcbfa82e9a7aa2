package web

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/tattler-dev/tattler/internal/journal"
)

// older returns the URL of the page with what stands before a change.
func (f *filter) older(before int64) string {
	return f.with("/", "before", strconv.FormatInt(before, 10))
}

// list reads the page with what stands before a change; 0 is the newest page.
func (p *Page) list(ctx context.Context, f *filter, before int64) (l list, err error) {
	if l.Last, err = p.past.source.Last(ctx); err != nil {
		return l, err
	}
	if before == 0 {
		before = l.Last + 1
	}
	s, err := p.search(ctx, f, before)
	if err != nil {
		return l, err
	}
	if l.Entries, err = p.entries(ctx, f, s.items); err != nil {
		return l, err
	}
	if s.next > 0 {
		l.Older = f.older(s.next)
	}
	l.remark(f, &s)
	days(l.Entries)
	return l, nil
}

// remark notes how the search ended.
func (l *list) remark(f *filter, s *found) {
	var notes []string
	if s.early {
		notes = append(notes, "looked at "+thousands(s.read)+" changes, back to "+stamp(s.until)+" UTC, and not at older ones yet")
	}
	if s.damage != nil {
		notes = append(notes, "older changes cannot be read, because "+partDamaged+"; a time range before the damage may work")
	}
	if s.failed > 0 {
		notes = append(notes, "the expression could not judge "+thousands(s.failed)+" changes, such as "+f.LastError.Error())
	}
	l.Note = strings.Join(notes, "; ")
}

// damaged reports whether a search ends here because of damage, and has something to show.
func (p *Page) damaged(s *found, err error) bool {
	if len(s.items) == 0 || !errors.As(err, &s.damage) {
		return false
	}
	p.o.Log.Error("cannot read older changes", "before", s.low, "error", err)
	return true
}

// pausedAt returns where a search paused; 0 if it did not.
func pausedAt(err error) int64 {
	var paused *journal.Paused
	if errors.As(err, &paused) {
		return paused.Seq
	}
	return 0
}
