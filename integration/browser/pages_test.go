package browser

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// pageOf is a page to check.
type pageOf struct{ name, path string }

// hrefs are the paths and queries of the links that match.
func (b *tab) hrefs(selector string) []string {
	b.t.Helper()
	return strings.Fields(b.eval(`[...document.querySelectorAll(` + quote(selector) + `)].map((a) => a.getAttribute("href")).join("\n")`))
}

// href is the first of them.
func (b *tab) href(selector string) string {
	b.t.Helper()
	all := b.hrefs(selector)
	if len(all) == 0 {
		b.t.Fatalf("no link matches %s on %s", selector, b.eval("location.href"))
	}
	return all[0]
}

// pages finds one page of each sort by following links, as a reader would. object is a path of an object.
func (b *tab) pages(object string) []pageOf {
	b.t.Helper()
	all := []pageOf{
		{"timeline", "/"},
		{"timeline-flat", "/?flat=1"},
		{"timeline-objects", "/?lanes=object"},
		{"timeline-managers", "/?lanes=manager&op=updated&severity=failure&where=" + url.QueryEscape(`op == "updated"`)},
		{"timeline-empty", "/?q=nothing-has-this-name"},
		{"timeline-unknown", "/?type=nothings"},
		{"status", "/status"},
		{"error", "/no-such-page"},
		{"mistake", "/?since=yesterdayish"},
		{"object", object},
		{"object-blame", object + "&view=blame"},
		{"object-related", object + "&view=related"},
	}
	b.visit("/")
	b.whole()
	all = append(all, pageOf{"unfolded", b.href(".entry:has(.count) a.unfold")})
	b.visit(object)
	all = append(all, pageOf{"object-compared", b.href("#versions a.with")})
	change := b.href("dd a.permalink")
	b.visit(change)
	for _, view := range b.hrefs(".tabs a:not(.permalink)") {
		u, err := url.Parse(view)
		if err != nil {
			b.t.Fatal(err)
		}
		all = append(all, pageOf{"change-" + u.Query().Get("view"), view})
	}
	return all
}

// alike are pages that look like others. They are checked in one look.
var alike = map[string]bool{"timeline-flat": true, "timeline-unknown": true, "mistake": true, "change-before": true, "change-after": true}

// errorPages are those whose status the browser reports.
var errorPages = map[string]string{"error": "404", "mistake": "400"}

// narrow requires that nothing scrolls sideways.
func (b *tab) narrow(where string, width int) {
	b.t.Helper()
	if got := b.number("document.scrollingElement.scrollWidth"); got > float64(width) {
		b.t.Errorf("%s is %v px wide on a screen of %d; the widest elements: %s", where, got, width, b.eval(`
			[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > `+fmt.Sprint(width)+` + .5 && e.checkVisibility())
				.slice(-4).map((e) => e.tagName + "." + e.className + ": " + e.textContent.trim().slice(0, 60)).join("; ")`))
	}
}

// TestPages checks each page in each look: accessible, no wider than a phone, nothing unusual in the console.
func TestPages(t *testing.T) {
	t.Parallel()
	address := ui(t, morning(t))
	first := open(t, address, look{})
	pages := first.pages("/object?type=configmaps&namespace=shop&name=web-settings")
	if names := len(slices.CompactFunc(slices.Clone(pages), func(a, b pageOf) bool { return a.name == b.name })); names < 17 {
		t.Errorf("only %d pages: %v", names, pages)
	}
	for _, l := range looks {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			b := open(t, address, l)
			for _, p := range pages {
				if l != looks[0] && alike[p.name] {
					continue
				}
				b.visit(p.path)
				if code := errorPages[p.name]; code != "" {
					b.expect(code)
				}
				if l.phone {
					b.narrow(p.name, phoneWidth)
				}
				b.accessible(p.name)
				b.shoot(p.name + "-" + l.String())
			}
		})
	}
}
