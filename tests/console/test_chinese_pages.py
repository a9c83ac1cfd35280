"""The pages in Chinese: every sentence that is ours is Chinese; what users, tools and commands said stays as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from ctxsteward.console.commands.serve import _demo_store
from ctxsteward.console.pages.frame import DOCUMENTATION
from ctxsteward.console.pages.sentences import meaning, translated
from ctxsteward.console.pages.site import Site
from ctxsteward.console.steward.questions import DRAFT_WAITS, WAITS
from ctxsteward.console.steward.records import REASONS
from ctxsteward.console.terminal.failures import STEWARD, missing
from ctxsteward.evals.suites.catalogue import NAMES, suite_named
from ctxsteward.schemas.findings import FINDING_KINDS

ENGLISH = re.compile(r"[A-Za-z][a-z'’]+(?:[ ,;:]+(?:[A-Za-z][a-z'’]*|\d+)){2,}")
"""Three words in a row."""
QUOTED = {"said", "original", "w"}
"""Classes of elements with texts of sessions, profiles and people."""
EXACT = {"code", "pre", "script", "style"}
VOID = {"meta", "link", "br", "input", "img", "hr", "wbr", "path", "rect", "line", "circle", "polyline"}
CHINESE = re.compile("[\u4e00-\u9fff]")


class EnglishText(HTMLParser):
    """Collects English texts of a page that are no quote and no code, and its links."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self._open: list[tuple[str, bool]] = []
        self.found: list[str] = []
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        self.links += [told["href"]] if tag == "a" and "href" in told else []
        is_quote = bool(QUOTED & set(told.get("class", "").split())) or tag in EXACT
        if tag not in VOID:
            self._open.append((tag, is_quote))
        if not any(quotes for _, quotes in self._open) and tag != "main" and "question" not in told.get("class", ""):
            self.found += [told[name] for name in ("title", "aria-label", "placeholder") if name in told]

    def handle_endtag(self, tag: str) -> None:
        for at in range(len(self._open) - 1, -1, -1):
            if self._open[at][0] == tag:
                del self._open[at:]
                return

    def handle_data(self, data: str) -> None:
        if not any(quotes for _, quotes in self._open):
            self.found.append(data.strip())


def ours(text: str) -> str:
    """Return a text without code, and without what a Chinese sentence quotes."""
    text = re.sub("`.*?`", "", text)
    return re.sub("“.*?”|(?<=：).*", "", text) if CHINESE.search(text) else text


def pages_of(site: Site) -> Iterator[tuple[str, EnglishText]]:
    """Yield every kind of page, by following links from the first ones: three of each kind."""
    waiting, known, kinds = (
        ["", "evals", "steward", "widget", "sessions/nobody", "nowhere"],
        set[str](),
        dict[str, int](),
    )
    while waiting:
        path = waiting.pop(0)
        kind = re.sub(r"(?<=/)[^/]+$|\d+", "*", path.partition("?")[0])
        if path in known or kinds.get(kind, 0) >= 3:
            continue
        known.add(path)
        kinds[kind] = kinds.get(kind, 0) + 1
        asked = dict(parse_qsl(path.partition("?")[2])) | {"lang": "zh"}
        page = EnglishText(site.answer(path.partition("?")[0], asked).body.decode())
        yield path, page
        waiting += [
            re.sub(r"[?&]lang=\w+", "", link.partition("#")[0]).removeprefix("/v/")
            for link in page.links
            if link.startswith("/v/") and "lang=zh" in link
        ]


@pytest.mark.skipif(bool(missing(STEWARD)), reason="needs the extra steward")
def test_every_page_of_the_demo_is_wholly_in_chinese() -> None:
    history = Path(str(files("ctxsteward.console") / "data" / "demo-evals.jsonl"))
    with _demo_store("default") as store:
        site = Site(store=store, root="/v", history=history, may=frozenset(("write", "steward")))
        read = dict(pages_of(site))
    kinds = {re.sub(r"\d+", "*", path.partition("?")[0]) for path in read}
    assert {"sessions/demo/calls/*", "sessions/demo/health", "sessions/demo/losses", "steward/fernhollow-desk"} <= kinds
    english = {(path, text) for path, page in read.items() for text in page.found if ENGLISH.search(ours(text))}
    assert sorted(english)[:9] == []
    entries = [link for page in read.values() for link in page.links if link.startswith(DOCUMENTATION)]
    assert entries  # what a finding means, on the site
    assert {link.removeprefix(f"{DOCUMENTATION}troubleshooting/#") for link in entries} <= {*FINDING_KINDS}


def test_every_finding_figure_and_reason_has_chinese_words() -> None:
    filled = {"people": "3 people", "People": "3 people", "k": 2, "recoveries": 2, "helped": "1 person or task"}
    reasons = [text.format_map(filled) for text in (*WAITS.values(), *DRAFT_WAITS.values())]
    reasons += [f"{text[0].upper()}{text[1:]}." for text in REASONS.values()]
    suites = [suite_named(name) for name in NAMES]
    abouts = [text for suite in suites for text in (suite.about, *(metric.about for metric in suite.metrics))]
    assert [text for text in (*reasons, *abouts) if not CHINESE.search(translated(text) or "")] == []
    assert [kind for kind in FINDING_KINDS if not CHINESE.search(meaning(kind))] == []


@pytest.mark.parametrize(
    ("text", "chinese"),
    [
        (
            "It came up in 3 of 15 transcripts, with 3 people, on 2026-11-21.",
            "在 15 份记录中的 3 份里出现，涉及 3 人，时间为 2026-11-21。",
        ),
        ("Against it 2 people say: “No person said it.”", "反对意见（2 人）：“No person said it.”"),
        ("drift WARN, approved by ann, ben", "漂移 WARN，由 ann, ben 批准"),
        ("Tents stay at night.", None),
        ("It costs less. Tents stay at night.", None),
    ],
)
def test_a_sentence_is_translated_whole_and_quotes_stay(text: str, chinese: str | None) -> None:
    assert translated(text) == chinese


def test_a_long_text_of_a_user_costs_nothing() -> None:
    assert translated("It came up in " * 10_000) is None
