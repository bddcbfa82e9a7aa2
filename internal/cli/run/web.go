package run

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/control/sinkadmin"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/quiet"
	"github.com/tattler-dev/tattler/internal/web"
	"github.com/tattler-dev/tattler/internal/web/api"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

// page serves the web page of the daemon's journal, and the JSON API.
type page struct {
	path   string
	log    *slog.Logger
	status func(context.Context) (control.Status, error) // of the daemon
	early  func() bool                                   // reports whether it is too early to open the journal; nil: never
	// wrap, if set, adapts the handler to the clusters of the journal, and to the one that it is named after.
	wrap   func(h http.Handler, own string, known []string) http.Handler
	orders atomic.Pointer[control.Orders] // nil before the daemon takes them
	// refusals counts what is refused; nil does not.
	refusals *auth.Refusals

	mu     sync.Mutex
	reader *journal.Reader
	page   http.Handler
}

// ServeHTTP implements http.Handler.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, err := p.open(r.Context())
	if err != nil {
		p.log.Debug("the web page cannot open the journal yet", "error", err)
		w.Header().Set("Retry-After", "2")
		http.Error(w, "the journal is being opened: try again in a moment", http.StatusServiceUnavailable)
		return
	}
	h.ServeHTTP(w, r)
}

// open opens the journal at the first request for which it exists: the daemon may take minutes to open it.
func (p *page) open(ctx context.Context) (http.Handler, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.page != nil {
		return p.page, nil
	}
	if p.early != nil && p.early() {
		return nil, errors.New("the name of the cluster is not known yet")
	}
	r, err := journal.OpenReader(ctx, p.path)
	if err != nil {
		return nil, err
	}
	mux, err := p.handlers(access.New(r), r)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if p.wrap != nil {
		known, err := r.Clusters(ctx)
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		mux = p.wrap(mux, r.Cluster(), known)
	}
	p.reader, p.page = r, mux
	return mux, nil
}

// pageRefusals returns what was refused.
func (p *page) pageRefusals() (all []control.PageRefusal) {
	for _, r := range p.refusals.All() {
		all = append(all, control.PageRefusal(r))
	}
	return all
}

// refused counts a refusal.
func (p *page) refused(reason string) {
	if p.refusals != nil {
		p.refusals.Add(reason)
	}
}

// take receives what carries out orders.
func (p *page) take(orders control.Orders) { p.orders.Store(&orders) }

// console shows and controls the daemon's sinks.
func (p *page) console(r *journal.Reader) *sinkadmin.Console {
	return &sinkadmin.Console{
		Status: p.status,
		Orders: func() control.Orders {
			if to := p.orders.Load(); to != nil {
				return *to
			}
			return nil
		},
		Read: func(_ context.Context, use func(*journal.Reader) error) error { return use(r) },
	}
}

// handlers serves the page and the API from a source that applies the viewers' rights. The reader is for the console alone.
func (p *page) handlers(s *access.Source, r *journal.Reader) (http.Handler, error) {
	rules, err := quiet.New()
	if err != nil {
		return nil, err
	}
	h, err := web.New(web.Options{Source: s, Log: p.log, Console: p.console(r), Refused: p.refused})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.Handle(api.Root, api.New(api.Options{
		Source: s, Changes: history.New(s, rules), Log: p.log,
		Viewer:         func(ctx context.Context) string { return auth.From(ctx).String() },
		RefusedRequest: func() { p.refused(auth.RefusedAPIRequests) },
		RefusedStream:  func() { p.refused(auth.RefusedAPIStreams) },
		Status: func(ctx context.Context) (control.Status, error) {
			switch may, err := auth.From(ctx).MayDo(ctx, auth.SeeStatus); {
			case err != nil:
				return control.Status{}, err
			case !may:
				return control.Status{}, api.ErrForbidden
			}
			st, err := p.status(ctx)
			return hideSubjects(ctx, s, st), err
		},
	}))
	return mux, nil
}

// hideSubjects returns a status without the subjects of changes that block sinks, where the viewer may not see the change, and
// without the namespace that has the most changes.
func hideSubjects(ctx context.Context, s *access.Source, st control.Status) control.Status {
	st.Journal.CutNamespace, st.Journal.CutCluster = "", ""
	st.Sinks = slices.Clone(st.Sinks)
	for i := range st.Sinks {
		k := &st.Sinks[i]
		if k.Stuck == nil {
			continue
		}
		if _, err := s.ByID(ctx, k.Stuck.ID); err != nil {
			hidden := *k.Stuck
			hidden.Subject, k.Stuck = "an object that you may not see", &hidden
		}
	}
	return st
}

// serve answers until ctx ends.
func (p *page) serve(ctx context.Context, l net.Listener, protection *auth.Auth) error {
	err := protection.Serve(ctx, l, p)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reader != nil {
		err = errors.Join(err, p.reader.Close())
	}
	return err
}

// together runs two servers, of which either may be nil, until both have ended. If one fails, the other ends.
func together(a, b served) served {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(ctx context.Context, status func(context.Context) (control.Status, error)) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		done := make(chan error, 1)
		go func() {
			defer cancel()
			done <- a(ctx, status)
		}()
		err := b(ctx, status)
		cancel()
		return errors.Join(err, <-done)
	}
}

// servePage returns a function that serves the page while the daemon runs.
func servePage(l net.Listener, protection *auth.Auth, p *page) served {
	return func(ctx context.Context, status func(context.Context) (control.Status, error)) error {
		p.status = status
		scheme := "http"
		if protection.TLSConfig() != nil {
			scheme = "https"
		}
		p.log.Info("serving the web page", "url", scheme+"://"+l.Addr().String()+"/")
		return p.serve(ctx, l, protection)
	}
}
