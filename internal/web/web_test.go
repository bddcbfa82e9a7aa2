package web

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestHostileNames: a name that is HTML stays text, and what reorders or controls text is shown as such, on every page.
func TestHostileNames(t *testing.T) {
	p := recorded(t)
	urls := []string{"/", "/?flat=1", "/?name=" + "%3Cimg%20src=x%20onerror=alert(1)%3E%E2%80%AEcod.exe%1B%5B31m", "/histogram"}
	for _, link := range regexp.MustCompile(`hx-get="([^"]*)"`).FindAllStringSubmatch(p.get("/?flat=1").Body.String(), -1) {
		urls = append(urls, strings.ReplaceAll(link[1], "&amp;", "&"))
	}
	if len(urls) < 20 {
		t.Fatalf("only %d links", len(urls))
	}
	seen := false
	for _, url := range urls {
		for _, part := range []string{"", "true"} {
			w := p.get(url, "HX-Request", part)
			if w.Code == http.StatusSeeOther {
				w = p.get(w.Header().Get("Location"))
			}
			body := w.Body.String()
			if w.Code != http.StatusOK {
				t.Errorf("%s: %d %s", url, w.Code, body)
			}
			for _, bad := range []string{"<img", "<script>alert", "<b>bold", "\u202e", "\x1b"} {
				if strings.Contains(body, bad) {
					t.Errorf("%s has %q", url, bad)
				}
			}
			seen = seen || strings.Contains(body, `&lt;img src=x onerror=alert(1)&gt;\u202ecod.exe\x1b[31m`)
		}
	}
	if !seen {
		t.Error("the name is not shown")
	}
}

// TestSafety: the headers that browsers need, and no change of state.
func TestSafety(t *testing.T) {
	p := recorded(t)
	w := p.get("/")
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
	} {
		if got := w.Header().Get(name); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	body := w.Body.String()
	for _, bad := range []string{" style=", "<style", " onclick=", "javascript:", "http://", "https://"} {
		if strings.Contains(body, bad) {
			t.Errorf("the page has %q, which the policy forbids", bad)
		}
	}
	if regexp.MustCompile(`<script[^>]*>[^<]`).MatchString(body) {
		t.Error("the page has an inline script")
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		r, err := http.NewRequestWithContext(t.Context(), method, "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		rec := &recorder{header: http.Header{}}
		p.ServeHTTP(rec, r)
		if rec.code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, rec.code)
		}
	}
}

type recorder struct {
	header http.Header
	code   int
}

func (r *recorder) Header() http.Header             { return r.header }
func (r *recorder) WriteHeader(code int)            { r.code = code }
func (*recorder) Write(b []byte) (n int, err error) { return len(b), nil }
