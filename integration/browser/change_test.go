package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const settings = "/object?type=configmaps&namespace=shop&name=web-settings"

// TestChange: each view of a change opens in place, and is a page of its own.
func TestChange(t *testing.T) {
	t.Parallel()
	b := open(t, ui(t, morning(t)), look{})
	b.visit(settings)
	b.follow("dd a.permalink")
	change := b.location().Path
	b.eval("window.before = true; 1") // no view loads a page
	for _, view := range []struct{ name, label, want string }{
		{"fields", "Fields", "data.LOG_LEVEL\tinfo\twarn\tkubectl-edit"},
		{"unified", "Unified", "-  LOG_LEVEL: info\n+  LOG_LEVEL: warn"},
		{"split", "Side by side", "-\t  LOG_LEVEL: info\t+\t  LOG_LEVEL: warn"},
		{"before", "Before", "LOG_LEVEL: info"},
		{"after", "After", "LOG_LEVEL: warn"},
		{"event", "Event", `"type": "dev.tattler.change.updated.v1"`},
	} {
		b.click(`.tabs a[href$="view=` + view.name + `"]`)
		b.until(`document.querySelector(".tabs [aria-current]").textContent === ` + quote(view.label))
		got := b.eval(`document.querySelector(".detail").innerText.replace(/\n\n/g, "\n")`)
		if !strings.Contains(got, view.want) {
			t.Errorf("%s has no %q:\n%s", view.label, view.want, got)
		}
		b.is("window.before && location.pathname", change)
		page := open(t, b.base, look{})
		page.visit(change + "?view=" + view.name)
		page.is(`document.querySelector(".detail").innerText.replace(/\n\n/g, "\n")`, got)
	}
	b.follow(`a[rel="prev"]`)
	if got := b.eval(`document.querySelector("dl.facts").innerText`); !strings.Contains(got, "helm") {
		t.Errorf("the previous change:\n%s", got)
	}
	b.follow(`a[rel="next"]`)
	b.is("location.pathname", change)
}

// TestObject moves through the versions of an object.
func TestObject(t *testing.T) {
	t.Parallel()
	b := open(t, ui(t, morning(t)), look{})
	b.visit(settings)
	b.eval("window.before = true; 1")
	const (
		level   = `document.querySelector("#version .lines").innerText.match(/^\+? +LOG_LEVEL: (.*)$/m)[1]`
		label   = `document.querySelector("#slider-text").textContent`
		current = `[...document.querySelectorAll("#versions li")].findIndex((l) => l.classList.contains("current") && l.querySelector("[aria-current]"))`
	)
	newest := b.location().RequestURI()
	b.is(level, "warn")

	// The mouse.
	slider := b.box("#slider")
	b.run(chromedp.MouseClickXY(slider.x+3, slider.y+slider.height/2))
	b.until(current + " === 0")
	b.is(level, "info")
	b.is(label, "before 2026-11-24 08:41:12 snapshot helm")
	b.is(`document.querySelector('a[rel="prev"]').hidden`, "true")
	if got := b.location().RequestURI(); got == newest || !strings.Contains(got, "version=") {
		t.Errorf("the slider leads to %s", got)
	}
	b.run(chromedp.DragAndDropXY(slider.x+8, slider.y+slider.height/2, slider.x+slider.width/3, slider.y+slider.height/2))
	b.until(current + " === 1")
	b.is(level, "debug")

	// Keys.
	for _, step := range []struct{ key, at, level string }{{kb.ArrowRight, "2", "info"}, {kb.ArrowRight, "3", "warn"}, {kb.ArrowLeft, "2", "info"}, {kb.Home, "0", "info"}, {kb.End, "3", "warn"}, {kb.ArrowLeft, "2", "info"}} {
		b.run(chromedp.SendKeys(chromedp.CSS("#slider"), step.key))
		b.until(current + " === " + step.at)
		b.until(level + " === " + quote(step.level))
	}
	b.is("window.before", "true")

	// The links beside the slider follow it, and what it shows is at its address.
	here := b.eval(`document.querySelector("#version").innerText`)
	b.visit(b.location().RequestURI())
	b.is(`document.querySelector("#version").innerText`, here)
	b.run(chromedp.SendKeys(chromedp.CSS("#slider"), kb.ArrowRight))
	b.until(current + " === 3")
	b.is(`document.querySelector('a[rel="next"]').hidden`, "true")
	b.follow(`a[rel="prev"]`)
	b.is(current, "2")
	b.run(chromedp.SendKeys(chromedp.CSS("#slider"), kb.End))
	b.until(current + " === 3")

	// Two versions that are not neighbours: the shown one with the first.
	b.follow(`#versions li:first-child a.with`)
	got := b.eval(`document.querySelector("#version").innerText`)
	if !strings.Contains(got, "Compared with the version before 2026-11-24 08:41:12 (snapshot)") || !strings.Contains(got, "LOG_LEVEL: warn") || !strings.Contains(got, "http.timeout=30s") {
		t.Errorf("the first and the last version:\n%s", got)
	}
	b.follow(".base > a:last-child")
	b.is(`document.querySelector(".base")`, "")

	b.follow(`.tabs a[href*="view=blame"]`)
	got = b.eval(`[...document.querySelectorAll(".blame tbody tr")].map((r) => [...r.cells].map((c) => c.textContent.trim()).join(" | ")).join("\n")`)
	for _, want := range []string{"2026-11-24 10:07:06 | kubectl-edit | LOG_LEVEL: warn", "2026-11-24 09:57:57 | helm | app.properties: |", "< 2026-11-24 08:41:12 | ? | apiVersion: v1"} {
		if !strings.Contains(got, want) {
			t.Errorf("blame has no %q:\n%s", want, got)
		}
	}
	// In each column the cells are below each other.
	b.is(`new Set([...document.querySelectorAll(".blame tr")].map((r) => r.cells[2] && Math.round(r.cells[2].getBoundingClientRect().x))).size`, "1")
	b.run(chromedp.SendKeys(chromedp.CSS("#slider"), kb.ArrowLeft))
	b.until(`document.querySelector(".blame") && !document.querySelector(".blame").innerText.includes("warn")`)
	b.follow(".blame td.when a")
	b.is(`document.querySelector("h1 .name").textContent`, "web-settings")

	// An object with relations.
	b.visit("/object?type=deployments.apps&namespace=shop&name=web&view=related")
	got = b.eval(`document.querySelector("#version .detail").innerText`)
	for _, want := range []string{"configmaps/web-settings", "replicasets.apps/web-"} {
		if !strings.Contains(got, want) {
			t.Errorf("related has no %q:\n%s", want, got)
		}
	}
}
