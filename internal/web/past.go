package web

import (
	"context"
	"iter"
	"time"

	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/quiet"
)

// past is what the page reads: a journal, and its changes built from it.
type past struct {
	source  history.Source
	builder *history.Builder
}

func newPast(s history.Source) (*past, error) {
	rules, err := quiet.New()
	if err != nil {
		return nil, err
	}
	return &past{s, history.New(s, rules)}, nil
}

func (p *past) rows(ctx context.Context, q journal.Query) iter.Seq2[journal.Entry, error] {
	return p.source.Rows(ctx, q)
}

func (p *past) build(ctx context.Context, e *journal.Entry) (change.Change, error) {
	return p.builder.Change(ctx, e)
}

// oldest returns when the oldest change happened; the zero time in an empty journal.
func (p *past) oldest(ctx context.Context) (time.Time, error) {
	if s, ok := p.source.(*access.Source); ok { // to find a visible one can take very many reviews
		return s.RecordedSince(ctx)
	}
	for e, err := range p.source.Rows(ctx, journal.Query{Quiet: true, Snapshots: true, OldestFirst: true, Limit: 1}) {
		return e.Time, err
	}
	return time.Time{}, nil
}
