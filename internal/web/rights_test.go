package web

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

// failing is a viewer whose rights cannot be checked.
type failing struct{ err error }

func (f failing) May(context.Context, []access.Target) ([]bool, error) { return nil, f.err }

func (f failing) Created(context.Context, []access.Namespace) ([]time.Time, error) { return nil, f.err }

// TestUncheckedRights: nothing is shown, and the page says what the viewer can do.
func TestUncheckedRights(t *testing.T) {
	p := recorded(t)
	reader, ok := p.past.source.(access.Journal)
	if !ok {
		t.Fatalf("the source is a %T", p.past.source)
	}
	page, err := New(Options{Source: access.New(reader), Now: p.o.Now})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		err  error
		code int
		text string
	}{
		{&auth.TooManyReviews{Needed: 900, Limit: 500}, http.StatusBadRequest, "choose a namespace, or fewer kinds"},
		{errors.New("connection refused"), http.StatusServiceUnavailable, "Try again in a moment."},
	} {
		r := httptest.NewRequestWithContext(access.With(t.Context(), failing{tc.err}), http.MethodGet, "http://localhost/", nil)
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		if w.Code != tc.code {
			t.Errorf("%v: %d, want %d", tc.err, w.Code, tc.code)
		}
		has(t, w.Body.String(), tc.text)
		if strings.Contains(w.Body.String(), "settings") {
			t.Errorf("%v: an object is shown", tc.err)
		}
	}
}

// TestRefusedLive: a live page is refused with the answer of other pages, which hides addresses and paths; the log has them.
func TestRefusedLive(t *testing.T) {
	p := recorded(t)
	reader, ok := p.past.source.(access.Journal)
	if !ok {
		t.Fatalf("the source is a %T", p.past.source)
	}
	refused := errors.New(`review access: Post "https://10.96.0.1:443/apis": dial tcp 10.96.0.1:443: connect: connection refused`)
	damage := &journal.DamagedError{Path: "/var/lib/tattler/journal.db", What: "the kinds", Err: errors.New("malformed")}
	for _, tc := range []struct {
		why, url   string
		source     access.Journal
		viewer     access.Access
		code       int
		text, log  string
		retryAfter string
	}{
		{"the API server is away", "/live?after=0", reader, failing{refused}, http.StatusServiceUnavailable, "Try again in a moment.", "dial tcp 10.96.0.1:443", "10"},
		{"too many reviews", "/live?after=0", reader, failing{&auth.TooManyReviews{Needed: 900, Limit: 500}}, http.StatusBadRequest, "choose a namespace, or fewer kinds", "", ""},
		{"a damaged journal", "/live?after=0", damagedKinds{reader, damage}, access.Everything{}, http.StatusInternalServerError, "tattler journal verify", "/var/lib/tattler/journal.db", ""},
		{"a mistake", "/live?after=0&since=never", reader, access.Everything{}, http.StatusBadRequest, "since", "", ""},
		{"no number", "/live?after=x", reader, access.Everything{}, http.StatusBadRequest, "want the number of a change", "", ""},
	} {
		var log bytes.Buffer
		page, err := New(Options{Source: access.New(tc.source), Now: p.o.Now, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequestWithContext(access.With(t.Context(), tc.viewer), http.MethodGet, tc.url, nil))
		if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.text) || w.Header().Get("Retry-After") != tc.retryAfter {
			t.Errorf("%s: %d, after %q: %s", tc.why, w.Code, w.Header().Get("Retry-After"), w.Body)
		}
		for _, hidden := range []string{"10.96.0.1", "/var/lib"} {
			if strings.Contains(w.Body.String(), hidden) {
				t.Errorf("%s: the answer has %s: %s", tc.why, hidden, w.Body)
			}
		}
		if tc.log == "" && log.Len() > 0 || !strings.Contains(log.String(), tc.log) {
			t.Errorf("%s: the log has %q, want %q", tc.why, log.String(), tc.log)
		}
	}
}

// damagedKinds is a journal whose kinds cannot be read.
type damagedKinds struct {
	access.Journal
	err error
}

func (d damagedKinds) Kinds(context.Context) ([]journal.Kind, error) { return nil, d.err }
