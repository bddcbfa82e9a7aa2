// Package api serves a journal over HTTP: JSON for programs below /api/v1/, and the lossless forms below /api/v1/raw/
// that client reads.
//
// It answers GET and HEAD only, and changes nothing. It does not authenticate: the caller wraps Handler, and puts the
// viewer's rights into the request's context (access.With). All data comes from a Source that applies them. A viewer
// gets the same answer for an object that does not exist and for one that the viewer may not see.
//
// Everything is bounded: the size of a page and of an answer, the time of a request, and how many expensive requests
// are answered at once.
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/usage"
	"github.com/tattler-dev/tattler/internal/web/auth"
	"github.com/tattler-dev/tattler/internal/web/share"
)

// Root is the path below which the API is served.
const Root = "/api/v1/"

// Options configure the API.
type Options struct {
	// Source is the journal, with the rights of each request's viewer. Changes builds changes from it. Both are
	// required, and the caller closes the Source after the last request.
	Source  *access.Source
	Changes *history.Builder
	// Status returns the daemon's state, ErrForbidden if the viewer may not see it; nil: no daemon records.
	Status func(ctx context.Context) (control.Status, error)
	// Recording reports whether a daemon records now; nil: yes.
	Recording func(ctx context.Context) bool
	// Log receives failures; nil discards them.
	Log *slog.Logger
	// Now is the time; nil is time.Now.
	Now func() time.Time
	// Expensive is how many requests that read many changes or objects are answered at once; 0: 4, so that others
	// are answered meanwhile, and the daemon keeps recording. Twice as many streams are sent at once.
	Expensive int
	// Viewer names the viewer of a request, who has at most half of the expensive requests and of the streams; nil: there is one
	// viewer, who has at most half of the streams.
	Viewer func(ctx context.Context) string
	// RefusedRequest and RefusedStream are called if a request is refused because too many are answered; nil does nothing.
	RefusedRequest, RefusedStream func()
}

// ErrForbidden means that the viewer may not see something that exists for everybody, such as the status.
var ErrForbidden = errors.New("you may not see this")

// The bounds of an answer.
const (
	// maxAnswer is its size in bytes. A longer one is an error that says how to ask for less.
	maxAnswer = 32 << 20
	// quickTime and slowTime are how long a request may take; slowTime is for expensive ones.
	quickTime = 15 * time.Second
	slowTime  = time.Minute
	// streamTime is how long a stream may take, and stalled how long its reader may not read.
	streamTime = 10 * time.Minute
	stalled    = 30 * time.Second
	// waitTime is how long an expensive request waits for its place.
	waitTime = 5 * time.Second
	// scanTime is how long changes are read for one page; the next page continues.
	scanTime = 2 * time.Second
)

// api is the handler.
type api struct {
	o       Options
	reading *share.Pool // the expensive requests that read the journal
	sending *share.Pool // the streams that are sent
}

// New returns the handler of all paths below Root.
func New(o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Recording == nil {
		o.Recording = func(context.Context) bool { return true }
	}
	if o.Expensive <= 0 {
		o.Expensive = 4
	}
	half := (o.Expensive + 1) / 2
	if o.Viewer == nil {
		o.Viewer, half = func(context.Context) string { return "" }, o.Expensive
	}
	if o.RefusedRequest == nil {
		o.RefusedRequest = func() {}
	}
	if o.RefusedStream == nil {
		o.RefusedStream = func() {}
	}
	a := &api{o: o, reading: share.New(o.Expensive, half), sending: share.New(2*o.Expensive, o.Expensive)}
	mux := http.NewServeMux()
	for _, e := range endpoints() {
		mux.HandleFunc("GET "+Root+e.path, func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, &e) })
	}
	mux.HandleFunc(Root, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			a.fail(w, r, problem(http.StatusMethodNotAllowed, "the API answers GET and HEAD only"))
			return
		}
		a.fail(w, r, problem(http.StatusNotFound, "there is no %s; %sopenapi.json describes the API", r.URL.Path, Root))
	})
	return mux
}

// serve answers a request of a known path.
func (a *api) serve(w http.ResponseWriter, r *http.Request, e *endpoint) {
	limit := quickTime
	switch {
	case e.stream != nil:
		limit = streamTime
	case e.expensive:
		limit = slowTime
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	r = r.WithContext(ctx)
	if err := e.check(r); err != nil {
		a.fail(w, r, err)
		return
	}
	if e.stream != nil {
		who := a.o.Viewer(ctx)
		if !a.sending.Try(who) {
			a.o.RefusedStream()
			a.fail(w, r, busy("too many answers are being sent: repeat this request later"))
			return
		}
		defer a.sending.Leave(who)
		a.serveStream(w, r, e)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit + stalled)) // not every ResponseWriter has one
	body, err := a.answer(r, e)
	switch {
	case err != nil:
		a.fail(w, r, err)
		return
	case len(body) > maxAnswer:
		a.fail(w, r, tooLarge())
		return
	}
	write(w, http.StatusOK, body)
}

