// The slider of an object's versions. It follows the links of the list, which work without it.
(function () {
  "use strict";
  const slider = document.getElementById("slider");
  if (!slider) return;
  const links = Array.from(document.querySelectorAll("#versions a.version"));
  const text = document.getElementById("slider-text");
  let wait = 0, shown = slider.valueAsNumber;
  const name = () => {
    const label = links[slider.valueAsNumber].textContent.trim().replace(/\s+/g, " ");
    text.textContent = label;
    slider.setAttribute("aria-valuetext", label);
  };
  // Links beside the version refer to the shown one.
  function relink(url) {
    const version = new URL(url).searchParams.get("version");
    for (const a of document.querySelectorAll("a.ofversion")) {
      const to = new URL(a.href);
      to.searchParams.set("version", version);
      a.href = to;
    }
    for (const [rel, by] of [["prev", -1], ["next", 1]]) {
      const a = document.querySelector('.object .links a[rel="' + rel + '"]'), to = links[shown + by];
      a.hidden = !to;
      if (to) a.href = to.href; else a.removeAttribute("href");
    }
  }
  function load() {
    const at = slider.valueAsNumber;
    if (at === shown) return;
    const url = links[at].href;
    fetch(url, { headers: { "HX-Request": "true" } })
      .then((r) => (r.ok ? r.text() : Promise.reject(r.status)))
      .then((html) => {
        if (at !== slider.valueAsNumber) return; // the slider has moved on
        const box = document.getElementById("version");
        box.innerHTML = html;
        if (window.htmx) htmx.process(box);
        document.dispatchEvent(new CustomEvent("tattler:times", { detail: box }));
        links[shown].removeAttribute("aria-current");
        links[shown].closest("li").classList.remove("current");
        links[at].setAttribute("aria-current", "true");
        links[at].closest("li").classList.add("current");
        shown = at;
        relink(url);
        history.replaceState(null, "", url);
      })
      .catch(() => location.assign(url));
  }
  slider.addEventListener("input", () => { name(); clearTimeout(wait); wait = setTimeout(load, 80); });
  addEventListener("pageshow", () => { slider.value = shown; name(); }); // browsers restore the value of another version
})();
