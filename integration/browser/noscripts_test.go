package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestNoScripts: without scripts everything is readable and reachable, by links and forms.
func TestNoScripts(t *testing.T) {
	t.Parallel()
	address := ui(t, morning(t))
	with := open(t, address, look{})
	with.visit("/?flat=1") // more than a page
	with.whole()
	b := open(t, address, look{noScripts: true})
	b.visit("/")
	b.is(`Boolean(window.htmx) || document.documentElement.classList.contains("js")`, "false")
	b.is(`[...document.querySelectorAll(".js")].filter((e) => e.checkVisibility()).length`, "0")
	b.is(`document.querySelector(".live .say").textContent`, "reload the page for newer changes")
	b.is(`document.querySelector("#zone").textContent`, "UTC")

	// The first page and the ones after it have all entries. The scripts add no entry of their own.
	b.visit("/?flat=1")
	list := b.eval(entries)
	for b.eval(`Boolean(document.querySelector("#entries .older a"))`) == "true" {
		b.follow(`#entries .older a`)
		list += "\n" + b.eval(entries)
	}
	with.is(entries, list)
	b.follow(".pager a")
	b.is("location.search", "?flat=1")

	b.visit("/")
	b.follow(".entry:has(.count) a.unfold")
	b.is(`document.querySelector("h1").textContent`, "Changes of an entry")
	b.is(`document.querySelectorAll(".entry").length > 3`, "true")
	b.follow(".entry:has(.sign.updated) a.unfold")
	b.is(`Boolean(document.querySelector(".detail .tabs"))`, "true")
	b.follow(".detail .tabs a[href*='view=split']")
	b.is(`Boolean(document.querySelector("table.split"))`, "true")
	b.follow(".links a[href^='/object']")
	b.is(`document.querySelector(".slider").checkVisibility()`, "false")
	b.follow("a[rel='prev']")
	b.follow("#versions li:not(.current) a.with")
	b.is(`Boolean(document.querySelector(".base"))`, "true")
	b.follow(".tabs a[href*='view=blame']")
	b.is(`Boolean(document.querySelector("table.blame"))`, "true")
	b.follow(".top nav a[href='/status']")
	b.is(`document.querySelector("h1").textContent`, "Streams and sinks")
	b.follow(".brand")

	b.run(chromedp.SendKeys(chromedp.CSS(`[name="namespace"]`), "pay"))
	b.click(`[name="op"][value="updated"]`)
	b.follow(".filter button.primary")
	if q := b.location().Query(); q.Get("namespace") != "pay" || q.Get("op") != "updated" {
		t.Errorf("the form leads to %v", q)
	}
	if got := b.eval(entries); !strings.Contains(got, "secret/ledger-db") || strings.Contains(got, "shop") {
		t.Errorf("filtered:\n%s", got)
	}
	b.follow("a.mode[title='an entry for each change']") // the filter has the empty fields of the form no longer
	b.is("location.search", "?flat=1&namespace=pay&op=updated")
}
