package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"

	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/control/sinkadmin"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

const (
	hookURL       = "/status/sink?name=hook"
	hostileReason = "400 Bad Request: </td><script>alert(3)</script>\x1b[31m\u202e"
)

// console is a page with authentication, of a journal with sinks. Its daemon is a fake that records its orders.
type console struct {
	t      *testing.T
	h      http.Handler
	now    time.Time
	log    bytes.Buffer // what auth logs
	path   string
	status control.Status
	idle   error

	mu   sync.Mutex
	seen []string // the orders
	err  error    // of the next orders
	left int      // dead letters that the receiver refuses again

	order  func(ctx context.Context) error // carries out the next orders, if it is set
	unread error                           // of the journal
}

// roles knows viewers by their tokens: boss may do everything; reader may see the status and objects in namespace shop;
// nobody may nothing.
type roles struct{}

func (roles) ReviewToken(_ context.Context, s authentication.TokenReviewSpec) (authentication.TokenReviewStatus, error) {
	return authentication.TokenReviewStatus{Authenticated: true, User: authentication.UserInfo{Username: s.Token}}, nil
}

func (roles) NamespaceCreated(context.Context, string) (time.Time, error) {
	return time.Unix(0, 0), nil
}

func (roles) ReviewAccess(_ context.Context, s authorization.SubjectAccessReviewSpec) (authorization.SubjectAccessReviewStatus, error) {
	url, object := s.NonResourceAttributes, s.ResourceAttributes
	reads := url != nil && url.Path == auth.SeeStatus.URL && url.Verb == auth.SeeStatus.Verb || object != nil && object.Namespace == "shop"
	return authorization.SubjectAccessReviewStatus{Allowed: s.User == "boss" || s.User == "reader" && reads}, nil
}

