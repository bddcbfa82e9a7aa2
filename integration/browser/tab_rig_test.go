package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestNotices: a tab notices what a page must not do. Without this, the other tests would prove little.
func TestNotices(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for _, tc := range []struct{ why, policy, html, want string }{
		{"an injected script that the policy permits", "", `<img src=x onerror="alert(1)">`, "a dialog: 1"},
		{"an injected script that the policy stops", "default-src 'self'", `<img src=x onerror="alert(1)">`, "the content security policy is violated: script-src"},
		{"an injected style", "default-src 'self'", `<p style="color: red">x</p>`, "the content security policy is violated: style-src"},
		{"a failing script", "", `<script>nothing.at.all</script>`, "an exception: "},
		{"a message of a script", "", `<script>console.error("no", 1)</script>`, "a console message: "},
		{"a request to another server", "", fmt.Sprintf(`<img src="%s/pixel">`, other.URL), "a request leaves the server: " + other.URL},
		{"a request that fails", "", `<img src="missing">`, "404"},
	} {
		t.Run(tc.why, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/" {
					http.NotFound(w, r)
					return
				}
				if tc.policy != "" {
					w.Header().Set("Content-Security-Policy", tc.policy)
				}
				_, _ = fmt.Fprintf(w, "<!doctype html><html lang=en><title>x</title><link rel=icon href=data:,>%s", tc.html)
			}))
			defer s.Close()
			b := open(t, s.URL, look{})
			b.visit("/")
			b.expect(tc.want)
			b.finish()
		})
	}
}
