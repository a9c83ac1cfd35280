"""Every page in a real browser: painted soon, quick to answer, without faults, accessible, and no attack runs.

Figures are printed (`pytest -rP`); they are held to their strict bars where `CTXSTEWARD_SOAK` asks for it, on a quiet
machine, and to generous ones otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from ..examples import SOAK
from .attacks import ATTACKS, FOREIGN
from .conftest import DESK, HOSTILE, LANGUAGES, THEMES, Served, Watched, ids, looking

AXE = (Path(__file__).parent / "axe/axe.min.js").read_text(encoding="utf-8")
PAINT_MS, INTERACTION_MS = (1_000, 100) if SOAK else (5_000, 2_000)
PAGES = {
    "sessions": "sessions",
    "sessions, found": "sessions?q=s-09",
    "timeline of 2,000 turns": "sessions/long",
    "timeline": "sessions/trip",
    "call": "sessions/trip/calls/24",
    "call of 2,000 turns": "sessions/long/calls/2",
    "difference": "sessions/trip/calls/24/since/23",
    "losses": "sessions/trip/losses",
    "losses of 2,000 turns": "sessions/long/losses",
    "messages": "sessions/long/messages?page=40",
    "message": "sessions/long/messages/7",
    "health of 2,000 turns": "sessions/long/health",
    "health, preview": "sessions/full/health?preview=1",
    "evals": "evals",
    "profiles": "steward",
    "steward": f"steward/{DESK}",
    "versions": f"steward/{DESK}/versions/2/since/1",
    "widget": "widget?session=full",
    "no page": "sessions/nobody",
}
SAME_TEMPLATE = ("sessions, found", "timeline of 2,000 turns", "call of 2,000 turns", "losses of 2,000 turns")
"""As another page, with other figures."""
HOSTILE_PAGES = {
    "sessions": "sessions?q=script",
    "timeline": f"sessions/{ids(HOSTILE)}",
    "call": f"sessions/{ids(HOSTILE)}/calls/9",
    "difference": f"sessions/{ids(HOSTILE)}/calls/9/since/8",
    "losses": f"sessions/{ids(HOSTILE)}/losses",
    "messages": f"sessions/{ids(HOSTILE)}/messages",
    "more messages": f"sessions/{ids(HOSTILE)}/messages?page=3",
    "health": f"sessions/{ids(HOSTILE)}/health?preview=1",
    "steward": f"steward/{DESK}",
    "profile": "steward/hostile",
    "versions": f"steward/{DESK}/versions/2/since/1",
    "profiles": "steward",
    "widget": f"widget?session={ids(HOSTILE)}",
}
PAINT = """() => new Promise((done) => {
  new PerformanceObserver((list) => {
    for (const one of list.getEntriesByName("first-contentful-paint")) done(one.startTime);
  }).observe({ type: "paint", buffered: true });
})"""
EVENTS = """
window.slowest = 0;
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) window.slowest = Math.max(window.slowest, one.duration);
}).observe({ type: "event", durationThreshold: 16, buffered: true });
"""


@pytest.fixture(scope="module")
def window(browser: Browser, served: Served) -> Iterator[Watched]:
    with looking(browser, served) as watched:
        watched.page.context.add_init_script(EVENTS)
        yield watched


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_painted_soon_and_answers_quickly_without_faults(name: str, window: Watched, served: Served) -> None:
    page, faults = window
    faults.clear()
    window.open(served.at(PAGES[name]))
    paint = page.evaluate(PAINT)
    page.locator("[data-theme-toggle]").click()
    for _ in range(3):
        page.keyboard.press("Tab")
    folded = page.locator("main details:not([open]) > summary")
    if folded.count():
        folded.first.click()
    field = page.locator("main input[type=search]")
    if field.count():
        field.first.type("ab")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)))")
    slowest = page.evaluate("window.slowest")
    print(f"{name}: painted after {paint:.0f} ms, slowest interaction {slowest or '< 16'} ms")
    wanted = [fault for fault in faults if not (name == "no page" and "404" in fault)]
    assert (wanted, page.evaluate("window.ran")) == ([], [])
    assert paint < PAINT_MS
    assert slowest < INTERACTION_MS


def test_a_call_s_cost_losses_and_rules_are_seen_without_scrolling(browser: Browser, served: Served) -> None:
    with looking(browser, served, viewport={"width": 1280, "height": 800}) as window:
        for call in (23, 24):
            window.open(served.at(f"sessions/trip/calls/{call}"))
            boxes = [
                window.page.locator(part).bounding_box() for part in (".figures", ".promptbar >> nth=0", ".answers")
            ]
            bottoms = [box["y"] + box["height"] for box in boxes if box]
            assert len(bottoms) == 3
            assert max(bottoms) <= 800
            assert window.page.evaluate("document.documentElement.scrollWidth") == 1280


@pytest.mark.parametrize("theme", THEMES)
def test_pages_have_no_serious_fault_of_access(theme: Any, browser: Browser, served: Served) -> None:
    """Structure is the same in both themes, so the second looks at colours alone unless there is time."""
    rules = None if theme == THEMES[0] or SOAK else {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
    found = []
    with looking(browser, served, color_scheme=theme) as window:
        for name, path in PAGES.items():
            if name in SAME_TEMPLATE and not SOAK:
                continue
            window.open(served.at(path))
            window.page.locator("main details").evaluate_all(
                "all => all.slice(0, 12).forEach((one) => (one.open = true))"
            )
            window.page.evaluate(AXE)
            told = window.page.evaluate(
                "(rules) => axe.run(document, { resultTypes: ['violations'], ...(rules ? { runOnly: rules } : {}) })",
                rules,
            )
            found += [
                f"{name}: {one['impact']} {one['id']}: {one['nodes'][0]['html'][:160]} ({len(one['nodes'])})"
                for one in told["violations"]
                if one["impact"] in ("serious", "critical")
            ]
    print(f"{theme}: {len(PAGES)} pages, {len(found)} serious or critical")
    assert found == [], "\n".join(found)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_attack_runs(language: str, browser: Browser, served: Served) -> None:
    """With the policy taken away, so that escaping alone is what keeps them texts."""
    ran, shown = [], ""
    with looking(browser, served, bypass_csp=True) as window:
        for name, path in HOSTILE_PAGES.items():
            window.open(served.at(path) + ("&" if "?" in path else "?") + f"lang={language}")
            page = window.page
            page.locator("main details").evaluate_all("all => all.forEach((one) => (one.open = true))")
            for handled in ("mouseover", "focus", "animationstart"):
                page.locator("main *").evaluate_all(
                    f"all => all.slice(0, 3000).forEach((one) => one.dispatchEvent(new Event('{handled}')))"
                )
            ran += [f"{name}: {one}" for one in (*page.evaluate("window.ran"), *page.evaluate(FOREIGN), *window.faults)]
            window.faults.clear()
            shown += page.locator("body").inner_text()
    unseen = [text for text in ATTACKS if text.isprintable() and " ".join(text.split()) not in " ".join(shown.split())]
    print(f"{language}: {len(ATTACKS)} attacks on {len(HOSTILE_PAGES)} pages, {len(ran)} ran")
    assert (ran, unseen) == ([], [])


def test_attacks_run_where_nothing_escapes_them(browser: Browser, served: Served) -> None:
    """The hook sees them: as the test above would, were a page to take a text for markup."""
    with looking(browser, served, bypass_csp=True) as window:
        page = window.page
        raw = "".join(f"<div>{text}</div>" for text in ATTACKS[8:30] if "iframe" not in text and "style" not in text)
        page.route("**/raw", lambda route: route.fulfill(body=f"<!doctype html>{raw}", content_type="text/html"))
        window.open(served.at("raw"))
        page.wait_for_function("window.ran.length >= 6")
        assert len(page.evaluate(FOREIGN)) > 10
