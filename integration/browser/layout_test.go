package browser

import "testing"

// TestLayout: what belongs together stands below each other, and nothing is cut while there is room.
func TestLayout(t *testing.T) {
	t.Parallel()
	address := ui(t, morning(t))
	for _, l := range []look{{}, {phone: true}} {
		b := open(t, address, l)
		b.visit("/?lanes=object")
		chart, lane := b.box("#chart"), b.box(".lanes svg")
		if d := chart.x - lane.x; d > 1 || d < -1 || chart.width-lane.width > 2 || lane.width-chart.width > 2 {
			t.Errorf("%v: the bars are at %+v, the lanes at %+v", l, chart, lane)
		}
		if !l.phone {
			b.is(`[...document.querySelectorAll(".lanes th")].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.innerText).join()`, "")
		}
		b.is(`(() => {
			const pen = document.createElement("canvas").getContext("2d");
			return [...document.querySelectorAll(".filter input[placeholder]")].filter((e) => {
				const style = getComputedStyle(e);
				pen.font = style.fontSize + " " + style.fontFamily;
				return e.offsetWidth > 0 && pen.measureText(e.placeholder).width > e.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
			}).map((e) => e.placeholder).join();
		})()`, "")
		b.is(`[...document.querySelectorAll(".by")].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.innerText).join()`, "")
		b.is(`[...document.querySelectorAll(".brand, .top nav a, button:not([hidden])")].filter((e) => [...e.childNodes].some((n) => {
			const text = document.createRange();
			text.selectNodeContents(n);
			return n.nodeType === Node.TEXT_NODE && text.getClientRects().length > 1;
		})).map((e) => e.innerText).join()`, "")
	}

	// Words are not broken.
	wide := open(t, address, look{})
	wide.visit("/")
	wide.visit(wide.href(".entry:has(.count) a.unfold"))
	wide.is(`[...document.querySelectorAll(".do a")].filter((a) => a.getClientRects().length > 1 || a.offsetHeight > 24).length`, "0")

	// On a phone, a row is aligned on both sides, the tabs are in one line, and the cells of a changed field are below each other.
	b := open(t, address, look{phone: true})
	b.visit("/")
	b.is(`[...document.querySelectorAll("#entries .row")].filter((r) => r.querySelector(".ns")?.innerText &&
		Math.abs(r.querySelector(".ns").getBoundingClientRect().right - r.querySelector(".do").getBoundingClientRect().right) > 2).length`, "0")
	b.visit(settings)
	b.visit(b.href("dd a.permalink") + "?view=fields")
	b.is(`new Set([...document.querySelectorAll(".tabs a")].filter((a) => a.offsetHeight).map((a) => a.offsetTop)).size`, "1")
	b.is(`new Set([...document.querySelector(".fieldset tbody tr").cells].filter((c) => c.offsetHeight).map((c) => Math.round(c.getBoundingClientRect().x))).size`, "1")
}
