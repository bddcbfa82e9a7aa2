package web

import (
	"errors"
	"net/http"
	"slices"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

// maxGaps is how many gaps the status page lists.
const maxGaps = 20

type statusPage struct {
	head
	Daemon control.Status
	// Idle says that no daemon runs, so that only the journal's gaps are known.
	Idle string
	Gaps []gap
}

// gap is a change in the list of gaps.
type gap struct{ Stream, Reason, URL, At string }

// status serves the streams and sinks of the daemon. It needs the right auth.SeeStatus.
func (p *Page) status(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	may, err := auth.From(ctx).MayDo(ctx, auth.SeeStatus)
	if err != nil {
		return err
	}
	if !may {
		return &forbiddenError{"You may not see streams and sinks: this needs get on " + auth.SeeStatus.URL + "."}
	}
	page := statusPage{head: p.head(r, "Streams and sinks")}
	page.Section = "status"
	var none *control.NoDaemonError
	switch s, err := p.o.Status(ctx); {
	case errors.As(err, &none), errors.Is(err, control.ErrSilent):
		page.Idle = err.Error()
	case err != nil:
		return err
	default:
		page.Daemon = s
	}
	q := journal.Query{Ops: []event.Op{event.Gap}, Limit: maxGaps}
	for e, err := range p.past.rows(ctx, q) {
		if err != nil {
			return err
		}
		g := gap{Stream: e.Kind.GroupResource(), URL: "/changes/" + e.ID, At: machine(e.Time)}
		if e.Gap != nil {
			g.Reason = e.Gap.Reason
		}
		page.Gaps = append(page.Gaps, g)
	}
	slices.SortStableFunc(page.Daemon.Streams, func(a, b control.Stream) int { return trouble(b) - trouble(a) })
	return p.render(w, http.StatusOK, "status.html", page)
}

// trouble is 1 for a stream that is not live, so that it comes first.
func trouble(s control.Stream) int {
	if s.State == control.Live {
		return 0
	}
	return 1
}

// forbiddenError is a page that the viewer may not see.
type forbiddenError struct{ text string }

func (e *forbiddenError) Error() string { return e.text }
