// Package web serves the page: a timeline of the recorded changes, and each change with its diff.
//
// The server renders HTML. Everything works by links and forms; scripts only add comfort: htmx unfolds in place, and a
// small script zooms, moves by keys, and shows new changes as they are recorded.
//
// Every text from the cluster is escaped for HTML, and characters that control or reorder text are shown as such. A page
// only reads, except that a POST gives an order about a sink. Page does not authenticate: auth.Auth does, and serves it.
package web

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/control/sinkadmin"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

// Options configure the page. Only Source is required.
type Options struct {
	// Source is the journal. The caller closes it after the last request. Where viewers may see only a part, it must be an
	// access.Source.
	Source history.Source
	// Log receives failures; nil discards them.
	Log *slog.Logger
	// Now returns the time; nil is time.Now.
	Now func() time.Time
	// Console shows streams and sinks, and takes orders about sinks; nil leaves out their pages.
	Console *sinkadmin.Console
	// Check returns why the journal can no longer be read, for people; nil without such a reason. It is called for each request,
	// and several times a second while a page is live. nil checks nothing.
	Check func() error
	// Recording reports whether a daemon writes the journal now; nil means yes.
	Recording func(context.Context) bool
	// Refused is called with the reason if a live page is refused because of a limit; nil does nothing.
	Refused func(reason string)
}

// Page is the handler of all pages.
type Page struct {
	o          Options
	past       *past
	templates  *template.Template
	results    results
	streams    chan struct{} // has an element for each live stream
	narrowings narrowings
	// pageItems is the constant, except in tests.
	pageItems int
	// patience multiplies the times that searches and views may take: 1, except in tests.
	patience int
	handler  http.Handler
}

// maxStreams is how many browsers are kept current at once.
const maxStreams = 64

// New returns the page of a journal.
func New(o Options) (*Page, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Recording == nil {
		o.Recording = func(context.Context) bool { return true }
	}
	if o.Refused == nil {
		o.Refused = func(string) {}
	}
	p := &Page{o: o, streams: make(chan struct{}, maxStreams), pageItems: pageItems, patience: 1}
	var err error
	if p.past, err = newPast(o.Source); err != nil {
		return nil, err
	}
	if p.templates, err = parseTemplates(); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for _, r := range p.routes() {
		mux.HandleFunc("GET "+r.path, p.checked(r))
	}
	if o.Console != nil {
		mux.HandleFunc("POST "+orderPath, p.answer(p.give))
	}
	mux.HandleFunc("GET /static/", static)
	mux.HandleFunc("GET /favicon.ico", favicon)
	mux.HandleFunc("/", p.answer(func(http.ResponseWriter, *http.Request) error { return errNoPage }))
	p.handler = mux
	return p, nil
}

// policy permits our own scripts and styles only, and none inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // not no-referrer: browsers then send forms without their origin
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	order := r.Method == http.MethodPost && r.URL.Path == orderPath
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !order {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "this page answers GET and HEAD only", http.StatusMethodNotAllowed)
		return
	}
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil { // the handlers would see the rest of the filter only
		p.refuse(w, r, mistake("The address of this page cannot be read: %v. Filters are written as name=value, with %%25 for %%.", err))
		return
	}
	p.handler.ServeHTTP(w, r)
}

// UserError is a mistake in a URL, with what to do about it.
type UserError struct{ Text string }

func (e *UserError) Error() string { return e.Text }

func mistake(format string, args ...any) error { return &UserError{fmt.Sprintf(format, args...)} }

var (
	errNoPage  = errors.New("no such page")
	errNoStory = errors.New("no such story")
)

// answer turns a handler's error into a page.
func (p *Page) answer(f func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := p.check()
		if err == nil {
			err = f(w, r)
		}
		if err == nil || r.Context().Err() != nil {
			return
		}
		code, text := p.failure(r, err)
		page := errorPage{head: p.head(r, "Error"), Code: code, Text: text, OfStatus: strings.HasPrefix(r.URL.Path, "/status")}
		if order := (*orderError)(nil); errors.As(err, &order) && order.sink != "" {
			page.Given, page.SinkURL, page.Sink = order.sink, sinkURL(order.sink), p.present(r, order.sink)
		}
		_ = p.render(w, code, "error.html", page) // the browser may have gone
	}
}

// failure returns what a viewer learns about an error, and logs what the viewer must not see, such as addresses and paths.
func (p *Page) failure(r *http.Request, err error) (code int, text string) {
	var gone *goneError
	var user *UserError
	var forbidden *forbiddenError
	var order *orderError
	var several *journal.AmbiguousError
	var many *auth.TooManyReviews
	var unchecked *access.CheckError
	var damage *journal.DamagedError
	switch {
	case errors.As(err, &gone):
		return http.StatusServiceUnavailable, gone.Error()
	case errors.As(err, &user):
		return http.StatusBadRequest, user.Text
	case errors.As(err, &several):
		return http.StatusBadRequest, several.Error()
	case errors.As(err, &many):
		return http.StatusBadRequest, "Your rights would have to be checked for too many namespaces and kinds: " + many.Error() + "."
	case errors.As(err, &order):
		return order.code, order.text
	case errors.As(err, &forbidden):
		return http.StatusForbidden, forbidden.text
	case errors.Is(err, errNoObject):
		return http.StatusNotFound, "The journal has no version of this object. Check its type, namespace and name."
	case errors.Is(err, errNoPage):
		return http.StatusNotFound, "There is no such page."
	case errors.Is(err, errNoStory):
		return http.StatusNotFound, "The journal does not have these changes. They may have been removed by retention or by a purge."
	case errors.Is(err, journal.ErrNotFound):
		return http.StatusNotFound, "The journal does not have this change. It may have been removed by retention or by a purge."
	case errors.As(err, &unchecked):
		p.o.Log.Warn("cannot check the rights of a viewer", "path", r.URL.Path, "error", err)
		return http.StatusServiceUnavailable, "Your rights cannot be checked now. Try again in a moment."
	}
	p.o.Log.Error("cannot serve a page", "path", r.URL.Path, "error", err)
	if errors.As(err, &damage) {
		return http.StatusInternalServerError, "A part of the journal that this page reads is damaged. Other pages, and other time ranges, may still work. The command tattler journal verify names what is damaged."
	}
	return http.StatusInternalServerError, "The journal cannot be read. The log of this program says why."
}

// goneError says why the journal can no longer be read.
type goneError struct{ error }

// check returns a *goneError if the journal can no longer be read.
func (p *Page) check() error {
	if p.o.Check == nil {
		return nil
	}
	if err := p.o.Check(); err != nil {
		return &goneError{err}
	}
	return nil
}

type errorPage struct {
	head
	Code int
	Text string
	// OfStatus says that the page is one of streams and sinks.
	OfStatus bool
	// Given is the sink of an order that failed after it was given; else empty. Sink is its state, nil if that cannot be read.
	Given, SinkURL string
	Sink           *sinkRow
}
