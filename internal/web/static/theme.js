// Applies the chosen colours before the page is drawn.
(function () {
  "use strict";
  var theme = null;
  try { theme = localStorage.getItem("theme"); } catch (e) { /* storage may be off */ }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  document.documentElement.classList.add("js");
})();
