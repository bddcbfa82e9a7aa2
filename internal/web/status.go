package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/control/sinkadmin"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

// maxGaps is how many gaps and absences the status page lists.
const maxGaps = 20

type statusPage struct {
	head
	State sinkadmin.State
	// Idle says why no daemon answers; empty if one does.
	Idle    string
	Streams []streamRow
	Sinks   []sinkRow
	Gaps    []gap
}

// streamRow is a stream in the table.
type streamRow struct {
	control.Stream
	// Lag is for how long it has not been current.
	Lag string
	// GapsURL is the timeline of its gaps.
	GapsURL string
}

// sinkRow is a sink in a table, and on its page.
type sinkRow struct {
	control.Sink
	// URL is the sink's page.
	URL string
	// Lag is how long the first change that it has not received has waited.
	Lag string
	// Former says that the sink is no longer configured.
	Former bool
	// Hidden says that the viewer may not see the change that blocks it; its subject is left out.
	Hidden bool
}

// gap is a gap or an absence in the list.
type gap struct {
	Stream, Reason, URL, Around string
	From, To                    time.Time
}

// status serves the streams and sinks. It needs the right auth.SeeStatus.
func (p *Page) status(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	s, err := p.state(ctx)
	if err != nil {
		return err
	}
	page := statusPage{head: p.head(r, "Streams and sinks"), State: s}
	page.Section = "status"
	if s.Idle != nil {
		page.Idle = sentence(s.Idle)
	}
	for _, st := range s.Streams {
		page.Streams = append(page.Streams, p.streamRow(st, s.Idle != nil))
	}
	slices.SortStableFunc(page.Streams, func(a, b streamRow) int { return trouble(b.Stream) - trouble(a.Stream) })
	for i, sink := range s.All() {
		row, err := p.sinkRow(ctx, sink, i >= len(s.Sinks))
		if err != nil {
			return err
		}
		page.Sinks = append(page.Sinks, row)
	}
	if page.Gaps, err = p.gaps(ctx); err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "status.html", page)
}

// state returns the state of streams and sinks, if the viewer may see it.
func (p *Page) state(ctx context.Context) (s sinkadmin.State, err error) {
	may, err := auth.From(ctx).MayDo(ctx, auth.SeeStatus)
	switch {
	case err != nil:
		return s, err
	case !may:
		return s, &forbiddenError{"You may not see streams and sinks: this needs get on " + auth.SeeStatus.URL + "."}
	}
	return p.o.Console.State(ctx)
}

func (p *Page) streamRow(s control.Stream, idle bool) streamRow {
	row := streamRow{Stream: s}
	query := url.Values{"type": {s.Resource}, "op": {string(event.Gap)}}
	if s.Namespace != "" {
		query.Set("namespace", s.Namespace)
	}
	if s.Cluster != "" {
		query.Set("cluster", s.Cluster)
	}
	row.GapsURL = "/?" + query.Encode()
	since := s.TryingSince
	if since.IsZero() {
		since = s.Since
	}
	if (idle || s.State != control.Live) && !since.IsZero() {
		row.Lag = render.Duration(max(0, p.o.Now().Sub(since)))
	}
	return row
}

// sinkRow describes a sink. The subject of the change that blocks it is for viewers who may see that change.
func (p *Page) sinkRow(ctx context.Context, s control.Sink, former bool) (sinkRow, error) {
	row := sinkRow{Sink: s, URL: sinkURL(s.Name), Former: former}
	if s.Behind > 0 {
		row.Lag = render.Duration(time.Duration(s.LagSeconds * float64(time.Second)))
	}
	if s.Stuck == nil {
		return row, nil
	}
	hidden, err := p.unseen(ctx, s.Stuck.ID)
	if hidden {
		stuck := *s.Stuck
		stuck.Subject, row.Sink.Stuck, row.Hidden = "", &stuck, true
	}
	return row, err
}

// unseen reports whether the viewer may not see a change, or the journal no longer has it.
func (p *Page) unseen(ctx context.Context, id string) (bool, error) {
	_, err := p.past.source.ByID(ctx, id)
	if errors.Is(err, journal.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// gaps returns the newest gaps and absences.
func (p *Page) gaps(ctx context.Context) (all []gap, err error) {
	for e, err := range p.past.rows(ctx, journal.Query{Ops: []event.Op{event.Gap, event.Absent}, Limit: maxGaps}) {
		if err != nil {
			return nil, err
		}
		g := gap{Stream: inCluster(p.past.cluster(ctx, e.Kind), e.Kind.GroupResource()), URL: "/changes/" + e.ID}
		g.From, g.To = e.Span()
		g.Around = around(g.From, g.To)
		switch {
		case e.Gap != nil:
			g.Reason = e.Gap.Reason
		case e.Absence != nil:
			g.Stream = inCluster(p.past.cluster(ctx, e.Kind), "not watched")
			g.Reason = e.Absence.Reason
			if !e.Since.IsZero() {
				lasted := render.Duration(e.Time.Sub(e.Since))
				if g.Reason == event.AbsenceStopped {
					lasted = "at most " + render.UpperBound(e.Time.Sub(e.Since))
				}
				g.Reason = fmt.Sprintf("%s, for %s", g.Reason, lasted)
			}
		}
		all = append(all, g)
	}
	return all, nil
}

// inCluster begins text with the name of one of several clusters; cluster is empty if there is only one.
func inCluster(cluster, text string) string {
	if cluster == "" {
		return text
	}
	return cluster + ": " + text
}

// trouble is 1 for a stream that is not live, so that it comes first.
func trouble(s control.Stream) int {
	if s.State == control.Live {
		return 0
	}
	return 1
}

// forbiddenError is a page that the viewer may not see, or an order that the viewer may not give.
type forbiddenError struct{ text string }

func (e *forbiddenError) Error() string { return e.text }
