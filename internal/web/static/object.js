// The slider of an object's versions. It follows the links of the list, which work without it.
(function () {
  "use strict";
  const slider = document.getElementById("slider");
  if (!slider) return;
  const links = Array.from(document.querySelectorAll("#versions a.version"));
  const text = document.getElementById("slider-text");
  let wait = 0, shown = slider.valueAsNumber;
  const name = () => {
    const label = links[slider.valueAsNumber].textContent.trim();
    text.textContent = label;
    slider.setAttribute("aria-valuetext", label);
  };
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
        history.replaceState(null, "", url);
      })
      .catch(() => location.assign(url));
  }
  slider.addEventListener("input", () => { name(); clearTimeout(wait); wait = setTimeout(load, 80); });
  name();
})();
