package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestManyLive: more browsers than can be kept current get a clear refusal, HEAD takes no place, and browsers that leave free
// theirs.
func TestManyLive(t *testing.T) {
	p := recorded(t)
	srv := httptest.NewServer(p)
	defer srv.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ask := func(method string) (status int, header http.Header) {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, method, srv.URL+"/live?after=0", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp.StatusCode, resp.Header
	}
	for range maxStreams {
		if status, _ := ask(http.MethodHead); status != http.StatusOK {
			t.Fatalf("HEAD: %d", status)
		}
	}
	for i := range 100 { // none of them is read
		status, header := ask(http.MethodGet)
		want := http.StatusOK
		if i >= maxStreams {
			want = http.StatusServiceUnavailable
			if header.Get("Retry-After") == "" {
				t.Error("a refusal does not say when to come again")
			}
		}
		if status != want {
			t.Fatalf("stream %d: %d, want %d", i, status, want)
		}
	}
	cancel()
	for range maxStreams { // all places become free
		p.streams <- struct{}{}
	}
}

// TestBadAddresses: a filter that cannot be read is refused, and never left out of a page that looks complete. No address is
// too much for the page.
func TestBadAddresses(t *testing.T) {
	p := recorded(t)
	for _, tc := range []struct {
		why, url string
		code     int
		want     string
	}{
		{"a bad escape", "/?name=%zz", http.StatusBadRequest, "The address of this page cannot be read"},
		{"the same, of a part of the page", "/entries?name=%", http.StatusBadRequest, "cannot be read"},
		{"the same, of a live page", "/live?after=0&name=%zz", http.StatusBadRequest, "cannot be read"},
		{"a semicolon", "/?name=a;kind=b", http.StatusBadRequest, "cannot be read"},
		{"a time without a zone, as the form sends it", "/?since=2026-03-01T10:00:00", http.StatusOK, ""},
		{"not a time", "/?since=%F0%9F%95%92", http.StatusBadRequest, ""},
		{"a long name", "/?name=" + strings.Repeat("a", 30_000), http.StatusOK, ""},
		{"thousands of filters", "/?" + strings.Repeat("namespace=a&", 2500), http.StatusOK, ""},
		{"an unknown static file", "/static/../web.go", http.StatusNotFound, ""},
	} {
		w := p.get(tc.url)
		for w.Code/100 == 3 {
			w = p.get(w.Header().Get("Location"))
		}
		if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s: %d, want %d with %q: %.300s", tc.why, w.Code, tc.code, tc.want, w.Body.String())
		}
	}
	for _, header := range []string{"If-None-Match", "If-Modified-Since", "Range"} {
		if w := p.get("/static/app.css", header, `"x"`); w.Code != http.StatusOK || w.Body.Len() == 0 {
			t.Errorf("%s: %d", header, w.Code)
		}
	}
}
