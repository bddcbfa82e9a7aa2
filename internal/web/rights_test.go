package web

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

// failing is a viewer whose rights cannot be checked.
type failing struct{ err error }

func (f failing) May(context.Context, []access.Target) ([]bool, error) { return nil, f.err }

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
