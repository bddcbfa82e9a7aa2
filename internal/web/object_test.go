package web

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/journal"
)

const settingsURL = "/object?type=configmaps&namespace=shop&name=settings"

// versionLinks returns the URLs of an object's versions, the oldest first.
func versionLinks(body string) (links []string) {
	for _, m := range regexp.MustCompile(`class="version" href="([^"]*)"`).FindAllStringSubmatch(body, -1) {
		links = append(links, strings.ReplaceAll(m[1], "&amp;", "&"))
	}
	return links
}

func has(t *testing.T, body string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
}

// TestObject: each version has its YAML with the differences, any two can be compared, and blame names the changes.
func TestObject(t *testing.T) {
	p := recorded(t)
	newest := p.get(settingsURL).Body.String()
	links := versionLinks(newest)
	id := func(link string) string {
		u, err := url.Parse(link)
		if err != nil {
			t.Fatal(err)
		}
		return u.Query().Get("version")
	}
	if len(links) != 3 {
		t.Fatalf("%d versions", len(links))
	}
	has(t, newest, `id="slider" min="0" max="2" value="2"`, "The object was deleted. This is its last state.", `<span class="remove"><b>-</b>`, `version=`+id(links[1])+`" rel="prev"`, ` hidden rel="next"`)
	has(t, p.get(links[1]).Body.String(), "<span class=\"remove\"><b>-</b>  level: info\n", "<span class=\"add\"><b>&#43;</b>  level: debug\n", "kubectl-edit", "apiVersion: v1")
	first := p.get(links[0]).Body.String()
	has(t, first, "level: info", `rel="next"`)
	if strings.Contains(first, `class="add"`) || !strings.Contains(first, ` hidden rel="prev"`) {
		t.Error("the first version differs from another one")
	}
	has(t, p.get(links[0]+"&with="+id(links[1])).Body.String(), "Compared with", "<span class=\"add\"><b>&#43;</b>  level: info\n")
	blame := p.get(links[1] + "&view=blame").Body.String()
	has(t, blame, "kubectl-edit", "/changes/"+id(links[1]), "/changes/"+id(links[0]), "level: debug")
	has(t, p.get(links[2]+"&view=blame").Body.String(), "last state", "level: debug")
}

// TestExisted: a version that existed when it was first seen was written before that; its creation is no time of a change.
func TestExisted(t *testing.T) {
	b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
	b.append(journal.Row{After: b.raw(configMap("level", "info")), Meta: journal.Meta{
		Op: event.Snapshot, Kind: cmKind, Namespace: "shop", Name: "settings", UID: "u", ResourceVersion: "1", Time: b.at.Add(-time.Hour), At: b.at,
	}})
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
	p := newPage(t, b.path, b.at)
	const before = `before <time class="dt" datetime="2026-11-24T10:00:00Z">2026-11-24 10:00:00</time>`
	object := p.get(settingsURL).Body.String()
	has(t, object, before+` <span class="op snapshot">`, `<dt>time</dt><dd>`+before)
	link := regexp.MustCompile(`/changes/[a-z2-7]+`).FindString(object)
	has(t, p.get(link).Body.String(), `<dt>time</dt><dd>`+before)
}

// TestIntervals: a change of which only an interval is known has that interval everywhere, not one of its ends.
func TestIntervals(t *testing.T) {
	b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
	b.set(cmKind, "shop", "settings", "helm", configMap("level", "info"), nil)
	was := b.objects["configmaps/shop/settings"]
	now := obj{}
	for k, v := range was {
		now[k] = v
	}
	now["data"] = obj{"level": "debug"}
	b.wait(time.Minute)
	since := b.at
	b.wait(30 * time.Second)
	b.append(journal.Row{Before: b.raw(was), After: b.raw(now), Meta: journal.Meta{
		Op: event.Updated, Kind: cmKind, Namespace: "shop", Name: "settings", UID: "uid-configmaps/shop/settings", ResourceVersion: "2", Time: b.at, At: b.at, Since: since, Net: true, Manager: "helm",
	}})
	b.wait(time.Minute)
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
	p := newPage(t, b.path, b.at)
	const from, to = `<time class="dt" datetime="2026-11-24T10:01:00Z">2026-11-24 10:01:00</time>`, `<time class="dt" datetime="2026-11-24T10:01:30Z">2026-11-24 10:01:30</time>`
	has(t, p.get("/").Body.String(),
		`<span class="t" title="between 2026-11-24 10:01:00 and 2026-11-24 10:01:30 UTC"><time class="t" datetime="2026-11-24T10:01:00Z">10:01:00</time>–<wbr><time class="t until" datetime="2026-11-24T10:01:30Z">10:01:30</time></span>`,
		`at=2026-11-24T10%3A01%3A00Z&amp;since=2026-11-24T09%3A56%3A00Z&amp;until=2026-11-24T10%3A06%3A30Z`)
	object := p.get(settingsURL).Body.String()
	has(t, object, `aria-current="true">between `+from+` and `+to+` <span class="op updated">`, `<dt>time</dt><dd>between `+from+` and `+to)
	first := versionLinks(object)[0]
	newest := versionLinks(object)[1]
	u, err := url.Parse(newest)
	if err != nil {
		t.Fatal(err)
	}
	has(t, p.get(first+"&with="+u.Query().Get("version")).Body.String(), `>between `+from+` and `+to+` (updated)</a>`)
	has(t, p.get(newest+"&view=blame").Body.String(), `>between `+from+` and `+to+`</a>`)
}

