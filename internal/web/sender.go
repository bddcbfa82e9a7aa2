package web

import (
	"context"
	"net/http"

	"github.com/tattler-dev/tattler/internal/web/auth"
)

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
