package web

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

// TestManyLive: more browsers than can be kept current get a clear refusal, HEAD takes no place, and browsers that leave free
// theirs.
func TestManyLive(t *testing.T) {
	p := recorded(t)
	var refused atomic.Int64
	p.o.Refused = func(reason string) {
		if reason == auth.RefusedStreams {
			refused.Add(1)
		}
	}
	srv := httptest.NewServer(p)
	defer srv.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
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
	if status, _ := ask(http.MethodHead); status != http.StatusServiceUnavailable {
		t.Errorf("a page that asks why it was refused: %d", status)
	}
	if n := refused.Load(); n != 100-maxStreams {
		t.Errorf("%d refusals are counted, want %d", n, 100-maxStreams)
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

// TestClocks: if the daemon's clock jumped, even to 1970 or to the year 9999, and in the hour that a change to winter time
// repeats, the page shows each change, and each of its links leads to a page.
func TestClocks(t *testing.T) {
	b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
	now := morning.Add(3 * time.Hour)
	berlin := time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC) // 02:30, for the first time
	times := []time.Time{
		morning, latest, time.UnixMilli(1), time.Unix(0, 0), berlin, berlin.Add(time.Hour), berlin.Add(15 * time.Minute), now.Add(time.Hour), now.Add(-time.Hour),
	}
	for i, at := range times {
		b.at = at
		b.set(cmKind, "shop", "jumps", "helm", configMap("k", fmt.Sprint(i)), nil)
		b.set(podKind, "shop", "crashes", "kubelet", pod("web:1", "Running", "CrashLoopBackOff", i+1), nil)
	}
	b.at = morning // the absence and the gap end before they begin
	for _, m := range []journal.Meta{
		{Op: event.Absent, Kind: journal.AbsenceKind, Absence: &event.Absence{Reason: event.AbsenceStopped}},
		{Op: event.Gap, Kind: podKind, Gap: &event.GapInfo{From: "17", To: "23", Reason: "expired"}},
	} {
		m.Time, m.At, m.Since = b.at, b.at, b.at.Add(time.Hour)
		b.append(journal.Row{Meta: m})
	}
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
	p := newPage(t, b.path, now)
	negative := regexp.MustCompile(`-\d+(\.\d+)? (s|min|h|d|y)\b| (x|y|width|height)="-`)
	page := func(url string) string {
		t.Helper()
		w := p.get(url)
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", url, w.Code, w.Body)
		}
		if found := negative.FindString(w.Body.String()); found != "" {
			t.Errorf("%s has %q", url, found)
		}
		if n := strings.Count(w.Body.String(), `<rect class="hit"`); n > maxBars+1 {
			t.Errorf("%s has %d bars", url, n)
		}
		return w.Body.String()
	}
	flat := page("/?flat=1&lanes=object")
	for i := range times {
		if !strings.Contains(flat, fmt.Sprintf(`data.k: &#34;%d&#34;`, i)) && i > 0 && i < len(times)-1 {
			t.Errorf("change %d is not shown", i)
		}
	}
	arounds := regexp.MustCompile(`<a class="around" href="([^"]*)"`).FindAllStringSubmatch(flat, -1)
	if len(arounds) < 2*len(times) {
		t.Errorf("%d links", len(arounds))
	}
	for _, link := range arounds {
		if around := page(html.UnescapeString(link[1])); !strings.Contains(around, `class="entry`) && !strings.Contains(link[1], "at=9999") {
			t.Errorf("%s shows nothing", link[1])
		}
	}
	for _, url := range []string{"/?since=1970-01-01T00:00:00Z&until=1970-01-02T00:00:00Z", "/?since=9999-12-31T00:00:00Z&until=9999-12-31T23:59:59.9999Z", "/?since=2026-10-25T00:00:00Z&until=2026-10-25T03:00:00Z"} {
		for range 30 { // zoom out
			body := page(url)
			out := regexp.MustCompile(`class="zoomout" href="([^"]*)"`).FindStringSubmatch(body)
			if out == nil {
				break
			}
			url = html.UnescapeString(out[1])
		}
	}
	night := page("/histogram?since=2026-10-25T00:00:00Z&until=2026-10-25T02:00:00Z")
	if !strings.Contains(night, "<strong>6</strong> changes") {
		t.Errorf("the night has %s", night)
	}
	for _, object := range []string{"type=configmaps&name=jumps", "type=pods&name=crashes"} {
		page("/object?namespace=shop&" + object)
	}
	if w := p.get("/?since=1970-01-01T00:00:00Z&until=9999-12-31T00:00:00Z"); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "longer than 200 years") {
		t.Errorf("too long a time: %d %s", w.Code, w.Body)
	}
}
