package browser

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// fakeSource replaces the connection of a live page. The test sends its events by window.feed.
const fakeSource = `(() => {
  window.sources = [];
  window.EventSource = class {
    static CLOSED = 2;
    constructor(url) { this.url = String(url); this.readyState = 1; this.on = {}; sources.push(this); }
    addEventListener(name, f) { this.on[name] = f; }
    close() { this.readyState = 2; }
  };
  window.feed = (name, data, lastEventId) => sources.at(-1).on[name]({ data, lastEventId });
  window.show = (visible) => {
    Object.defineProperty(document, "hidden", { value: !visible, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  };
  const later = setTimeout;
  window.setTimeout = (f, ms, ...more) => later(f, ms === 10000 ? 0 : ms, ...more); // the test does not wait
  window.entry = (n) => '<li class="entry plain" id="c' + n + '" data-order="' + 2 * n + '" data-at="2026-11-24T12:00:00Z"><div class="row"><span class="obj">' + n + '</span></div><div class="below"></div></li>';
  window.story = (id, n) => entry(n).replace('id="c' + n, 'id="s' + id).replace('data-order="' + 2 * n, 'data-order="' + (2 * n + 1)).replace('>' + n + '<', '>' + id + '<');
  window.shown = () => [...document.querySelectorAll("#entries > .entry .obj")].map((e) => e.textContent);
})()`

// TestLiveScript: the page says when it may miss changes: it does not claim to be live, and does not join lists that lack
// entries between them.
func TestLiveScript(t *testing.T) {
	t.Parallel()
	w := newWriter(t, time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC))
	for range 100 { // more than a page
		w.wait(time.Minute)
		w.put(configMapKind, "shop", "c"+w.at.Format("1504"), "kubectl", meta{}, obj{"data": obj{"n": "1"}})
	}
	b := open(t, ui(t, w.close()), look{width: 1300, height: 500})
	b.run(command(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: fakeSource}))
	b.visit("/?flat=1")
	const say = `document.querySelector(".live .say").textContent + " " + document.querySelector(".live").className`
	const older = `document.querySelector("#entries > .older")?.textContent`
	b.eval(`sources[0].onopen(); 1`)
	b.is(say, "live live on")

	// An entry that arrives again stays where it is, and open if the reader opened it. One that goes on moves up; one that became a
	// part of another leaves.
	b.eval(`feed("entry", entry(1001)); feed("entry", entry(1002)); feed("entry", entry(1001)); 1`)
	b.is(`shown().slice(0, 2).join()`, "1002,1001")
	b.eval(`document.querySelector("#c1001 .below").textContent = "open"; feed("entry", entry(1001)); 1`)
	b.is(`document.querySelector("#c1001 .below").textContent`, "open")
	b.eval(`feed("entry", story("A", 1002)); feed("entry", story("B", 1003)); feed("entry", story("A", 1004)); 1`)
	b.is(`shown().slice(0, 4).join()`, "A,B,1002,1001")
	b.eval(`feed("gone", "sA sB sC"); 1`)
	b.is(`shown().slice(0, 2).join()`, "1002,1001")
	b.click("#pause")
	b.eval(`feed("entry", story("A", 1005)); feed("gone", "c1001"); feed("entry", story("A", 1006)); feed("gone", "sA"); 1`)
	b.is(`shown().slice(0, 2).join() + document.querySelector("#fresh").hidden`, "1002,1001true")
	b.eval(`feed("entry", entry(1001)); 1`)
	b.click("#pause")
	b.is(`shown().slice(0, 2).join()`, "1002,1001")

	// A list that was cut is not followed by older pages, which begin elsewhere.
	b.is(older, "Older changes")
	b.eval(`for (let n = 2000; n < 2499; n++) feed("entry", entry(n)); 1`)
	b.is(`shown().length + " " + shown()[499]`, "500 1002")
	b.is(older, "Reload the page for older changes")

	// Entries that waited are not joined to shown ones if some in between were dropped.
	b.visit("/?flat=1")
	b.eval(`sources[0].onopen(); 1`)
	b.click("#pause")
	b.eval(`for (let n = 3000; n < 3501; n++) feed("entry", entry(n)); 1`)
	b.is(say, "paused live")
	b.is(`document.querySelector("#fresh").textContent`, "more than 500 new entries")
	b.click("#pause")
	b.is(`shown().length + " " + shown()[0] + " " + shown()[499]`, "500 3500 3001")
	b.is(older, "Reload the page for older changes")

	// Pausing does not hide that the page is not live.
	b.eval(`feed("stale", ""); 1`)
	for _, pressed := range []string{"false", "true", "false"} {
		b.is(`document.querySelector("#pause").getAttribute("aria-pressed")`, pressed)
		b.is(say, "much has changed: reload the page live off")
		b.click("#pause")
	}
	b.is(`sources[0].readyState`, "2")

	// A page that the browser kept, and shows again, connects again.
	b.eval(`dispatchEvent(new PageTransitionEvent("pagehide", { persisted: true })); dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true })); sources[1].onopen(); 1`)
	b.eval(`feed("entry", entry(4000)); 1`)
	b.is(`sources.length + " " + sources[1].readyState`, "2 1")

	// A page in the background gives its connection back, and later resumes where it was.
	b.click("#pause")
	b.eval(`feed("entry", entry(4001), "3999"); show(false); 1`)
	b.until(`sources[1].readyState === 2`)
	b.is(say, "not live in the background live")
	b.eval(`show(true); sources[2].onopen(); 1`)
	b.is(say+` + " " + new URL(sources[2].url).searchParams.get("after")`, "live live on 3999")
	b.eval(`show(false); show(true); 1`) // only for a moment
	b.is(`sources.length`, "3")

	// A refused page connects again where it was, which a mark says. What it is sent again counts once while it waits.
	b.click("#pause")
	b.eval(`feed("entry", entry(4002), "3999"); feed("mark", "", "4002"); feed("entry", entry(4003), "4002"); sources[2].readyState = 2; sources[2].onerror(); 1`)
	b.until(`sources.length === 4`)
	b.is(`new URL(sources[3].url).searchParams.get("after")`, "4002")
	b.eval(`sources[3].onopen(); feed("entry", entry(4003), "4002"); 1`)
	b.is(say+` + " " + document.querySelector("#fresh").textContent`, "paused live 2 new entries")
	b.click("#pause")
	b.is(`shown().slice(0, 3).join()`, "4003,4002,4001")

	// In the background, it waits until it is shown.
	b.eval(`sources[3].readyState = 2; sources[3].onerror(); show(false); 1`)
	b.is(say, "not live; trying again in 10 seconds live off")
	b.eval(`new Promise((done) => setTimeout(() => done(sources.length), 10000)).then((n) => { window.inBackground = n; }); 1`)
	b.until(`window.inBackground === 4`)
	b.eval(`show(true); 1`)
	b.is(`sources.length`, "5")
}

