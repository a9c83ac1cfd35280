// What pages gain where scripts run; every one of them can be read without.
"use strict";
(() => {
  const root = document.documentElement;
  const kept = (() => {
    try {
      return window.localStorage;
    } catch {
      return null; // a browser that keeps nothing
    }
  })();
  const theme = kept && kept.getItem("ctxsteward-theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;

  const toggle = document.querySelector("[data-theme-toggle]");
  if (toggle) {
    toggle.hidden = false;
    toggle.addEventListener("click", () => {
      const dark = root.dataset.theme
        ? root.dataset.theme === "dark"
        : window.matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      if (kept) kept.setItem("ctxsteward-theme", root.dataset.theme);
    });
  }

  // A form that filters the rows of a table on this page; a live page asks the server instead.
  for (const form of document.querySelectorAll("form[data-filter]")) {
    const rows = [...document.querySelectorAll(`#${form.dataset.filter} tbody tr`)];
    const said = rows.map((row) => row.textContent.toLowerCase());
    const count = form.querySelector("output");
    const apply = () => {
      const fields = new FormData(form);
      const words = String(fields.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
      const kind = fields.get("kind") || "";
      let shown = 0;
      rows.forEach((row, at) => {
        const fits = words.every((word) => said[at].includes(word)) && (!kind || row.dataset.kind === kind);
        row.hidden = !fits;
        shown += fits;
      });
      if (count) count.value = `${shown} / ${rows.length}`;
    };
    form.hidden = false;
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    apply();
  }

  // A link into something folded opens it.
  const unfold = () => {
    const at = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let up = at; up; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
    if (at) at.scrollIntoView({ block: "nearest" });
  };
  window.addEventListener("hashchange", unfold);
  unfold();

  // The arrow keys go to the calls before and after, unless somebody is typing.
  window.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.target.closest("input, select, textarea, summary, svg")) return;
    const to = document.querySelector(`a[data-key="${event.key}"]`);
    if (to) to.click();
  });
})();
