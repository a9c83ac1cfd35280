// <context-meter src="/" session="s-42"></context-meter>: how full a session of ctxsteward is, and a button to compact it.
//
//   src       base URL of the service; on the origin of the page, since the service lets no other page read it
//   session   id of the session
//   refresh   seconds between two questions while the element is seen; default 3
//   events    where it stands, the element listens to the service's events, too, and asks when one comes
//   readonly  where it stands, there is no button
//   sample    shows a state and asks nobody: idle, offline, or a share such as 0.84
//
// It goes with the browser's login cookie. There is no attribute for a token, since whoever reads a page has what stands
// in it; a program that keeps one elsewhere can set the property `token`. The element fires `context-health` with what
// the service said. When it leaves the document, nothing of it runs on. Texts follow the nearest `lang` (en, zh).
"use strict";
(() => {
  const TEXTS = {
    en: {
      label: "Context", idle: "Idle", healthy: "Healthy", warning: "Over 80 %", critical: "Over 90 %",
      offline: "The service does not answer", waits: "…", prune: "Prune", ask: "Compact this session now?",
      figures: (a, b) => `${a} → ${b} prompt tokens`, losses: (n) => `losses: ${n}`, pays: (n) => `has paid after ${n} calls`,
      never: "prompts would not become cheaper",
      keeps: "The originals stay in the log.", yes: "Prune now", no: "Cancel", done: (a, b) => `Compacted: ${a} → ${b} tokens`,
      nothing: "Nothing would leave", of: (a, b) => `${a} of ${b} tokens`, refused: (code) => `Refused (${code})`,
    },
    zh: {
      label: "上下文", idle: "空闲", healthy: "健康", warning: "超过 80 %", critical: "超过 90 %",
      offline: "服务无响应", waits: "…", prune: "精简", ask: "立即压缩此会话？",
      figures: (a, b) => `提示词元 ${a} → ${b}`, losses: (n) => `损失：${n}`, pays: (n) => `${n} 次调用后回本`,
      never: "提示不会更便宜",
      keeps: "原文仍在日志中。", yes: "立即精简", no: "取消", done: (a, b) => `已压缩：${a} → ${b} 词元`,
      nothing: "没有可移出的内容", of: (a, b) => `${a} / ${b} 词元`, refused: (code) => `被拒绝（${code}）`,
    },
  };
  const STYLE = `
    :host{display:block;font:14px/1.4 system-ui,sans-serif;max-width:440px;
      --text:light-dark(#1f2328,#e6edf3);--dim:light-dark(#57606a,#9da7b3);--line:light-dark(#8c959f,#6e7681);
      --paper:light-dark(#fff,#0d1117);--room:light-dark(#eef2f6,#1f2630);--good:light-dark(#166b34,#6ad383);
      --warn:light-dark(#8a5a00,#e3b341);--bad:light-dark(#b42318,#ff8f85);--focus:light-dark(#0757b8,#79b8ff)}
    :host([hidden]){display:none}
    .row{display:flex;gap:8px;align-items:baseline;color:var(--text)}.row>*{margin:0}.state{font-weight:600}
    .share{margin-left:auto;font-variant-numeric:tabular-nums}
    .bar{height:10px;border-radius:5px;background:var(--room);border:1px solid var(--line);overflow:hidden;margin:4px 0}
    .fill{height:100%;width:0;background:var(--good)}
    .warning .fill{background:var(--warn)}.critical .fill{background:var(--bad)}
    .healthy .state{color:var(--good)}.warning .state{color:var(--warn)}.critical .state{color:var(--bad)}
    .offline .bar{opacity:.5}.note{color:var(--dim);font-size:12px;margin:0;min-height:1.4em}.offline .note{color:var(--bad)}
    button{font:inherit;font-size:13px;color:var(--text);background:var(--paper);border:1px solid var(--line);
      border-radius:6px;padding:2px 10px;cursor:pointer}
    button:focus-visible{outline:2px solid var(--focus);outline-offset:2px}
    dialog{border:1px solid var(--line);border-radius:8px;background:var(--paper);color:var(--text);max-width:360px}
    dialog::backdrop{background:#0006}dialog p{margin:0 0 8px}
    @media (prefers-reduced-motion:no-preference){.fill{transition:width .3s}}`;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(STYLE);

  class ContextMeter extends HTMLElement {
    static observedAttributes = ["src", "session", "refresh", "events", "readonly", "sample"];
    #parts = null;
    #timer = 0;
    #asking = null;
    #stream = null;
    #token = "";
    #health = null;
    #seen = () => (document.hidden ? this.#rest() : this.#start());

    /** Sent as a bearer token; not an attribute, so that it does not stand in the page. */
    set token(value) {
      this.#token = String(value || "");
    }

    /** What the service said last. */
    get health() {
      return this.#health;
    }

    connectedCallback() {
      this.#draw();
      document.addEventListener("visibilitychange", this.#seen);
      this.#start();
    }

    disconnectedCallback() {
      document.removeEventListener("visibilitychange", this.#seen);
      this.#rest();
      if (this.#parts && this.#parts.dialog.open) this.#parts.dialog.close();
    }

    attributeChangedCallback() {
      if (!this.isConnected || !this.#parts) return;
      this.#rest();
      this.#start();
    }

    // -- asking --------------------------------------------------------------------------------------------------

    #start() {
      if (this.hasAttribute("sample")) return this.#sample(this.getAttribute("sample"));
      this.#ask();
      if (this.hasAttribute("events") && !this.#stream) {
        this.#stream = new EventSource(this.#url("api/events", { session: this.getAttribute("session") || "" }));
        for (const kind of ["appended", "built", "compacted"]) this.#stream.addEventListener(kind, () => this.#ask());
      }
    }

    #rest() {
      clearTimeout(this.#timer);
      this.#timer = 0;
      if (this.#asking) this.#asking.abort();
      this.#asking = null;
      if (this.#stream) this.#stream.close();
      this.#stream = null;
    }

    async #ask() {
      clearTimeout(this.#timer);
      if (this.#asking) this.#asking.abort();
      const asking = (this.#asking = new AbortController());
      try {
        this.#show(await this.#call("health", { signal: asking.signal }));
      } catch (error) {
        if (this.#asking !== asking) return; // it left the document, or asks anew
        this.#offline(error);
      }
      if (this.#asking !== asking) return;
      this.#asking = null;
      const seconds = Number(this.getAttribute("refresh")) || 3;
      this.#timer = setTimeout(() => this.#ask(), Math.max(1, seconds) * 1000);
    }

    #url(path, query = {}) {
      const url = new URL(path, new URL((this.getAttribute("src") || "/").replace(/\/?$/, "/"), document.baseURI));
      for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
      return url;
    }

    async #call(what, options = {}, query = {}) {
      const headers = { accept: "application/json", ...(options.headers || {}) };
      if (this.#token) headers.authorization = `Bearer ${this.#token}`;
      const session = encodeURIComponent(this.getAttribute("session") || "");
      const url = this.#url(`api/sessions/${session}/${what}`, query);
      const answer = await fetch(url, { credentials: "same-origin", cache: "no-store", ...options, headers });
      if (!answer.ok) throw Object.assign(new Error(String(answer.status)), { status: answer.status });
      return answer.json();
    }

    // -- compacting ----------------------------------------------------------------------------------------------

    async #offer() {
      const { dialog, about, yes } = this.#parts;
      const t = this.#texts();
      const body = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
      try {
        const would = await this.#call("compact", body, { dry_run: "true" });
        if (!this.isConnected) return;
        if (!would.is_compacted) return this.#say(t.nothing);
        const price = would.price;
        const told = [t.figures(price.prompt_tokens_before, price.prompt_tokens_after), t.losses(would.report.losses.length)];
        told.push(price.break_even_calls === null ? t.never : t.pays(price.break_even_calls));
        about.textContent = `${told.join(", ")}. ${t.keeps}`;
        yes.onclick = async () => {
          dialog.close();
          try {
            const made = await this.#call("compact", body);
            const after = made.price;
            this.#say(made.is_compacted ? t.done(after.prompt_tokens_before, after.prompt_tokens_after) : t.nothing);
          } catch (error) {
            this.#say(error.status ? t.refused(error.status) : t.offline);
          }
          if (this.isConnected) this.#ask();
        };
        dialog.showModal();
      } catch (error) {
        this.#say(error.status ? t.refused(error.status) : t.offline);
      }
    }

    // -- showing -------------------------------------------------------------------------------------------------

    #texts() {
      const near = this.closest("[lang]");
      return (near && near.lang.startsWith("zh")) ? TEXTS.zh : TEXTS.en;
    }

    #draw() {
      if (this.#parts) return;
      const t = this.#texts();
      const root = this.attachShadow({ mode: "open" });
      root.adoptedStyleSheets = [sheet];
      const make = (tag, kind, into, text = "") => {
        const made = document.createElement(tag);
        if (kind) made.className = kind;
        made.textContent = text;
        into.append(made);
        return made;
      };
      const box = make("div", "", root);
      const row = make("div", "row", box);
      make("span", "", row, t.label);
      const state = make("span", "state", row, t.waits);
      const share = make("span", "share", row);
      const button = make("button", "", row, t.prune);
      button.type = "button";
      button.hidden = true;
      button.addEventListener("click", () => this.#offer());
      const bar = make("div", "bar", box);
      bar.setAttribute("role", "meter");
      bar.setAttribute("aria-label", t.label);
      bar.setAttribute("aria-valuemin", "0");
      bar.setAttribute("aria-valuemax", "100");
      bar.setAttribute("aria-valuenow", "0");
      const fill = make("div", "fill", bar);
      const figures = make("p", "note", box);
      const note = make("p", "note", box);
      note.setAttribute("role", "status");
      note.setAttribute("aria-live", "polite");
      const dialog = make("dialog", "", root);
      dialog.setAttribute("aria-label", t.ask);
      make("p", "", dialog, t.ask);
      const about = make("p", "", dialog);
      const yes = make("button", "", dialog, t.yes);
      const no = make("button", "", dialog, t.no);
      yes.type = no.type = "button";
      no.addEventListener("click", () => dialog.close());
      this.#parts = { box, state, share, button, bar, fill, figures, note, dialog, about, yes };
    }

    #show(health) {
      const t = this.#texts();
      const { box, state, share, button, bar, fill, figures, note } = this.#parts;
      const percent = Math.round(100 * health.utilization);
      const was = box.className;
      this.#health = health;
      box.className = health.level;
      state.textContent = t[health.level];
      share.textContent = `${percent} %`;
      fill.style.width = `${Math.min(100, percent)}%`;
      bar.setAttribute("aria-valuenow", String(Math.min(100, percent)));
      bar.setAttribute("aria-valuetext", `${percent} %, ${t[health.level]}`);
      const of = health.window_utilization === null || health.budget_utilization >= health.window_utilization;
      figures.textContent = of
        ? t.of(health.dynamic_tokens.toLocaleString(), health.dynamic_budget_tokens.toLocaleString())
        : t.of(health.prompt_tokens.toLocaleString(), health.window_tokens.toLocaleString());
      button.hidden = this.hasAttribute("readonly") || health.level === "idle";
      button.disabled = this.hasAttribute("sample");
      if (was === "offline") note.textContent = "";
      if (was !== health.level && (health.level === "warning" || health.level === "critical")) note.textContent = t[health.level];
      this.dispatchEvent(new CustomEvent("context-health", { detail: health, bubbles: true }));
    }

    #offline(error) {
      const t = this.#texts();
      const { box, state, share, button, bar, note } = this.#parts;
      box.className = "offline";
      state.textContent = "–";
      share.textContent = "";
      button.hidden = true;
      bar.setAttribute("aria-valuetext", t.offline);
      note.textContent = error && error.status ? t.refused(error.status) : t.offline;
    }

    #say(text) {
      if (this.#parts) this.#parts.note.textContent = text;
    }

    #sample(named) {
      if (named === "offline") return this.#offline(null);
      const share = Number(named) || 0;
      const level = !share ? "idle" : share >= 0.9 ? "critical" : share >= 0.8 ? "warning" : "healthy";
      this.#show({
        session: "sample", level, utilization: share, budget_utilization: share, window_utilization: null,
        prompt_tokens: Math.round(4000 * share), dynamic_tokens: Math.round(4000 * share), dynamic_budget_tokens: 4000,
        threshold_tokens: 3600, window_tokens: null, messages: share ? 12 : 0, compactions: 0, next_call: false,
      });
    }
  }

  if (!customElements.get("context-meter")) customElements.define("context-meter", ContextMeter);
})();
