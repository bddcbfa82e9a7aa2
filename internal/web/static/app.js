// Comfort for the pages of tattler. Everything works without it, by links and forms.
(function () {
  "use strict";
  const $ = (selector, root) => (root || document).querySelector(selector);
  const all = (selector, root) => Array.from((root || document).querySelectorAll(selector));

  // Times: the server writes UTC; readers see their own time zone.
  const two = (n) => String(n).padStart(2, "0");
  const clock = (d) => two(d.getHours()) + ":" + two(d.getMinutes()) + ":" + two(d.getSeconds());
  const day = (d) => d.getFullYear() + "-" + two(d.getMonth() + 1) + "-" + two(d.getDate());
  const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const fullMonths = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
  const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
  function localTimes(root) {
    for (const t of all("time[datetime]:not([data-local])", root)) {
      const d = new Date(t.dateTime);
      if (isNaN(d)) continue;
      t.dataset.local = "1";
      if (t.classList.contains("until") && day(d) !== day(new Date($("time", t.parentNode).dateTime))) t.textContent = day(d) + " " + clock(d);
      else if (t.classList.contains("t")) t.textContent = clock(d);
      else if (t.classList.contains("dt")) t.textContent = day(d) + " " + clock(d);
      else if (t.classList.contains("d")) t.textContent = d.getDate() + " " + months[d.getMonth()] + " " + two(d.getHours()) + ":" + two(d.getMinutes());
    }
  }
  // Days: headings follow the reader's time zone, and a day that continues on the next part of the list has one.
  function dayHeadings() {
    const list = $("#entries");
    if (!list) return;
    let last = "";
    for (const e of Array.from(list.children)) {
      if (e.classList.contains("day")) { e.remove(); continue; }
      if (!e.classList.contains("entry")) continue;
      const d = new Date(e.dataset.at);
      const name = weekdays[d.getDay()] + ", " + d.getDate() + " " + fullMonths[d.getMonth()] + " " + d.getFullYear();
      if (name === last || isNaN(d)) continue;
      last = name;
      const item = document.createElement("li"), time = document.createElement("time");
      item.className = "day";
      time.dateTime = e.dataset.at;
      time.dataset.local = "1";
      time.textContent = name;
      item.append(time);
      list.insertBefore(item, e);
    }
  }
  function zone() {
    const name = Intl.DateTimeFormat().resolvedOptions().timeZone || "local time";
    if ($("#zone")) $("#zone").textContent = name;
  }

  // Colours.
  function setTheme(theme) {
    const root = document.documentElement;
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
    try { if (theme) localStorage.setItem("theme", theme); else localStorage.removeItem("theme"); } catch (e) { /* storage may be off */ }
    $("#theme").setAttribute("aria-label", "Colours: " + (theme || "automatic"));
  }
  function nextTheme() {
    const order = ["", "light", "dark"];
    setTheme(order[(order.indexOf(document.documentElement.dataset.theme || "") + 1) % order.length]);
  }

  // Unfolding: a second click folds again. The request is htmx's.
  document.addEventListener("htmx:confirm", (e) => {
    const link = e.target.closest("a.unfold");
    if (!link || link.getAttribute("aria-expanded") !== "true") return;
    e.preventDefault();
    const below = $(":scope > .below", link.closest(".entry"));
    below.replaceChildren();
    link.setAttribute("aria-expanded", "false");
  });
  document.addEventListener("htmx:afterSwap", (e) => {
    const entry = e.target.closest ? e.target.closest(".entry") : null;
    if (e.target.classList && e.target.classList.contains("below") && entry) $("a.unfold", entry).setAttribute("aria-expanded", "true");
  });
  document.addEventListener("htmx:load", (e) => { localTimes(e.target); dayHeadings(); });
  document.addEventListener("tattler:times", (e) => localTimes(e.detail));

  // Keys.
  const entries = () => all("#entries > .entry, .entries.inner > .entry").filter((e) => e.offsetParent);
  let current = null;
  function select(entry) {
    if (!entry) return;
    if (current) current.classList.remove("current");
    current = entry;
    entry.classList.add("current");
    const link = $("a.unfold", entry);
    if (link) link.focus({ preventScroll: true });
    entry.scrollIntoView({ block: "nearest" });
  }
  function move(by) {
    const list = entries();
    const at = list.indexOf(current);
    select(list[at < 0 ? 0 : Math.min(Math.max(at + by, 0), list.length - 1)]);
  }
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, textarea, select, dialog[open]")) {
      if (e.key === "Escape" && e.target.closest("input")) e.target.blur();
      return;
    }
    const unfold = e.target.closest("a.unfold");
    if (e.key === " " && unfold) { // as a button
      e.preventDefault();
      unfold.click();
      return;
    }
    switch (e.key) {
      case "j": move(1); break;
      case "k": move(-1); break;
      case "g": window.scrollTo(0, 0); showFresh(); select(entries()[0]); break;
      case "o": if (current) $("a.unfold", current).click(); break;
      case "a": if (current) $("a.around", current).click(); break;
      case "/": { const input = $(".filter input"); if (input) { input.focus(); input.select(); } break; }
      case "t": nextTheme(); break;
      case "?": $("#keys").showModal(); break;
      case "-": if ($(".zoomout")) $(".zoomout").click(); break;
      case "+": zoomMiddle(); break;
      default: return;
    }
    e.preventDefault();
  });

  // The histogram: drag over it to zoom.
  const at = (chart, share) => {
    const from = Date.parse(chart.dataset.start), to = Date.parse(chart.dataset.to);
    return new Date(from + (to - from) * share);
  };
  function zoom(from, to) {
    const url = new URL(location.href);
    url.pathname = "/";
    for (const name of ["before", "at"]) url.searchParams.delete(name);
    url.searchParams.set("since", from.toISOString().replace(".000Z", "Z"));
    url.searchParams.set("until", to.toISOString().replace(".000Z", "Z"));
    location.assign(url);
  }
  function zoomMiddle() {
    const chart = $("#chart");
    if (chart) zoom(at(chart, 0.25), at(chart, 0.75));
  }
  let drag = null;
  document.addEventListener("pointerdown", (e) => {
    const chart = e.target.closest("#chart");
    if (!chart || e.button !== 0) return;
    const box = chart.getBoundingClientRect();
    drag = { chart, box, x: e.clientX, moved: false, to: e.clientX };
  });
  document.addEventListener("pointermove", (e) => {
    if (!drag) return;
    drag.to = Math.min(Math.max(e.clientX, drag.box.left), drag.box.right);
    if (Math.abs(drag.to - drag.x) > 4) drag.moved = true;
    if (!drag.moved) return;
    const sel = $(".sel", drag.chart);
    sel.hidden = false;
    sel.style.left = Math.min(drag.x, drag.to) - drag.box.left + "px";
    sel.style.width = Math.abs(drag.to - drag.x) + "px";
  });
  document.addEventListener("pointerup", () => {
    if (!drag) return;
    const d = drag;
    drag = null;
    if (!d.moved) return;
    // The click that follows would open the bar under the pointer.
    addEventListener("click", (e) => { e.preventDefault(); e.stopPropagation(); }, { capture: true, once: true });
    const share = (x) => (x - d.box.left) / d.box.width;
    zoom(at(d.chart, share(Math.min(d.x, d.to))), at(d.chart, share(Math.max(d.x, d.to))));
  });
  document.addEventListener("dragstart", (e) => { if (e.target.closest && e.target.closest("#chart")) e.preventDefault(); });

  // New entries, as they are recorded. While the reader is further down, they wait, so that nothing moves.
  const maxEntries = 500;
  // A refused page asks again after 10 seconds, and then after twice as long each time, up to 5 minutes.
  const firstWait = 10, longestWait = 300;
  let source = null, waiting = [], leaving = [], lost = false, paused = false, redraw = 0, connection = ["connecting", ""], last = "", resting = 0, again = 0, wait = firstWait;
  // say shows how the page is connected. That it is paused matters only while it is live.
  function say(text, state) {
    if (text) connection = [text, state];
    const live = $("#live");
    if (!live) return;
    const [shown, now] = paused && connection[1] === "on" ? ["paused", ""] : connection;
    $(".say", live).textContent = shown;
    live.classList.toggle("on", now === "on");
    live.classList.toggle("off", now === "off");
  }
  // insert shows new entries, the oldest first. One that is shown already is replaced, and moves to where it stands now. What the
  // reader opened below it stays open.
  function insert(texts) {
    const list = $("#entries");
    for (const html of texts) {
      const box = document.createElement("template");
      box.innerHTML = html;
      const entry = box.content.querySelector(".entry");
      if (!entry) continue;
      const old = $(":scope > #" + entry.id, list);
      if (!place(list, entry)) continue;
      localTimes(entry);
      if (old) succeed(old, entry); else entry.classList.add("new");
      if (window.htmx) htmx.process(entry);
    }
    trim(list);
    dayHeadings();
    const empty = $(".empty");
    if (empty && $(".entry", list)) empty.remove();
  }
  // place puts an entry into the list, unless it belongs on an older page.
  function place(list, entry) {
    const shown = all(":scope > .entry", list);
    const next = shown.find((e) => Number(e.dataset.order) <= Number(entry.dataset.order));
    if (!next && shown.length && $(":scope > .older", list)) return false;
    list.insertBefore(entry, next || $(":scope > .older, :scope > .note", list));
    return true;
  }
  // succeed removes an entry after another one took its place.
  function succeed(old, entry) {
    const below = $(":scope > .below", old), link = $("a.unfold", entry);
    if (below.hasChildNodes()) {
      $(":scope > .below", entry).replaceWith(below);
      if (link) link.setAttribute("aria-expanded", "true");
    }
    const focused = old.contains(document.activeElement) && !below.contains(document.activeElement);
    old.remove();
    if (old === current) {
      current = entry;
      entry.classList.add("current");
    }
    if (focused && link) link.focus({ preventScroll: true });
  }
  // leave removes entries that the page no longer has, because their stories are part of others.
  function leave(ids) {
    for (const id of ids) {
      const old = $("#entries > #" + id);
      if (old && old === current) current = null;
      if (old) old.remove();
    }
    dayHeadings();
  }
  // trim removes the oldest entries of a long list. The older pages do not follow the rest.
  function trim(list) {
    const entries = all(":scope > .entry", list);
    if (entries.length <= maxEntries && !lost) return;
    for (const e of entries.slice(maxEntries)) e.remove();
    for (const e of all(":scope > .older, :scope > .note", list)) e.remove();
    const item = document.createElement("li"), link = document.createElement("a");
    item.className = "older";
    link.href = location.href;
    link.textContent = "Reload the page for older changes";
    item.append(link);
    list.append(item);
  }
  function showFresh() {
    const fresh = $("#fresh");
    if (!fresh) return;
    const texts = waiting, ids = leaving;
    waiting = [];
    leaving = [];
    fresh.hidden = true;
    if (lost) $("#entries").replaceChildren(); // entries are missing between the shown ones and those that waited
    leave(ids);
    if (texts.length) insert(texts);
    lost = false;
  }
  const idOf = (html) => (html.match(/^<li [^>]*\bid="([cs]\w+)"/) || [])[1];
  // rest reports whether what arrives waits, so that nothing moves below the reader.
  const rest = () => paused || window.scrollY >= 200;
  function countFresh() {
    const fresh = $("#fresh");
    fresh.textContent = waiting.length === 1 ? "1 new entry" : (lost ? "more than " : "") + waiting.length + " new entries";
    fresh.hidden = !waiting.length;
  }
  function depart(ids) {
    if (!rest()) {
      showFresh();
      leave(ids);
      return;
    }
    waiting = waiting.filter((w) => !ids.includes(idOf(w)));
    leaving.push(...ids);
    countFresh();
  }
  function arrive(html) {
    if (!rest()) {
      showFresh();
      insert([html]);
    } else {
      const id = idOf(html), same = waiting.findIndex((w) => idOf(w) === id);
      if (same >= 0) waiting.splice(same, 1); // an entry that changed, or the page has connected again
      leaving = leaving.filter((l) => l !== id);
      waiting.push(html);
      if (waiting.length > maxEntries) {
        waiting.shift();
        lost = true;
      }
      countFresh();
    }
    if (!redraw && !paused) redraw = setTimeout(refresh, 5000);
  }
  function refresh() {
    redraw = 0;
    const box = $("#histogram");
    if (!box || !box.dataset.live || drag || document.hidden) return;
    fetch("/histogram" + location.search, { headers: { "HX-Request": "true" } })
      .then((r) => (r.ok ? r.text() : Promise.reject(r.status)))
      .then((html) => { if (!drag) { box.innerHTML = html; localTimes(box); } })
      .catch(() => { /* the next change tries again */ });
  }
  // refusals say why a page is not live, by the status of the answer.
  const refusals = {
    400: "its address is wrong", 401: "you are no longer signed in, so reload the page", 403: "you may no longer see it", 404: "the server has no such page",
    429: "you have too many live pages or requests, so close some", 503: "the server has too many live pages, or cannot read the journal",
  };
  // refused waits before the page asks again, and says why. The browser does not say why: the server is asked.
  function refused(by) {
    const seconds = wait;
    wait = Math.min(2 * wait, longestWait);
    const explain = (why) => say("not live" + (why ? ": " + why : "") + "; trying again in " + seconds + " seconds", "off");
    explain("");
    fetch(by.url, { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(5000) })
      .then((r) => { if (by === source && connection[1] === "off") explain(refusals[r.redirected ? 401 : r.status]); }) // a proxy leads to where one signs in
      .catch(() => { /* the server cannot be reached */ });
    clearTimeout(again);
    again = setTimeout(() => { if (document.hidden) resting = -1; else connect(); }, 1000 * seconds);
  }
  // connect starts to listen for what was recorded after what the page has.
  function connect() {
    clearTimeout(again);
    say("connecting", "");
    const url = new URL($("#live").dataset.url, location.href);
    if (last) url.searchParams.set("after", last);
    source = new EventSource(url);
    source.onopen = () => { wait = firstWait; say("live", "on"); };
    source.onerror = () => {
      if (source.readyState !== EventSource.CLOSED) {
        say("not connected; trying again", "off");
        return;
      }
      refused(source); // the browser gives up then
    };
    source.addEventListener("entry", (e) => { last = e.lastEventId || last; arrive(e.data); });
    source.addEventListener("gone", (e) => { last = e.lastEventId || last; depart(e.data.trim().split(" ")); });
    source.addEventListener("mark", (e) => { last = e.lastEventId || last; });
    source.addEventListener("stale", () => { source.close(); say("much has changed: reload the page", "off"); });
  }
  function listen() {
    if (!$("#live")) return;
    connect();
    $("#pause").addEventListener("click", () => {
      paused = !paused;
      $("#pause").textContent = paused ? "Resume" : "Pause";
      $("#pause").setAttribute("aria-pressed", String(paused));
      say();
      if (!paused) { showFresh(); refresh(); }
    });
    $("#fresh").addEventListener("click", () => { window.scrollTo(0, 0); showFresh(); refresh(); });
    addEventListener("scroll", () => { if (window.scrollY < 50 && !paused && waiting.length) showFresh(); }, { passive: true });
    // A page in the background gives its connection back: without HTTP/2, a browser has only six for all tabs of a server.
    document.addEventListener("visibilitychange", () => {
      clearTimeout(resting);
      if (document.hidden && source.readyState !== EventSource.CLOSED) {
        resting = setTimeout(() => { source.close(); say("not live in the background", ""); resting = -1; }, 10000);
      } else if (!document.hidden && resting === -1) {
        resting = 0;
        connect();
      }
    });
    addEventListener("pagehide", () => { clearTimeout(again); source.close(); });
    addEventListener("pageshow", (e) => { if (e.persisted) connect(); }); // the browser had kept the page
  }

  // moment returns a time or a day of the reader's time zone as a moment, which the server reads the same. Of a time that
  // occurs twice, because the clock is set back, it is the last if it ends a time range. It leaves other texts, such as 1h, alone.
  function moment(text, end) {
    const parts = text.trim().match(/^(today|yesterday|\d{4}-\d\d-\d\d)?[ T]*(\d{1,2}:\d\d(?::\d\d)?)?$/);
    if (!parts || !parts[0]) return text;
    const at = new Date(), [, date, time] = parts;
    if (date === "yesterday") at.setDate(at.getDate() - 1);
    else if (date && date !== "today") at.setFullYear(+date.slice(0, 4), date.slice(5, 7) - 1, +date.slice(8));
    const [hours, minutes, seconds] = (time || "0:00").split(":");
    if (hours > 23 || minutes > 59 || seconds > 59) return text;
    at.setHours(hours, minutes, seconds || 0, 0);
    const again = new Date(+at + 3600000);
    if (end && again.getHours() === at.getHours()) at.setTime(+again);
    return at.toISOString().replace(".000Z", "Z");
  }

  // A form without what is empty makes a shorter link.
  document.addEventListener("submit", (e) => {
    for (const input of all(".filter input[name=since], .filter input[name=until]")) if (e.target.contains(input)) input.value = moment(input.value, input.name === "until");
    for (const input of all("input[name]", e.target)) if (!input.value) input.disabled = true;
  });
  addEventListener("pageshow", () => { for (const input of all(".filter input:disabled")) input.disabled = false; });

  localTimes(document);
  dayHeadings();
  zone();
  if ($("#theme")) {
    setTheme(document.documentElement.dataset.theme || "");
    $("#theme").addEventListener("click", nextTheme);
    $("#help").addEventListener("click", () => $("#keys").showModal());
  }
  listen();
})();
