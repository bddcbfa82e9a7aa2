package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// entries is the text of the timeline's entries, one a line: time, object, and what is said.
const entries = `[...document.querySelectorAll("#entries > .entry")].map((e) => e.querySelector(".row").innerText.replace(/\s+/g, " ")).join("\n")`

// box is where an element is, in CSS pixels.
type box struct{ x, y, width, height float64 }

func (b *tab) box(selector string) (r box) {
	b.t.Helper()
	text := b.eval(`(() => { const r = document.querySelector(` + quote(selector) + `).getBoundingClientRect(); return [r.x, r.y, r.width, r.height].join(" ") })()`)
	if _, err := fmt.Sscan(text, &r.x, &r.y, &r.width, &r.height); err != nil {
		b.t.Fatalf("the box of %s: %s", selector, text)
	}
	return r
}

// TestZoom drags over the histogram.
func TestZoom(t *testing.T) {
	t.Parallel()
	b := open(t, ui(t, morning(t)), look{zone: "Asia/Tokyo"})
	b.visit("/")
	b.whole()
	all := b.number(`document.querySelectorAll("#entries > .entry").length`)
	start, end := b.eval(`document.querySelector("#chart").dataset.start`), b.eval(`document.querySelector("#chart").dataset.to`)
	chart := b.box("#chart")
	middle := chart.y + chart.height/2
	from, to := chart.x+chart.width*.15, chart.x+chart.width*.25

	// Less than a drag: nothing happens. There is no bar under this point.
	b.run(chromedp.MouseClickXY(chart.x+chart.width*.05, middle))
	b.is("location.search", "")

	b.run(chromedp.DragAndDropXY(from, middle, to, middle))
	b.until(`location.search.includes("since=") && document.readyState === "complete"`)
	q := b.location().Query()
	wantSince, wantUntil := between(t, start, end, .15), between(t, start, end, .25)
	since, errSince := time.Parse(time.RFC3339Nano, q.Get("since"))
	until, errUntil := time.Parse(time.RFC3339Nano, q.Get("until"))
	if errSince != nil || errUntil != nil || since.Sub(wantSince).Abs() > 10*time.Second || until.Sub(wantUntil).Abs() > 10*time.Second || len(q) != 2 {
		t.Errorf("%v, want from %v until %v", q, wantSince, wantUntil)
	}
	b.whole()
	if got := b.eval(entries); !strings.Contains(got, "rolled out in 9 s") || strings.Contains(got, "10:07:06") {
		t.Errorf("after the zoom:\n%s", got)
	}
	if n := b.number(`document.querySelectorAll("#entries > .entry").length`); n == 0 || n >= all {
		t.Errorf("%v entries after the zoom, %v before", n, all)
	}
	// The reader's time zone is 9 hours ahead.
	b.is(`document.querySelector("#entries .t").textContent.slice(0, 3)`, "17:")
	b.is(`document.querySelector("#zone").textContent`, "Asia/Tokyo")

	b.follow(".zoomout")
	wider := b.location().Query()
	a, _ := time.Parse(time.RFC3339Nano, wider.Get("since"))
	z, _ := time.Parse(time.RFC3339Nano, wider.Get("until"))
	if got, before := z.Sub(a), until.Sub(since); got < before*3/2 {
		t.Errorf("zoomed out from %v to %v: %v", before, got, wider)
	}
	b.follow("#chart svg a") // a bar is a link, too
	if b.location().Query().Get("since") == wider.Get("since") {
		t.Errorf("the bar leads to %v", b.location())
	}
}

