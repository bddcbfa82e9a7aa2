package web

import (
	"context"
	"net/http"

	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

// rights are those of a viewer, for an access.Source.
type rights struct{ v *auth.Viewer }

// May implements access.Access.
func (r rights) May(ctx context.Context, targets []access.Target) ([]bool, error) {
	all := make([]auth.Target, len(targets))
	for i, t := range targets {
		all[i] = auth.Target(t)
	}
	return r.v.May(ctx, all)
}

// withRights returns a request in whose context an access.Source shows what the viewer may see. Without a viewer it shows
// nothing.
func withRights(r *http.Request) *http.Request {
	v := auth.From(r.Context())
	if v == nil {
		return r
	}
	return r.WithContext(access.With(r.Context(), rights{v}))
}

// sender sends server-sent events.
type sender interface {
	// Write sends at once.
	Write(b []byte) (int, error)
	Context() context.Context
	Close()
}

// newSender begins a stream. Without a viewer, nothing needs to be verified again.
func newSender(w http.ResponseWriter, r *http.Request) (sender, error) {
	if auth.From(r.Context()) != nil {
		return auth.NewStream(w, r)
	}
	return &open{w, r}, nil
}

type open struct {
	w http.ResponseWriter
	r *http.Request
}

func (o *open) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	if err == nil {
		err = http.NewResponseController(o.w).Flush()
	}
	return n, err
}

func (o *open) Context() context.Context { return o.r.Context() }
func (*open) Close()                     {}