// newConsole records a morning. Sink hook has refused a change in shop and one in pay, and the change of a node blocks it.
func newConsole(t *testing.T) *console {
	t.Helper()
	b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
	b.morningOf()
	c := &console{t: t, now: b.at, path: b.path}
	r, err := journal.OpenReader(t.Context(), b.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	refused := 0
	for e, err := range r.Rows(t.Context(), journal.Query{OldestFirst: true, Quiet: true}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case e.Kind == nodeKind:
			c.status.Sinks = []control.Sink{{
				Name: "hook", To: "webhook https://example.com", State: "retrying", Cursor: 20, Behind: 12, LagSeconds: 90, Dead: 3, Delivered: 17, Attempts: 30, Failures: 4, Lost: 1,
				Error: "503 <i>Unavailable</i>", ErrorAt: morning.Add(time.Hour), RetryAt: morning.Add(2 * time.Hour),
				Stuck: &control.Stuck{ID: e.ID, Subject: "/api/v1/nodes/node-a", Since: morning.Add(30 * time.Minute), Attempts: 4},
			}, {Name: "log", To: "log", State: "paused", Cursor: 32}}
		case e.Name == "settings" && refused == 0, e.Name == "api-0" && refused < 3:
			refused++
			b.aside(e.Seq, e.ID, morning.Add(time.Duration(refused)*time.Second))
		}
	}
	if err := errors.Join(b.j.SetCursor(t.Context(), "hook", 20), b.j.SetCursor(t.Context(), "former", 5), b.j.Close()); err != nil {
		t.Fatal(err)
	}
	c.status.Journal.First = 1
	c.status.Left = []string{"former"}
	page, err := New(Options{Source: access.New(r), Now: func() time.Time { return c.now }, Console: &sinkadmin.Console{
		Status: func(ctx context.Context) (control.Status, error) { return c.status, cmp.Or(ctx.Err(), c.idle) },
		Orders: func() control.Orders { return c },
		Read: func(_ context.Context, use func(*journal.Reader) error) error {
			if c.unread != nil {
				return c.unread
			}
			return use(r)
		},
		Now: func() time.Time { return c.now },
	}})
	if err != nil {
		t.Fatal(err)
	}
	page.patience = endless
	a, err := auth.New(auth.Options{Address: "127.0.0.1:0", Tokens: true, Reviewer: roles{}, Log: slog.New(slog.NewTextHandler(&c.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	c.h = a.Wrap(page)
	return c
}

// aside makes a dead letter of a change.
func (b *book) aside(seq int64, id string, at time.Time) {
	b.t.Helper()
	if _, err := b.j.SetAside(b.t.Context(), journal.DeadLetter{Sink: "hook", Seq: seq, ID: id, Reason: hostileReason, Attempts: 2, At: at}); err != nil {
		b.t.Fatal(err)
	}
}

// do sends a request with a token.
func (c *console) do(method, target, token string, form url.Values, header ...string) *httptest.ResponseRecorder {
	c.t.Helper()
	ctx := context.WithValue(c.t.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}))
	r := httptest.NewRequestWithContext(ctx, method, "http://localhost"+target, strings.NewReader(form.Encode()))
	r.RemoteAddr = "127.0.0.1:40000"
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	c.h.ServeHTTP(w, r)
	return w
}

// get returns a page.
func (c *console) get(target, token string) string {
	c.t.Helper()
	w := c.do(http.MethodGet, target, token, nil)
	if w.Code != http.StatusOK {
		c.t.Fatalf("%s: %d %s", target, w.Code, w.Body)
	}
	return w.Body.String()
}

// post sends an order of pairs of values.
func (c *console) post(token string, values ...string) *httptest.ResponseRecorder {
	c.t.Helper()
	form := url.Values{}
	for i := 0; i < len(values); i += 2 {
		form.Set(values[i], values[i+1])
	}
	return c.do(http.MethodPost, orderPath, token, form)
}

func (c *console) note(ctx context.Context, format string, args ...any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, fmt.Sprintf(format, args...)+" by "+control.GivenBy(ctx))
	if c.order != nil {
		return c.order(ctx)
	}
	return c.err
}

func (c *console) Pause(ctx context.Context, sink string, paused bool) error {
	return c.note(ctx, "pause %s %v", sink, paused)
}

func (c *console) Replay(ctx context.Context, sink string, from control.Place) (control.Replayed, error) {
	return control.Replayed{Again: 12, Behind: 24}, c.note(ctx, "replay %s %s %d", sink, from.Since.Format(time.RFC3339), from.After)
}

func (c *console) Skip(ctx context.Context, sink, id string) (control.Skipped, error) {
	return control.Skipped{ID: id, Subject: "/api/v1/nodes/node-a", Error: "503"}, c.note(ctx, "skip %s %s", sink, id)
}

func (c *console) ReplayDead(ctx context.Context, sink string, ids []string) (control.Retried, error) {
	err := c.note(ctx, "send %s %s", sink, strings.Join(ids, ","))
	if err != nil {
		return control.Retried{Taken: 1}, err
	}
	return control.Retried{Taken: len(ids) - c.left, Refused: c.left}, nil
}

func (c *console) DropDead(ctx context.Context, sink string, ids []string) (int, error) {
	return len(ids), c.note(ctx, "drop %s %s", sink, strings.Join(ids, ","))
}

func (c *console) Remove(ctx context.Context, sink string) error {
	return c.note(ctx, "remove %s", sink)
}

// letters returns the dead letters of hook.
func (c *console) letters() (ids []string) {
	c.t.Helper()
	for _, m := range regexp.MustCompile(`do=drop&amp;id=(\w+)`).FindAllStringSubmatch(c.get(hookURL, "boss"), -1) {
		ids = append(ids, m[1])
	}
	if len(ids) != 3 {
		c.t.Fatalf("dead letters: %v", ids)
	}
	return ids
}

// inputs returns the form of a page of confirmation, in pairs.
func inputs(t *testing.T, body string) (pairs []string) {
	t.Helper()
	if !strings.Contains(body, `<form method="post" action="/status/order"`) {
		t.Fatalf("no form in %s", body)
	}
	for _, m := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`).FindAllStringSubmatch(body, -1) {
		pairs = append(pairs, html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	return pairs
}

// mainOf returns the main part of a page.
func mainOf(t *testing.T, body string) string {
	t.Helper()
	_, rest, ok := strings.Cut(body, `<main id="main">`)
	part, _, end := strings.Cut(rest, "</main>")
	if !ok || !end {
		t.Fatalf("no main part in %s", body)
	}
	return part
}

// TestSinkPage: what a viewer sees of a sink, and which orders are offered to whom.
func TestSinkPage(t *testing.T) {
	c := newConsole(t)
	golden(t, "sink.html", mainOf(t, c.get(hookURL, "boss")))
	golden(t, "sink-reader.html", mainOf(t, c.get(hookURL, "reader")))
	golden(t, "sink-former.html", mainOf(t, c.get("/status/sink?name=former", "boss")))
	body := c.get(hookURL, "reader")
	for _, hidden := range []string{"/status/order", "api-0", "node-a", "<script>alert", "\x1b", "\u202e"} {
		if strings.Contains(body, hidden) {
			t.Errorf("a reader sees %q", hidden)
		}
	}
	has(t, body, "&lt;script&gt;alert(3)", "created configmaps settings in shop", "a change that you may not see")
	w := c.do(http.MethodGet, "/status/sink?name=hok", "reader", nil)
	if w.Code != http.StatusNotFound {
		t.Errorf("an unknown sink: %d", w.Code)
	}
	has(t, w.Body.String(), "There is no sink &#34;hok&#34;; did you mean &#34;hook&#34;?")
	if w := c.do(http.MethodGet, hookURL+"&after=x", "reader", nil); w.Code != http.StatusBadRequest {
		t.Errorf("an invalid part: %d", w.Code)
	}
}

// TestOrders gives each order as a browser does: the page of confirmation, its form, and the page that it leads to.
func TestOrders(t *testing.T) {
	c := newConsole(t)
	ids, stuck := c.letters(), c.status.Sinks[0].Stuck.ID
	by := " by boss, on the web page"
	for _, tc := range []struct{ name, query, seen, says string }{
		{"pause", "do=pause&sink=hook", "pause hook true", "hook is paused: new changes wait in the journal"},
		{"resume", "do=resume&sink=log", "pause log false", "log is resumed"},
		{"remove", "do=remove&sink=former", "remove former", "former is removed"}, // the fake keeps it
		{"skip", "do=skip&sink=hook&id=" + stuck, "skip hook " + stuck, "hook continues without change " + stuck + " (/api/v1/nodes/node-a)"},
		{"replay-since", "do=replay&sink=hook&since=2026-11-24+10:20", "replay hook 2026-11-24T10:20:00Z 0", "hook receives up to 12 changes again, and up to 24 in all"},
		{"replay-position", "do=replay&sink=hook&position=15", "replay hook 0001-01-01T00:00:00Z 15", "hook receives"},
		{"replay-all", "do=replay&sink=hook&all=1", "replay hook 0001-01-01T00:00:00Z 0", "hook receives"},
		{"send", "do=send&sink=hook&id=" + ids[1], "send hook " + ids[1], "1 of 1 dead letter accepted"},
		{"send-all", "do=send&sink=hook", "send hook " + strings.Join(ids, ","), "3 of 3 dead letters accepted"},
		{"drop", "do=drop&sink=hook&id=" + ids[0], "drop hook " + ids[0], "1 dead letter removed for good"},
		{"drop-all", "do=drop&sink=hook", "drop hook " + strings.Join(ids, ","), "3 dead letters removed for good"},
	} {
		c.seen = nil
		page := c.get(orderPath+"?"+tc.query, "boss")
		golden(t, "order-"+tc.name+".html", mainOf(t, page))
		if len(c.seen) > 0 {
			t.Errorf("%s: a GET gave an order: %v", tc.name, c.seen)
		}
		w := c.post("boss", inputs(t, page)...)
		if w.Code != http.StatusSeeOther || len(c.seen) != 1 || c.seen[0] != tc.seen+by {
			t.Errorf("%s: %d %v, want %s %s", tc.name, w.Code, c.seen, tc.seen+by, w.Body)
			continue
		}
		after := w.Header().Get("Location")
		has(t, c.get(after, "boss"), tc.says)
		if strings.Contains(c.get(after, "reader"), tc.says) {
			t.Errorf("%s: another viewer sees the result", tc.name)
		}
		if len(c.seen) != 1 {
			t.Errorf("%s: the page after it repeats the order: %v", tc.name, c.seen)
		}
	}
	has(t, c.log.String(), `viewer=boss path=/status/order status=303`, `order=drop sink=hook`)
}

// TestOrdersRefused: orders that are not carried out, and why.
func TestOrdersRefused(t *testing.T) {
	c := newConsole(t)
	ids := c.letters()
	for _, tc := range []struct {
		why  string
		err  error // the daemon's
		form []string
		code int
		says string
	}{
		{"an unknown sink", nil, []string{"do", "pause", "sink", "<hok>"}, http.StatusNotFound, "There is no sink &#34;&lt;hok&gt;&#34;"},
		{"an unknown order", nil, []string{"do", "stop", "sink", "hook"}, http.StatusBadRequest, "there is no order do=stop"},
		{"an input of another order", nil, []string{"do", "pause", "sink", "hook", "since", "2026-11-24T10:20:00Z"}, http.StatusBadRequest, "since: the order do=pause does not have it"},
		{"two places to begin", nil, []string{"do", "replay", "sink", "hook", "since", "2026-11-24T10:20:00Z", "position", "3"}, http.StatusBadRequest, "position and since: give only one of them"},
		{"one letter, and all", nil, []string{"do", "drop", "sink", "hook", "id", "x", "until", "2026-11-24T10:20:00Z"}, http.StatusBadRequest, "id and until: give only one of them"},
		{"no order", nil, []string{"sink", "hook"}, http.StatusBadRequest, "there is no order"},
		{"nothing to skip", nil, []string{"do", "skip", "sink", "hook"}, http.StatusBadRequest, "names no change"},
		{"a replay from nowhere", nil, []string{"do", "replay", "sink", "hook"}, http.StatusBadRequest, "where the replay begins"},
		{"a replay from an invalid time", nil, []string{"do", "replay", "sink", "hook", "since", "soon"}, http.StatusBadRequest, "since=soon is not a time"},
		{"which letters?", nil, []string{"do", "drop", "sink", "hook"}, http.StatusBadRequest, "which dead letters"},
		{"a letter that is gone", nil, []string{"do", "send", "sink", "hook", "id", "zzz"}, http.StatusConflict, "Sink hook has no dead letter &#34;zzz&#34;."},
		{"the sink has accepted the change meanwhile", control.Refuse("sink hook has accepted change x meanwhile"), []string{"do", "skip", "sink", "hook", "id", c.status.Sinks[0].Stuck.ID}, http.StatusConflict, "Sink hook has accepted change x meanwhile."},
		{"it is configured again", control.Refuse("sink former is configured"), []string{"do", "remove", "sink", "former"}, http.StatusConflict, "Sink former is configured."},
		{"the daemon has gone meanwhile", &control.NoDaemonError{Journal: "j.db"}, []string{"do", "pause", "sink", "hook"}, http.StatusServiceUnavailable, "no daemon records into j.db"},
		{"the daemon is starting", control.ErrStarting, []string{"do", "pause", "sink", "hook"}, http.StatusConflict, "The daemon is starting"},
		{"the daemon hangs", fmt.Errorf("the daemon: %w, and did not get the order", control.ErrSilent), []string{"do", "pause", "sink", "hook"}, http.StatusGatewayTimeout, "The daemon: it does not answer, and did not get the order."},
		{"it takes too long", context.DeadlineExceeded, []string{"do", "send", "sink", "hook", "id", ids[0]}, http.StatusGatewayTimeout, "1 of 1 dead letter accepted. It takes too long"},
		{"another failure", errors.New("disk <full>"), []string{"do", "pause", "sink", "hook"}, http.StatusBadGateway, "The order failed: disk &lt;full&gt;."},
	} {
		c.seen, c.err = nil, tc.err
		w := c.post("boss", tc.form...)
		if w.Code != tc.code || tc.err == nil && len(c.seen) > 0 {
			t.Errorf("%s: %d, want %d; %v", tc.why, w.Code, tc.code, c.seen)
		}
		has(t, w.Body.String(), tc.says)
	}
	for _, tc := range []struct {
		query, says string
		code        int
	}{
		{"do=stop&sink=hook", "there is no order do=stop", http.StatusBadRequest},
		{"do=pause&sink=hok", "There is no sink", http.StatusNotFound},
		{"do=skip&sink=log&id=x", "does not block sink log, or no longer", http.StatusConflict},
		{"do=drop&sink=log", "has no dead letters, or no longer", http.StatusConflict},
		{"do=send&sink=hook&id=zzz", "has no dead letter", http.StatusConflict},
		{"do=replay&sink=hook", "say where the replay begins", http.StatusBadRequest},
		{"do=replay&sink=hook&since=10:20&all=1", "all and since: give only one of them", http.StatusBadRequest},
		{"do=replay&sink=hook&since=10:20&position=3", "position and since: give only one of them", http.StatusBadRequest},
		{"do=replay&sink=hook&since=10:20&since=10:30", "since: it has 2 values", http.StatusBadRequest},
		{"do=replay&sink=hook&all=0", "is not 1", http.StatusBadRequest},
		{"do=replay&sink=hook&position=3&id=x", "id: the order do=replay does not have it", http.StatusBadRequest},
		{"do=pause&sink=hook&since=10:20", "since: the order do=pause does not have it", http.StatusBadRequest},
		{"do=pause&sink=hook&reason=x", "there is no parameter &#34;reason&#34;", http.StatusBadRequest},
		{"do=replay&sink=hook&since=soon", "is not a time", http.StatusBadRequest},
		{"do=replay&sink=hook&position=-3", "is not a position", http.StatusBadRequest},
	} {
		w := c.do(http.MethodGet, orderPath+"?"+tc.query, "boss", nil)
		if w.Code != tc.code {
			t.Errorf("%s: %d, want %d", tc.query, w.Code, tc.code)
		}
		has(t, w.Body.String(), tc.says)
	}
}

// TestOrdersNeedRights: viewers without the right give no order, nor do pages of other sites.
func TestOrdersNeedRights(t *testing.T) {
	c := newConsole(t)
	pause := url.Values{"do": {"pause"}, "sink": {"hook"}}
	for _, token := range []string{"reader", "nobody"} {
		if w := c.do(http.MethodPost, orderPath, token, pause); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "needs post on /tattler/sinks") {
			t.Errorf("%s: %d %s", token, w.Code, w.Body)
		}
		if w := c.do(http.MethodGet, orderPath+"?do=pause&sink=hook", token, nil); w.Code != http.StatusForbidden {
			t.Errorf("%s asks for confirmation: %d", token, w.Code)
		}
	}
	for _, header := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "none"},
		{"Sec-Fetch-Site", "", "Origin", "https://evil.example.com"}, {"Sec-Fetch-Site", "", "Origin", "null"},
		{"Host", "evil.example.com", "Sec-Fetch-Site", "cross-site"},
	} {
		if w := c.do(http.MethodPost, orderPath, "boss", pause, header...); w.Code != http.StatusForbidden {
			t.Errorf("%v: %d", header, w.Code)
		}
	}
	// Values in the URL of a POST do not count.
	if w := c.do(http.MethodPost, orderPath+"?"+pause.Encode(), "boss", nil); w.Code == http.StatusSeeOther {
		t.Errorf("an order in the URL: %d", w.Code)
	}
	for _, target := range []string{"/status", hookURL, "/"} {
		if w := c.do(http.MethodPost, target, "boss", pause); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", target, w.Code)
		}
	}
	if len(c.seen) > 0 {
		t.Errorf("orders: %v", c.seen)
	}
	if w := c.do(http.MethodPost, orderPath, "boss", pause); w.Code != http.StatusSeeOther || len(c.seen) != 1 {
		t.Errorf("the same request of the page: %d %v", w.Code, c.seen)
	}
}

// TestLettersRefusedAgain: what the receiver refuses again is said, and is not an error of the page.
func TestLettersRefusedAgain(t *testing.T) {
	c := newConsole(t)
	c.left = 2
	w := c.post("boss", "do", "send", "sink", "hook", "until", c.now.Format(time.RFC3339))
	if w.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	has(t, c.get(w.Header().Get("Location"), "boss"), "1 of 3 dead letters accepted", "2 dead letters refused again")
	// Letters that were set aside after the page of confirmation are not meant.
	c.seen, c.left = nil, 0
	c.post("boss", "do", "drop", "sink", "hook", "until", morning.Add(time.Second).Format(time.RFC3339))
	if len(c.seen) != 1 || c.seen[0] != "drop hook "+c.letters()[0]+" by boss, on the web page" {
		t.Errorf("%v", c.seen)
	}
}

// TestManyLetters: the list is read in parts, each letter once.
func TestManyLetters(t *testing.T) {
	c := newConsole(t)
	j, err := journal.Open(t.Context(), c.path, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(2*lettersPerPage + 7) {
		if _, err := j.SetAside(t.Context(), journal.DeadLetter{Sink: "log", Seq: 1000 + n, ID: fmt.Sprint("gone", n), Reason: "400", At: morning}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	var sizes []int
	seen := map[string]bool{}
	for target := "/status/sink?name=log"; target != ""; {
		body := c.get(target, "boss")
		all := regexp.MustCompile(`do=drop&amp;id=(gone\d+)&`).FindAllStringSubmatch(body, -1)
		for _, m := range all {
			if seen[m[1]] {
				t.Errorf("%s is listed twice", m[1])
			}
			seen[m[1]] = true
		}
		sizes, target = append(sizes, len(all)), ""
		if m := regexp.MustCompile(`<a href="([^"]*)#letters">more dead letters`).FindStringSubmatch(body); m != nil {
			target = html.UnescapeString(m[1])
		}
		if strings.Contains(body, "send again …") {
			t.Error("the page offers to send a change that the journal no longer has")
		}
	}
	if fmt.Sprint(sizes) != "[50 50 7]" {
		t.Errorf("parts of %v", sizes)
	}
}

