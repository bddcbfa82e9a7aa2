package browser

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/journal"
)

// Texts that an attacker, or a broken program, might get into a journal.
const (
	markup   = `"><img src=x onerror=alert(1)><script>alert(2)</script>`
	template = `{{constructor.constructor("alert(3)")()}}${alert(4)}`
	bidi     = "\u202egpj.exe\u2066\u200f"
	control  = "\x1b[31mred\x07\x00\u0085\u2028"
)

var long = strings.Repeat("Verylongword", 400)

// hostile records objects whose names and values are hostile, and returns the journal's path.
func hostile(t *testing.T) string {
	t.Helper()
	w := newWriter(t, dawn)
	owner := &event.Owner{Kind: `Replica<b>Set`, Name: markup, UID: markup}
	evil := journal.Kind{Group: `x"><svg onload=alert(5)>`, Version: "v1", Resource: `evils' onfocus='alert(6)`, Kind: `<script>alert(7)</script>`, Namespaced: true}
	for _, o := range []struct {
		k                        journal.Kind
		namespace, name, manager string
	}{
		{configMapKind, markup, markup, markup},
		{configMapKind, bidi, "a" + bidi, bidi},
		{configMapKind, control, "a" + control, control},
		{configMapKind, long, long, long},
		{evil, template, template, template},
		{podKind, "javascript:alert(8)", "../../?x=1&y=2#z", "//example.com/"},
	} {
		for _, n := range []string{"1", "2"} {
			m := meta{owner: owner, labels: obj{markup: markup, bidi: control}, annotations: obj{long: long}}
			w.put(o.k, o.namespace, o.name, o.manager, m, obj{
				"data":   obj{markup: markup + n, bidi: bidi + n, control: control + n, long: long + n, "lines": "a\n" + markup + n + "\n" + bidi + "\n", template: template + n},
				"status": obj{"phase": markup + n, "message": bidi + n},
			})
			w.wait(time.Minute)
		}
	}
	w.gap(evil)
	w.append(journal.Row{Meta: journal.Meta{
		Op: event.Gap, Kind: podKind, Namespace: markup, Time: w.at, At: w.at, Since: w.at.Add(-time.Minute),
		Gap: &event.GapInfo{From: markup, To: bidi, Reason: markup + control},
	}})
	w.remove(configMapKind, markup, markup, owner)
	w.wait(time.Minute)
	return w.close()
}

// text requires that hostile texts stayed text: no element, attribute or character of theirs is in the page.
func (b *tab) text(where string) {
	b.t.Helper()
	got := b.eval(`(() => {
		const bad = [...document.querySelectorAll("img, iframe, object, embed, svg svg, b b, [onerror], [onload], [onfocus], script:not([src^='/static/'])")].map((e) => e.outerHTML.slice(0, 80));
		for (const a of document.querySelectorAll("a[href]")) if (new URL(a.getAttribute("href"), location).origin !== location.origin) bad.push("a link to " + a.getAttribute("href"));
		const html = document.documentElement.outerHTML;
		for (const c of "\u0000\u0007\u001b\u0085\u2028\u202e\u2066\u200f") if (html.includes(c)) bad.push("U+" + c.charCodeAt(0).toString(16));
		return bad.join("; ");
	})()`)
	if got != "" {
		b.t.Errorf("%s: %s", where, got)
	}
}

// TestHostile: hostile texts stay text on every page, and make none wider than a phone.
func TestHostile(t *testing.T) {
	t.Parallel()
	address := ui(t, hostile(t))
	for _, l := range []look{{}, {phone: true, dark: true}} {
		b := open(t, address, l)
		b.visit("/")
		b.whole()
		if got := b.eval("document.body.innerText"); !strings.Contains(got, `<script>alert(7)</script>`) || !strings.Contains(got, `"><img src=x onerror=alert(1)>`) {
			t.Errorf("the texts are not on the timeline:\n%s", got)
		}
		paths := []string{"/", "/?lanes=object", "/?lanes=manager", "/status"}
		parameters := []string{"q", "where", "at"}
		if l.phone {
			parameters = []string{"q", "type", "namespace", "name", "manager", "path", "where", "since", "op", "severity", "selector", "at", "lanes"}
		}
		for _, name := range parameters {
			for _, s := range []string{markup, bidi + control} {
				paths = append(paths, "/?"+url.Values{name: {s}}.Encode())
			}
		}
		for _, s := range []string{markup, bidi + control, long[:2000]} {
			paths = append(paths, "/changes/"+url.PathEscape(s), "/object?"+url.Values{"type": {s}, "name": {s}}.Encode(), "/unfold?story="+url.QueryEscape(s))
		}
		b.visit("/?flat=1&op=updated&op=deleted&op=created")
		b.whole()
		var changes []string
		for _, u := range b.hrefs("#entries a.unfold") {
			b.visit(u)
			changes = append(changes, b.href(".permalink"))
		}
		if len(changes) < 10 {
			t.Fatalf("only %d changes", len(changes))
		}
		for i, c := range changes {
			if l.phone && i%4 == 1 {
				for _, view := range []string{"fields", "unified", "split", "event"} {
					paths = append(paths, c+"?view="+view)
				}
			}
			paths = append(paths, c)
		}
		for _, c := range []string{changes[1], changes[3], changes[5], changes[len(changes)-1]} {
			b.visit(c)
			for _, o := range b.hrefs(".links a[href^='/object']") {
				paths = append(paths, o, o+"&view=blame", o+"&view=related")
			}
		}
		for _, p := range paths {
			b.visit(p)
			b.text(p)
			if l.phone {
				b.narrow(p, phoneWidth)
			}
			b.drop("the server responded with a status of 40") // unknown names
		}
		// Also what scripts insert.
		b.visit("/")
		b.whole()
		b.shoot("hostile-" + l.String())
		for i := range 4 {
			b.click(fmt.Sprintf("#entries > .entry:nth-of-type(%d) a.unfold", 2+2*i))
			b.until(fmt.Sprintf(`document.querySelector("#entries > .entry:nth-of-type(%d) .below").children.length > 0`, 2+2*i))
		}
		b.text("unfolded")
	}
}
