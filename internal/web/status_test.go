package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/control"
)

// TestStatus: the daemon's streams and sinks, for viewers with the right only.
func TestStatus(t *testing.T) {
	c := newConsole(t)
	c.status.Streams = []control.Stream{
		{Resource: "pods", Version: "v1", State: control.Live, Since: morning, Objects: 7, Gaps: 1, Error: "connection <i>lost</i>", ErrorAt: morning.Add(-time.Hour)},
		{Resource: "secrets", Namespace: "shop", State: control.Forbidden, Since: morning, Error: "<b>no</b>\x1b[31m", ErrorAt: morning},
	}
	c.status.MissingRights = []control.Lack{
		{Resource: "secrets", Namespace: "shop", Verbs: []string{"list", "watch"}},
		{Cluster: "west", Resource: "namespaces", Verbs: []string{"get"}, Without: "<i>less</i> is known"},
	}
	c.status.RightsError = "no answer from west"
	c.status.Traces = &control.Traces{To: "https://<i>collector</i>:4318", Exported: 11, Dropped: 22, Queued: 33, Error: "503 <u>away</u>", ErrorAt: morning}
	if w := c.do(http.MethodGet, "/status", "", nil); w.Code != http.StatusUnauthorized {
		t.Errorf("without a credential: %d", w.Code)
	}
	if w := c.do(http.MethodGet, "/status", "nobody", nil); w.Code != http.StatusForbidden || (strings.Contains(w.Body.String(), "hook") || strings.Contains(w.Body.String(), "may not list") || strings.Contains(w.Body.String(), "collector")) {
		t.Errorf("without the right: %d %s", w.Code, w.Body)
	}
	body := c.get("/status", "reader")
	golden(t, "status.html", mainOf(t, body))
	has(t, body, "&lt;b&gt;no&lt;/b&gt;\\x1b[31m", `type=secrets`, "not watched: stopped, for at most 4 min")
	has(t, body, "lacks 2 of the rights", "secrets: may not list, watch in shop</li>", "west: namespaces: may not get: &lt;i&gt;less&lt;/i&gt; is known", "Not all rights are known: no answer from west")
	has(t, body, "https://&lt;i&gt;collector&lt;/i&gt;:4318", "<td>11</td><td>22</td><td>33</td>", "503 &lt;u&gt;away&lt;/u&gt; (<time")
	has(t, body, `connection &lt;i&gt;lost&lt;/i&gt; (passed, <time class="dt" datetime="2026-11-24T`, `\x1b[31m (<time class="dt"`)
	if strings.Contains(body, "expired") {
		t.Error("a reader sees a gap of a kind that it may not see")
	}
	has(t, c.get("/status", "boss"), "expired")
	if strings.Index(body, ">secrets<") > strings.Index(body, ">pods<") {
		t.Error("a stream that is not live does not come first")
	}
}

// TestStatusIdle: without a daemon, the page has what the journal knows, and says why.
func TestStatusIdle(t *testing.T) {
	c := newConsole(t)
	c.idle = &control.NoDaemonError{Journal: "j.db"}
	golden(t, "status-idle.html", mainOf(t, c.get("/status", "boss")))
	body := c.get(hookURL, "boss")
	has(t, body, "No daemon records into j.db", "400 Bad Request")
	if strings.Contains(body, "/status/order") {
		t.Error("the page offers orders that no daemon takes")
	}
	w := c.post("boss", "do", "pause", "sink", "hook")
	if w.Code != http.StatusServiceUnavailable || len(c.seen) > 0 {
		t.Errorf("%d, %v", w.Code, c.seen)
	}
	has(t, w.Body.String(), "No daemon runs that could carry out the order")
}