// TestLiveRefused: a page whose connection breaks, and that is then refused for a while, becomes live again by itself. It
// shows each change once.
func TestLiveRefused(t *testing.T) {
	t.Parallel()
	w := newWriter(t, time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC))
	put := func(name string) {
		w.wait(time.Minute)
		w.put(configMapKind, "shop", name, "kubectl", meta{}, obj{"data": obj{"n": "1"}})
	}
	put("first")
	target, err := url.Parse(ui(t, w.path))
	if err != nil {
		t.Fatal(err)
	}
	var refuse atomic.Bool
	var refused atomic.Int64
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse.Load() && r.URL.Path == "/live" {
			refused.Add(1)
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close) // after the tab is closed
	b := open(t, srv.URL, look{width: 1300, height: 500})
	const hasty = `(() => { const later = setTimeout; window.setTimeout = (f, ms, ...more) => later(f, ms >= 10000 ? 100 : ms, ...more); })()`
	b.run(command(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: hasty}))
	b.visit("/?flat=1")
	const names = `[...document.querySelectorAll("#entries > .entry .obj")].map((e) => e.textContent.trim().replace("cm/", "")).join()`
	b.until(`document.querySelector(".live.on")`)
	put("second")
	b.until(names + ` === "second,first"`)

	refuse.Store(true)
	srv.CloseClientConnections()
	for end := time.Now().Add(3 * patience); refused.Load() < 3; <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the page tried %d times to become live", refused.Load())
		}
	}
	b.until(`/^not live: the server has too many live pages, or cannot read the journal; trying again in [1-9]\d+ seconds$/.test(document.querySelector(".live.off .say").textContent)`)
	put("third")
	b.is(names, "second,first")
	refuse.Store(false)
	b.until(names + ` === "third,second,first" && document.querySelector(".live.on .say").textContent === "live"`)
	put("fourth")
	b.until(names + ` === "fourth,third,second,first"`)
	b.drop("503")
	b.drop("ERR_INCOMPLETE_CHUNKED_ENCODING")
	b.run(chromedp.Navigate("about:blank")) // the program ends before the tab
	w.close()
}
