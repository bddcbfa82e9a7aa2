package web

import (
	"context"
	"iter"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
)

// Past is what the page reads: a journal, and its changes built from it.
type Past struct {
	reader  *journal.Reader
	builder *history.Builder
}

// NewPast returns a Past. The caller closes the reader.
func NewPast(r *journal.Reader, b *history.Builder) *Past { return &Past{r, b} }

func (p *Past) cluster() string { return p.reader.Cluster() }

func (p *Past) last(ctx context.Context) (int64, error) { return p.reader.Last(ctx) }

func (p *Past) rows(ctx context.Context, q journal.Query) iter.Seq2[journal.Entry, error] {
	return p.reader.Rows(ctx, q)
}

func (p *Past) byID(ctx context.Context, id string) (journal.Entry, error) {
	return p.reader.ByID(ctx, id)
}

func (p *Past) build(ctx context.Context, e *journal.Entry) (change.Change, error) {
	return p.builder.Change(ctx, e)
}

func (p *Past) kinds(ctx context.Context) ([]journal.Kind, error) { return p.reader.Kinds(ctx) }

func (p *Past) recordedUntil(ctx context.Context) (time.Time, error) {
	return p.reader.RecordedUntil(ctx)
}

// oldest returns when the oldest change was seen; the zero time in an empty journal.
func (p *Past) oldest(ctx context.Context) (time.Time, error) {
	for e, err := range p.reader.Rows(ctx, journal.Query{Quiet: true, Snapshots: true, OldestFirst: true, Limit: 1}) {
		return e.Time, err
	}
	return time.Time{}, nil
}