// answer returns the body of an answer. An expensive one has a place only while it is made, however slowly it is read.
func (a *api) answer(r *http.Request, e *endpoint) ([]byte, error) {
	if e.expensive {
		leave, err := a.enter(r.Context())
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	answer, err := e.handle(a, r)
	if err != nil {
		return nil, err
	}
	return encode(answer)
}

// enter waits for a place among the expensive requests.
func (a *api) enter(ctx context.Context) (leave func(), err error) {
	who := a.o.Viewer(ctx)
	limited, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()
	switch err := a.reading.Enter(limited, who); {
	case err == nil:
		return func() { a.reading.Leave(who) }, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	a.o.RefusedRequest()
	return nil, busy("too many requests read the journal: repeat this one later")
}

func busy(text string) error {
	return &failure{http.StatusServiceUnavailable, Error{Error: text, Reason: ReasonBusy}}
}

// failure is an error with its status.
type failure struct {
	code int
	form Error
}

func (f *failure) Error() string { return f.form.Error }

func problem(code int, format string, args ...any) error {
	return &failure{code, Error{Error: fmt.Sprintf(format, args...)}}
}

func tooLarge() error {
	return problem(http.StatusBadRequest, "the answer is larger than %d MiB: ask for less, by limit, namespace or name", maxAnswer>>20)
}

// failureOf decides what a viewer learns about an error. hidden reports that the log has to say more.
func failureOf(err error) (f *failure, hidden bool) {
	var wrong *usage.Error
	var check *access.CheckError
	var many *auth.TooManyReviews
	switch form := errorOf(err); {
	case errors.As(err, &f):
		return f, false
	case errors.As(err, &wrong):
		return &failure{http.StatusBadRequest, Error{Error: wrong.Text}}, false
	case form != nil && form.Reason == ReasonNotFound:
		return &failure{http.StatusNotFound, *form}, false
	case form != nil && form.Reason == ReasonAmbiguous:
		return &failure{http.StatusConflict, *form}, false
	case form != nil && form.Reason == ReasonPurged:
		return &failure{http.StatusGone, *form}, false
	case form != nil:
		return &failure{http.StatusInternalServerError, *form}, true
	case errors.Is(err, ErrForbidden):
		return &failure{http.StatusForbidden, Error{Error: ErrForbidden.Error()}}, false
	case errors.As(err, &many):
		return &failure{http.StatusBadRequest, Error{Error: many.Error()}}, false
	case errors.As(err, &check):
		return &failure{http.StatusServiceUnavailable, Error{Error: check.Error()}}, true
	case errors.Is(err, context.DeadlineExceeded):
		return &failure{http.StatusServiceUnavailable, Error{Error: "this takes too long: ask for less, by time, namespace or name"}}, false
	}
	return &failure{http.StatusInternalServerError, Error{Error: "the journal cannot be read: the daemon's log says why"}}, true
}

// fail answers with an error.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(r.Context().Err(), context.Canceled) { // nobody reads the answer
		return
	}
	f, hidden := failureOf(err)
	if hidden {
		a.o.Log.Warn("request of the API failed", "path", r.URL.Path, "error", err)
	}
	if f.code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	body, err := encode(f.form)
	if err != nil {
		body = []byte(`{"error":"the error cannot be shown"}`)
	}
	write(w, f.code, body)
}

func write(w http.ResponseWriter, code int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(body) // a reader that went away cannot be notified
}

func encode(v any) ([]byte, error) {
	if raw, ok := v.(json.RawMessage); ok {
		return raw, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return b.Bytes(), nil
}

// serveStream answers with lines. It ends with a line that says so, or with an error.
func (a *api) serveStream(w http.ResponseWriter, r *http.Request, e *endpoint) {
	control := http.NewResponseController(w)
	begun := false
	send := func(l Line) error {
		if !begun {
			begun = true
			w.Header().Set("Content-Type", "application/x-ndjson")
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("X-Content-Type-Options", "nosniff")
		}
		line, err := encode(l)
		if err != nil {
			return err
		}
		_ = control.SetWriteDeadline(time.Now().Add(stalled)) // not every ResponseWriter has one
		_, err = w.Write(line)
		return err
	}
	err := e.stream(a, r, send)
	switch {
	case err == nil:
		err = send(Line{End: true})
	case !begun:
		a.fail(w, r, err)
		return
	default:
		f, hidden := failureOf(err)
		if hidden && r.Context().Err() == nil {
			a.o.Log.Warn("request of the API failed", "path", r.URL.Path, "error", err)
		}
		err = send(Line{Error: &f.form})
	}
	if err != nil && r.Context().Err() == nil {
		a.o.Log.Debug("stream of the API broke off", "path", r.URL.Path, "error", err)
	}
}

// readable reports whether the rest of a list can be shown although one object cannot be read.
func readable(err error) bool {
	return errors.Is(err, journal.ErrPurged) || errors.Is(err, journal.ErrNotFound) || history.Damaged(err)
}