// TestOrdersUncertain: where an order may have been carried out although it failed, the page says so, and shows the sink as it
// is now; where it certainly was not, the page does not say so.
func TestOrdersUncertain(t *testing.T) { synctest.Test(t, testOrdersUncertain) } // an order may wait until its time is over

func testOrdersUncertain(t *testing.T) {
	const perhaps = "may have"
	for _, tc := range []struct {
		why     string
		err     error // the daemon's
		hangs   bool  // until the order's time is over
		carried bool  // out nevertheless
		perhaps bool
		says    string
	}{
		{"a refusal", control.Refuse("sink hook is not configured"), false, false, false, "Sink hook is not configured."},
		{"no daemon", &control.NoDaemonError{Journal: "j.db"}, false, false, false, "No daemon runs that could carry out the order"},
		{"it did not get the order", fmt.Errorf("the daemon: %w, and did not get the order", control.ErrSilent), false, false, false, "did not get the order"},
		{"it got the order", fmt.Errorf("the daemon: %w; %w", control.ErrSilent, control.ErrUncertain), false, true, true, "it got the order"},
		{"it ended", fmt.Errorf("the daemon: it ended before it answered; %w", control.ErrUncertain), false, true, true, "it got the order"},
		{"it takes too long", nil, true, true, true, "It takes too long"},
		{"it takes too long, for nothing", nil, true, false, true, "It takes too long"},
		{"another failure", errors.New("disk full"), false, true, true, "The order failed: disk full."},
	} {
		c := newConsole(t)
		c.order = func(ctx context.Context) error {
			if tc.hangs {
				<-ctx.Done()
			}
			if tc.carried {
				c.status.Sinks[0].State = "paused"
			}
			return cmp.Or(tc.err, ctx.Err())
		}
		w := c.post("boss", "do", "pause", "sink", "hook")
		body := mainOf(t, w.Body.String())
		state := map[bool]string{true: "<dd>paused</dd>", false: "<dd>retrying</dd>"}[tc.carried]
		if w.Code < 400 || strings.Contains(body, perhaps) != tc.perhaps {
			t.Errorf("%s: %d, want %q: %t\n%s", tc.why, w.Code, perhaps, tc.perhaps, body)
		}
		has(t, body, tc.says, "Sink hook now", state, `href="/status/sink?name=hook"`)
		if c.status.Sinks[0].Stuck == nil || strings.Contains(mainOf(t, c.post("boss", "do", "pause", "sink", "hok").Body.String()), perhaps) {
			t.Errorf("%s: an order for another sink may have been carried out", tc.why)
		}
	}
	c := newConsole(t)
	c.order = func(context.Context) error {
		c.idle = errors.New("permission denied")
		c.unread = errors.New("the disk is away")
		return control.ErrUncertain
	}
	body := mainOf(t, c.post("boss", "do", "pause", "sink", "hook").Body.String())
	has(t, body, "It got the order", "The state of sink hook is not known now", `href="/status/sink?name=hook"`)
}

// TestOrderNotGiven: what fails before an order is given has certainly not been carried out.
func TestOrderNotGiven(t *testing.T) {
	c := newConsole(t)
	c.status.Left, c.unread = nil, errors.New("the disk is away") // the state is the daemon's
	w := c.post("boss", "do", "drop", "sink", "hook", "until", c.now.Format(time.RFC3339))
	body := mainOf(t, w.Body.String())
	has(t, body, "The order was not given: the disk is away.")
	if strings.Contains(body, "may have") || len(c.seen) > 0 {
		t.Errorf("%v %s", c.seen, body)
	}
}

// TestOrderOfAbsentBrowser: an order that arrives late, when its browser has given up, is not carried out.
func TestOrderOfAbsentBrowser(t *testing.T) {
	c := newConsole(t)
	gone, leave := context.WithCancel(t.Context())
	leave()
	h := c.h
	c.h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithValue(gone, http.LocalAddrContextKey, r.Context().Value(http.LocalAddrContextKey))))
	})
	c.post("boss", "do", "pause", "sink", "hook")
	if len(c.seen) > 0 {
		t.Errorf("%v", c.seen)
	}
}