// TestTimes: a time in the form means the reader's time zone, as all times on the page do.
func TestTimes(t *testing.T) {
	t.Parallel()
	b := open(t, ui(t, morning(t)), look{zone: "Asia/Tokyo"})
	b.visit("/")
	for text, want := range map[string]string{
		"2026-11-24 17:00": "2026-11-24T08:00:00Z", "2026-11-24": "2026-11-23T15:00:00Z", "2026-11-24T17:00:05": "2026-11-24T08:00:05Z", "24h": "24h",
	} {
		b.submit(`document.querySelector("[name=since]").value = ` + quote(text) + `; document.querySelector("form.filter").requestSubmit()`)
		if got := b.location().Query().Get("since"); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
	// In Berlin, the hour from 2 to 3 occurs twice: a time range has both.
	night := open(t, b.base, look{zone: "Europe/Berlin"})
	night.visit("/")
	night.submit(`document.querySelector("[name=since]").value = "2026-10-25 02:10"; document.querySelector("[name=until]").value = "2026-10-25 02:50"; document.querySelector("form.filter").requestSubmit()`)
	if q := night.location().Query(); q.Get("since") != "2026-10-25T00:10:00Z" || q.Get("until") != "2026-10-25T01:50:00Z" {
		t.Errorf("from 02:10 until 02:50 became %v", q)
	}
	b.submit(`document.querySelector("[name=since]").value = "00:00"; document.querySelector("form.filter").requestSubmit()`)
	if got := b.location().Query().Get("since"); !strings.HasSuffix(got, "T15:00:00Z") {
		t.Errorf("midnight in Tokyo became %s", got)
	}
}

func between(t *testing.T, start, end string, share float64) time.Time {
	t.Helper()
	a, err1 := time.Parse(time.RFC3339Nano, start)
	z, err2 := time.Parse(time.RFC3339Nano, end)
	if err1 != nil || err2 != nil {
		t.Fatal(start, end)
	}
	return a.Add(time.Duration(float64(z.Sub(a)) * share))
}

// TestFilters: the form makes a link, and the link makes the same page and form.
func TestFilters(t *testing.T) {
	t.Parallel()
	address := ui(t, morning(t))
	b := open(t, address, look{})
	b.visit("/")
	b.run(
		chromedp.SendKeys(chromedp.CSS(`[name="namespace"]`), "pay"),
		chromedp.SendKeys(chromedp.CSS(`[name="manager"]`), "argocd*,kubectl*"),
	)
	b.click(`[name="op"][value="updated"]`)
	b.click(".morefilters summary")
	b.run(chromedp.SendKeys(chromedp.CSS(`[name="path"]`), "spec.**.image"))
	b.leave(chromedp.SendKeys(chromedp.CSS(`[name="path"]`), kb.Enter))
	const want = "manager=argocd%2A%2Ckubectl%2A&namespace=pay&op=updated&path=spec.%2A%2A.image"
	if got := strings.ReplaceAll(b.location().Query().Encode(), "*", "%2A"); got != want {
		t.Errorf("the form leads to %s\nwant %s", got, want)
	}
	b.whole()
	list := b.eval(entries)
	if n := strings.Count(list, "\n") + 1; n != 2 || !strings.Contains(list, "argocd-controller") || !strings.Contains(list, "kubectl-rollout") {
		t.Errorf("filtered:\n%s", list)
	}
	const form = `JSON.stringify([...new FormData(document.querySelector("form.filter")).entries()].filter((e) => e[1]))`
	filled := b.eval(form)
	b.is(`document.querySelector(".morefilters").open`, "true")

	other := open(t, address, look{dark: true, width: 1000, height: 700})
	other.visit(b.location().RequestURI())
	other.whole()
	other.is(entries, list)
	other.is(form, filled)

	// Each chip removes its filter.
	other.follow(`.chip a[aria-label="remove the filter path"]`)
	if u := other.location(); u.Query().Has("path") || !u.Query().Has("manager") {
		t.Errorf("without the path: %v", u)
	}
	other.follow(".chips > a")
	other.is("location.pathname + location.search", "/")

	// What is in a row narrows, too.
	other.until(`document.querySelector(".ns a")`)
	other.follow(`.ns a`)
	if got := other.location().Query().Encode(); got != "namespace=shop" {
		t.Errorf("the namespace of a row leads to %s", got)
	}
	// "each change" instead of folded ones, and back.
	other.follow(`a.mode[title="an entry for each change"]`)
	other.is(`document.querySelectorAll(".entry .count").length`, "0")
	other.follow(`a.mode[title="one entry for a rollout or an outage"]`)
	other.whole()
	other.until(`document.querySelector(".entry .count")`)
}

// TestUnfold opens and closes entries in place.
func TestUnfold(t *testing.T) {
	t.Parallel()
	b := open(t, ui(t, morning(t)), look{})
	b.visit("/")
	b.whole()
	const folded = `.entry:has(.count) a.unfold`
	const below = `document.querySelector("` + folded + `").closest(".entry").querySelector(":scope > .below")`
	b.is(below+".children.length", "0")
	b.click(folded)
	b.until(below + `.querySelectorAll(".entries.inner > .entry").length > 3`)
	b.is(`document.querySelector("`+folded+`").getAttribute("aria-expanded")`, "true")
	b.is("location.pathname", "/")

	// One of the changes inside, with its diff.
	b.click(".entries.inner .entry:has(.sign.updated) a.unfold")
	b.until(`document.querySelector(".entries.inner .detail")`)
	b.click(`.entries.inner .detail .tabs a[href*="view=unified"]`)
	b.until(`document.querySelector(".entries.inner .tabs a[aria-current]").textContent === "Unified"`)

	b.click(folded)
	b.until(below + ".children.length === 0")
	b.is(`document.querySelector("`+folded+`").getAttribute("aria-expanded")`, "false")
}

// TestDays: a day has one heading, in the reader's time zone, also where a part of the list was added.
func TestDays(t *testing.T) {
	t.Parallel()
	w := newWriter(t, time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC))
	for i := range 100 { // more than a part
		w.wait(5 * time.Minute)
		w.put(configMapKind, "shop", fmt.Sprint("c", i), "kubectl", meta{}, obj{"data": obj{"n": fmt.Sprint(i)}})
	}
	address := ui(t, w.close())
	for zone, want := range map[string]string{
		"UTC":              "Tuesday, 24 November 2026|Monday, 23 November 2026",
		"America/New_York": "Monday, 23 November 2026",
		"Asia/Tokyo":       "Tuesday, 24 November 2026",
	} {
		b := open(t, address, look{zone: zone})
		b.visit("/?flat=1")
		b.whole()
		b.is(`document.querySelectorAll("#entries > .entry").length`, "100")
		const headings = `[...document.querySelectorAll("#entries > .day")].map((d) => d.textContent.trim()).join("|")`
		b.until(headings + " === " + quote(want))
	}
}

// TestThemes: the page follows the system, until the reader chooses.
func TestThemes(t *testing.T) {
	t.Parallel()
	address := ui(t, morning(t))
	const background = `getComputedStyle(document.documentElement).backgroundColor`
	const light, dark = "rgb(255, 255, 255)", "rgb(14, 17, 22)"
	b := open(t, address, look{})
	b.visit("/")
	b.is(background, light)
	d := open(t, address, look{dark: true})
	d.visit("/")
	d.is(background, dark)
	for _, step := range []struct{ label, colour string }{{"light", light}, {"dark", dark}, {"automatic", dark}, {"light", light}} {
		d.click("#theme")
		d.is(background, step.colour)
		d.is(`document.querySelector("#theme").getAttribute("aria-label")`, "Colours: "+step.label)
	}
	d.visit("/status") // the choice remains
	d.is(background, light)
	d.press("t")
	d.is(background, dark)
}
