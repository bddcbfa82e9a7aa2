package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// controls are the visible controls that the Tab key must reach. The histogram's bars are left out: a page may have 120, and
// the fields Since and Until do the same, as do the keys + and -.
const controls = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']")]
	.filter((e) => e.checkVisibility({visibilityProperty: true}) && !e.disabled && !e.closest(".chart, dialog:not([open])"))`

// TestKeyboard: Tab reaches each control of each page in the order in which they are read; the focus is visible.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	address := ui(t, morning(t))
	for _, path := range []string{"/?severity=failure", settings, "/status", "/no-such-page"} {
		b := open(t, address, look{})
		b.visit(path)
		if path == "/no-such-page" {
			b.expect("404")
		}
		b.whole()
		b.eval(`window.all = ` + controls + `; 1`)
		n := int(b.number("all.length"))
		var problems []string
		for range n {
			b.press(kb.Tab)
			problems = append(problems, b.eval(`(() => {
				const e = document.activeElement, s = getComputedStyle(e), r = e.getBoundingClientRect();
				const name = e.tagName + " " + (e.name || e.getAttribute("aria-label") || e.textContent.trim().slice(0, 40));
				const at = all.indexOf(e), want = window.next || 0;
				window.next = at + 1;
				let said = "";
				if (at !== want) said += name + " is at place " + at + ", not " + want + ". ";
				if (s.outlineStyle === "none" || parseFloat(s.outlineWidth) < 1) said += name + " has no visible focus. ";
				if (r.width < 1 || r.bottom < 0 || r.top > innerHeight) said += name + " is outside of the window. ";
				const bar = document.querySelector(".top").getBoundingClientRect();
				if (e.closest("main") && r.top < bar.bottom - 1) said += name + " is behind the bar. ";
				return said;
			})()`))
		}
		if said := strings.TrimSpace(strings.Join(problems, "")); said != "" || n < 6 {
			t.Errorf("%s, %d controls: %s", path, n, said)
		}
	}
}

// TestSkip: the first Tab shows a link that skips the bar and the menu.
func TestSkip(t *testing.T) {
	t.Parallel()
	b := open(t, ui(t, morning(t)), look{})
	b.visit(settings)
	b.is(`document.querySelector(".skip").getBoundingClientRect().width`, "1")
	b.press(kb.Tab)
	b.is(`document.activeElement.className`, "skip")
	if r := b.box(".skip"); r.width < 50 || r.x < 0 || r.y < 0 {
		t.Errorf("the link is at %+v", r)
	}
	b.press(kb.Enter)
	b.until(`location.hash !== ""`)
	b.press(kb.Tab)
	b.is(`Boolean(document.activeElement.closest("main"))`, "true")
	b.is(`document.activeElement.getAttribute("rel")`, "prev")
}

// TestKeys uses the timeline without a mouse.
func TestKeys(t *testing.T) {
	t.Parallel()
	b := open(t, ui(t, morning(t)), look{})
	b.visit("/")
	b.whole()
	const folded = `document.querySelector(".entry:has(.count)")`
	const inner = folded + `.querySelectorAll(".entries.inner > .entry").length`
	for _, key := range []string{kb.Enter, " ", "o"} {
		b.eval(`scrollTo(0, 0)`)
		if key == "o" { // it works on the current entry: the second one
			b.press("j")
			b.press("j")
			b.is(`[...document.querySelectorAll("#entries > .entry")].indexOf(document.querySelector(".current"))`, "1")
			b.until("document.activeElement === " + folded + `.querySelector("a.unfold")`)
		} else {
			b.eval(folded + `.querySelector("a.unfold").focus()`)
		}
		b.press(key)
		b.until(inner + " > 3")
		b.press(key)
		b.until(inner + " === 0")
		b.is("location.pathname + scrollY", "/0")
	}
	b.press("?")
	b.is(`document.querySelector("#keys").open`, "true")
	b.press(kb.Escape)
	b.is(`document.querySelector("#keys").open`, "false")
	b.press("/")
	b.is("document.activeElement.name", "q")
	b.press("jk") // a field takes letters as text
	b.is("document.activeElement.value", "jk")
	b.press(kb.Escape)
	b.press("a")
	b.until(`location.search.includes("at=") && document.readyState === "complete"`)
	b.until(`document.querySelector(".entry.marked")`)
}