// TestObjectRelated: owners and owned objects lead to their pages.
func TestObjectRelated(t *testing.T) {
	p := recorded(t)
	has(t, p.get("/object?type=replicasets.apps&namespace=shop&name=web-2&view=related").Body.String(),
		">deployments.apps/web</a>", ">pods/web-2-0</a>", "owned by it", "owner")
}

// TestObjectErrors: what a URL has wrong, and what the journal does not have.
func TestObjectErrors(t *testing.T) {
	p := recorded(t)
	id := ""
	for e, err := range p.past.rows(t.Context(), journal.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Name != "settings" && e.Op.HasObject() {
			id = e.ID
		}
	}
	for _, tc := range []struct {
		url, text string
		code      int
	}{
		{"/object", "an object has a type and a name", http.StatusBadRequest},
		{settingsURL + "&view=x", "no view", http.StatusBadRequest},
		{settingsURL + "&version=" + id, "is not one of this object", http.StatusBadRequest},
		{settingsURL + "&with=" + id, "is not one of this object", http.StatusBadRequest},
		{"/object?type=configmaps&namespace=*&name=settings", "has no version of this object", http.StatusNotFound}, // a name, not a pattern
	} {
		w := p.get(tc.url)
		if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.text) {
			t.Errorf("%s: %d %s", tc.url, w.Code, w.Body.String())
		}
	}
}

// TestObjectHostile: names and values stay text on the object's page.
func TestObjectHostile(t *testing.T) {
	p := recorded(t)
	for _, view := range []string{viewDiff, viewBlame, viewRelated} {
		body := p.get("/object?" + url.Values{"type": {"configmaps"}, "namespace": {"shop"}, "name": {hostileName}, "view": {view}}.Encode()).Body.String()
		has(t, body, `&lt;img src=x onerror=alert(1)&gt;\u202ecod.exe`)
		for _, bad := range []string{"<img", "<script>alert", "<b>bold", "\u202e", "\x1b"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s has %q", view, bad)
			}
		}
	}
}

// TestObjectManyVersions: of thousands of versions, only those around the shown one are sent.
func TestObjectManyVersions(t *testing.T) {
	b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
	const n = 1000
	for i := range n {
		b.wait(time.Second)
		b.set(cmKind, "shop", "many", "kubectl", configMap("n", fmt.Sprint(i)), nil)
	}
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
	p := newPage(t, b.path, b.at)
	page := p.get("/object?type=configmaps&namespace=shop&name=many").Body.String()
	if links := versionLinks(page); len(links) != windowSize+1 {
		t.Errorf("%d versions", len(links))
	}
	seen := map[string]bool{}
	older := regexp.MustCompile(`<p><a href="([^"]*)">older versions`)
	for range n {
		for _, l := range versionLinks(page) {
			seen[l] = true
		}
		m := older.FindStringSubmatch(page)
		if m == nil {
			break
		}
		page = p.get(strings.ReplaceAll(m[1], "&amp;", "&")).Body.String()
	}
	if len(seen) != n {
		t.Errorf("the links lead to %d of %d versions", len(seen), n)
	}
	if op := event.Created; !strings.Contains(page, string(op)) {
		t.Error("the last page does not begin with the creation")
	}
}
