package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/goldentest"
)

func golden(t *testing.T, name, got string) {
	t.Helper()
	goldentest.Compare(t, filepath.Join("testdata", name), got)
}

// TestGolden compares the HTML of the important parts.
func TestGolden(t *testing.T) {
	p := recorded(t)
	golden(t, "entries.html", p.get("/entries").Body.String())
	golden(t, "histogram.html", p.get("/histogram", "HX-Request", "true").Body.String())
	golden(t, "unfolded.html", p.get(unfoldOf(t, p, "rolled out"), "HX-Request", "true").Body.String())
	link := unfoldOf(t, p, `data[&#34;app.properties&#34;]`)
	for _, view := range []string{viewFields, viewUnified, viewSplit, viewBefore, viewAfter, viewEvent} {
		golden(t, "change-"+view+".html", p.get(link+"?view="+view, "HX-Request", "true").Body.String())
	}
}

// unfoldOf returns the link of the entry with a text.
func unfoldOf(t *testing.T, p *page, text string) string {
	t.Helper()
	body := p.get("/").Body.String()
	for _, entry := range strings.Split(body, `<li class="entry`) {
		if link := regexp.MustCompile(`class="unfold" href="([^"]*)"`).FindStringSubmatch(entry); link != nil && strings.Contains(entry, text) {
			return html.UnescapeString(link[1])
		}
	}
	t.Fatalf("no entry has %q in\n%s", text, body)
	return ""
}

// TestWithoutScripts: each entry leads to its changes, and each change to its diff, by links alone.
func TestWithoutScripts(t *testing.T) {
	p := recorded(t)
	w := p.get(unfoldOf(t, p, "rolled out"))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "<!doctype html>") || strings.Count(w.Body.String(), `<li class="entry`) != 13 {
		t.Errorf("%d: %d entries", w.Code, strings.Count(w.Body.String(), `<li class="entry`))
	}
	link := regexp.MustCompile(`href="(/changes/[a-z2-7]{26})"`).FindStringSubmatch(w.Body.String())
	if link == nil {
		t.Fatal("no link to a change")
	}
	if w = p.get(link[1]); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `class="detail"`) {
		t.Errorf("%s: %d", link[1], w.Code)
	}
	if w = p.get(link[1] + "/event.json"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"specversion"`) {
		t.Errorf("event: %d %s", w.Code, w.Body)
	}
}

// TestFilters: a filter selects, and survives in the form and in every link.
func TestFilters(t *testing.T) {
	p := recorded(t)
	for _, tc := range []struct {
		query   string
		entries int
	}{
		{"namespace=pay", 4}, {"type=cm&name=settings", 3}, {"op=deleted", 4}, {"manager=helm", 2}, {"path=data.level", 4}, {"where=op+%3D%3D+%22deleted%22", 4},
		{"q=settings+kubectl", 1}, {"q=timeout", 1}, {"type=nothing", 1}, {"exclude-namespace=shop,pay", 3},
	} {
		w := p.get("/?" + tc.query)
		body := w.Body.String()
		if n := strings.Count(body, `<li class="entry`); w.Code != http.StatusOK || n != tc.entries {
			t.Errorf("%s: %d, %d entries, want %d", tc.query, w.Code, n, tc.entries)
		}
		want, err := url.ParseQuery(tc.query)
		if err != nil {
			t.Fatal(err)
		}
		for name, values := range want {
			value := html.EscapeString(strings.Join(values, ","))
			if !strings.Contains(body, `name="`+name+`" value="`+value+`"`) {
				t.Errorf("%s: the form does not have %s", tc.query, name)
			}
		}
		for _, link := range regexp.MustCompile(`href="(/unfold[^"]*)"`).FindAllStringSubmatch(body, -1) {
			u, err := url.Parse(html.UnescapeString(link[1]))
			if err != nil {
				t.Fatal(err)
			}
			got := u.Query()
			got.Del("story")
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s: %s", tc.query, d)
			}
		}
	}
}

// TestMistakes: a wrong URL is answered with what is wrong.
func TestMistakes(t *testing.T) {
	p := recorded(t)
	for _, tc := range []struct {
		url  string
		code int
		want string
	}{
		{"/?since=never", 400, "since"}, {"/?op=exploded", 400, "unknown operation"}, {"/?where=1", 400, "where"}, {"/?before=x", 400, "before"},
		{"/unfold", 404, "does not have"}, {"/unfold?story=x", 404, "does not have"}, {"/unfold?story=x&after=-1", 400, "after"}, {"/changes/aaaaaaaaaa", 404, "does not have"}, {"/nowhere", 404, "no such page"}, {"/static/x", 404, ""}, {"/?lanes=x", 400, "lanes"},
	} {
		w := p.get(tc.url)
		if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s: %d %s", tc.url, w.Code, w.Body)
		}
	}
}

