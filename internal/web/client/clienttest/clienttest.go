// Package clienttest serves journals to tests, within the process and without a network, so that it works in a bubble of
// testing/synctest.
package clienttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/quiet"
	"github.com/tattler-dev/tattler/internal/web/api"
	"github.com/tattler-dev/tattler/internal/web/client"
)

// Open serves the journal of a file to a viewer, and opens what is served. Edit, if not nil, changes the API's options.
func Open(ctx context.Context, path string, viewer access.Access, edit func(*api.Options)) (*client.Journal, error) {
	r, err := journal.OpenReader(ctx, path)
	if err != nil {
		return nil, err
	}
	h, err := Handler(access.New(r), edit)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return client.Open(ctx, client.Options{
		URL: "http://tattler", Client: &http.Client{Transport: Transport{As(h, viewer)}}, Close: r.Close,
	})
}

// Handler returns the API of a journal.
func Handler(s *access.Source, edit func(*api.Options)) (http.Handler, error) {
	rules, err := quiet.New()
	if err != nil {
		return nil, fmt.Errorf("make rules: %w", err)
	}
	o := api.Options{Source: s, Changes: history.New(s, rules)}
	if edit != nil {
		edit(&o)
	}
	return api.New(o), nil
}

// As passes all requests on as those of a viewer.
func As(h http.Handler, viewer access.Access) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(access.With(r.Context(), viewer)))
	})
}

// Transport sends requests to a handler in the same process.
type Transport struct{ Handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, out := io.Pipe()
	w := &writer{header: http.Header{}, out: out, begun: make(chan struct{})}
	go func() {
		t.Handler.ServeHTTP(w, r)
		w.WriteHeader(http.StatusOK)
		_ = out.Close() // a pipe's Close does not fail
	}()
	<-w.begun
	return &http.Response{
		Status: fmt.Sprint(w.code, " ", http.StatusText(w.code)), StatusCode: w.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: body, ContentLength: -1, Request: r,
	}, nil
}

type writer struct {
	header http.Header
	out    *io.PipeWriter
	code   int // 0: not yet
	begun  chan struct{}
}

func (w *writer) Header() http.Header { return w.header }

func (w *writer) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
		close(w.begun)
	}
}

func (w *writer) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.out.Write(b)
}
