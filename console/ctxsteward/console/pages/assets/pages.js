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

  // What was done is said aloud, too: a region that is there before the words are.
  const toasts = document.querySelector("[data-toasts]");
  const toast = (text) => {
    const said = document.createElement("p");
    said.textContent = text;
    toasts.append(said);
    setTimeout(() => said.remove(), 8000);
  };
  for (const one of document.querySelectorAll("[data-toast]")) {
    setTimeout(() => toast(one.textContent), 50);
    const asked = new URLSearchParams(location.search);
    asked.delete("done"); // reloading does not say it again
    history.replaceState(null, "", location.pathname + (asked.size ? `?${asked}` : ""));
  }

  // A button that asks first. Without scripts its form is sent as it is: each asks for a token or a reason by itself.
  const ask = document.querySelector("[data-ask]");
  if (ask) {
    let wants = null;
    document.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-confirm], button[data-needs]");
      if (!button || button === wants) return;
      const form = button.form;
      const need = button.dataset.needs && form.elements[button.dataset.needs];
      if (need) need.required = true;
      const fits = form.reportValidity();
      if (need) need.required = false;
      event.preventDefault();
      if (!fits) return;
      wants = button;
      ask.querySelector("p").textContent = button.dataset.confirm;
      ask.showModal();
    });
    ask.querySelector("[data-yes]").addEventListener("click", () => {
      const button = wants;
      ask.close();
      button.form.requestSubmit(button);
    });
    ask.querySelector("[data-no]").addEventListener("click", () => ask.close());
    ask.addEventListener("close", () => {
      if (wants) wants.focus();
      wants = null;
    });
  }

  // A page that is about something that goes on: its live part is asked for again when the service tells of more.
  const told = document.querySelector('meta[name="events"]');
  const live = document.querySelector("[data-live]");
  if (told && live) {
    let stream = null;
    let due = 0;
    const renew = async () => {
      due = 0;
      try {
        const answer = await fetch(`${location.pathname}?lang=${root.lang}`);
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = answer.ok && page.querySelector("[data-live]");
        if (fresh) live.replaceChildren(...fresh.childNodes);
      } catch {
        // the next event asks again
      }
    };
    const later = () => {
      if (!due) due = setTimeout(renew, 200);
    };
    const listen = () => {
      if (document.hidden || stream) return;
      stream = new EventSource(told.content);
      for (const kind of ["appended", "built", "compacted", "lost"]) stream.addEventListener(kind, later);
    };
    const leave = () => {
      if (stream) stream.close();
      stream = null;
    };
    document.addEventListener("visibilitychange", () => (document.hidden ? leave() : (listen(), later())));
    window.addEventListener("pagehide", leave);
    listen();
  }
})();