// TestForeignParameters: a parameter that a page does not apply is refused: a page that leaves out a misspelled filter looks
// complete.
func TestForeignParameters(t *testing.T) {
	p := recorded(t)
	link := unfoldOf(t, p, `data[&#34;app.properties&#34;]`)
	for url, want := range map[string]string{
		"/?namespce=shop":                "there is no parameter &#34;namespce&#34;; this path has: type, name,",
		"/?utm_source=mail":              "there is no parameter &#34;utm_source&#34;",
		"/?after=1":                      "after: a parameter of /unfold, /live only; ",
		"/?view=blame":                   "view: a parameter of /object, /changes/{id} only; ",
		"/?since=1h&since=2h":            "since: it has 2 values, but only one is possible",
		"/?flat=0":                       "flat: &#34;0&#34; is not 1",
		"/entries?sinc=1h":               "there is no parameter &#34;sinc&#34;",
		"/histogram?sinc=1h":             "there is no parameter &#34;sinc&#34;",
		"/unfold?story=x&sinc=1h":        "there is no parameter &#34;sinc&#34;",
		"/live?after=0&sinc=1h":          "there is no parameter &#34;sinc&#34;",
		"/live?after=0&after=9":          "after: it has 2 values",
		"/live?after=0&until=2026-11-24": "until: a live page has no end",
		settingsURL + "&since=1h":        "since: a parameter of /, /entries, /histogram, /unfold, /live only; ",
		settingsURL + "&namespace=pay":   "namespace: it has 2 values",
		settingsURL + "&quiet=false":     "quiet: &#34;false&#34; is not 1",
		link + "?namespace=shop":         "namespace: a parameter of ",
		link + "?view=before&all=no":     "all: &#34;no&#34; is not 1",
		link + "/event.json?view=before": "view: a parameter of /object, /changes/{id} only; this path has none",
	} {
		if w := p.get(url); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d, want %s: %.300s", url, w.Code, want, w.Body)
		}
	}
}

// TestPages: pages of a long history show every change once.
func TestPages(t *testing.T) {
	b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
	const n = 150
	for i := range n {
		b.set(cmKind, "shop", "c"+string(rune('a'+i%26))+strings.Repeat("x", i/26), "helm", configMap("k", "v"), nil)
		b.wait(time.Second)
	}
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
	p := newPage(t, b.path, b.at)
	seen := map[string]int{}
	for next := "/"; next != ""; {
		body := p.get(next).Body.String()
		for _, id := range regexp.MustCompile(` id="(c\d+)"`).FindAllStringSubmatch(body, -1) {
			seen[id[1]]++
		}
		next = ""
		if link := regexp.MustCompile(`<li class="older"><a href="([^"]*)"`).FindStringSubmatch(body); link != nil {
			next = html.UnescapeString(link[1])
		}
	}
	if len(seen) != n {
		t.Errorf("%d of %d changes", len(seen), n)
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("%s is shown %d times", id, times)
		}
	}
}

// TestLive: a new change arrives at a page, once.
func TestLive(t *testing.T) {
	b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
	b.set(cmKind, "shop", "before", "helm", configMap("k", "v"), nil)
	p := newPage(t, b.path, b.at.Add(time.Minute))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	srv := httptest.NewServer(p)
	defer srv.Close()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/live?after=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b.set(cmKind, "shop", "after", "helm", configMap("k", "v"), nil)
	got := ""
	buf := make([]byte, 4096)
	for !strings.Contains(got, "id: 2\n\n") {
		n, err := resp.Body.Read(buf)
		if got += string(buf[:n]); err != nil {
			t.Fatalf("%v in\n%s", err, got)
		}
	}
	if strings.Contains(got, "before</a>") || strings.Count(got, "event: entry\n") != 1 || !strings.Contains(got, "after</a>") {
		t.Errorf("got %s", got)
	}
	cancel()
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestVendored: the scripts of others are what their checksums say, and come with their licence.
func TestVendored(t *testing.T) {
	sums, err := os.ReadFile("static/vendor/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for line := range strings.Lines(string(sums)) {
		if f := strings.Fields(line); len(f) == 2 {
			known[f[1]] = f[0]
		}
	}
	files, err := os.ReadDir("static/vendor")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name() == "SHA256SUMS" {
			continue
		}
		b, err := os.ReadFile(filepath.Join("static/vendor", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		if known[f.Name()] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s has another checksum", f.Name())
		}
	}
	if known["htmx.min.js"] == "" || known["htmx.LICENSE"] == "" {
		t.Error("htmx or its licence is missing")
	}
}

// TestClasses: each operation of a change has a place in the histogram.
func TestClasses(t *testing.T) {
	for _, op := range []event.Op{event.Created, event.Updated, event.Deleted, event.Entered, event.Left, event.Converted, event.Snapshot} {
		if classOf(op) < 0 {
			t.Errorf("%s is not counted", op)
		}
	}
}

// TestMovingTimes: a link with an age, in any form, stays one, whose time range moves with the clock; its button is marked.
// Times of day become moments.
func TestMovingTimes(t *testing.T) {
	p := recorded(t)
	for _, tc := range []struct{ query, marked, location string }{
		{"since=1h", "1 h", ""}, {"since=1w", "7 d", ""}, {"since=7d", "7 d", ""}, {"since=6h+ago", "6 h", ""}, {"since=60m&until=now", "", ""},
		{"since=2w", "", ""}, {"since=1d12h", "", ""}, {"since=3d&until=2d+ago", "", ""},
		{"since=10:02", "", "/?since=2026-11-24T10%3A02%3A00Z"}, {"since=1w&until=today", "", "/?since=1w&until=2026-11-24T00%3A00%3A00Z"},
	} {
		w := p.get("/?" + tc.query)
		if got := w.Header().Get("Location"); got != tc.location || (w.Code == http.StatusFound) != (tc.location != "") {
			t.Errorf("%s: %d, to %q, want %q", tc.query, w.Code, got, tc.location)
		}
		marked := ""
		if m := regexp.MustCompile(`<span class="ranges">.*?<strong>([^<]*)</strong>`).FindStringSubmatch(w.Body.String()); m != nil {
			marked = m[1]
		}
		if marked != tc.marked {
			t.Errorf("%s: %q is marked, want %q", tc.query, marked, tc.marked)
		}
	}
}
