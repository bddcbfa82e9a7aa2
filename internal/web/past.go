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

// several returns the names of the recorded clusters if there are more than one; else nil.
func (p *past) several(ctx context.Context) ([]string, error) {
	names, err := p.source.Clusters(ctx)
	if len(names) < 2 {
		names = nil
	}
	return names, err
}

// cluster returns the name of a kind's cluster if there are several, for links; else an empty name. Without an answer, a link
// leads to the objects of all clusters.
func (p *past) cluster(ctx context.Context, k journal.Kind) string {
	if names, err := p.several(ctx); err != nil || names == nil {
		return ""
	}
	return k.ClusterOr(p.source.Cluster())
}

// own returns the cluster of a kind, for a query.
func (p *past) own(k journal.Kind) []string { return []string{k.ClusterOr(p.source.Cluster())} }
