"""Pages that show what the model was shown: their values on the demo, their HTML, hostile texts, the commands."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from html.parser import HTMLParser
from importlib.resources import files
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple, get_args
from urllib.parse import unquote, urlsplit

import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st
from inline_snapshot import snapshot

from ctxsteward.console.cli import cli
from ctxsteward.console.commands.replay import replay_calls
from ctxsteward.console.pages import Site, inspect_call, timeline_page
from ctxsteward.console.pages.frame import (
    ASSETS,
    DOCUMENTATION,
    LANGUAGES,
    ROUTES,
    Frame,
    Place,
    place_of,
    plain,
    seen,
    texts,
    window,
)
from ctxsteward.console.pages.inspector import Item, compare_calls
from ctxsteward.console.pages.sessions import (
    loss_kinds,
    loss_rows,
    loss_spans,
    losses_page,
    messages_page,
    pages_of,
    quoted,
    sessions_page,
)
from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile, Store, open_store, past_calls
from ctxsteward.envelope.compaction.losses import text_of
from ctxsteward.envelope.transcripts.files import read_transcripts
from ctxsteward.schemas import InputError, ReferenceNotFound
from ctxsteward.schemas.findings import FINDING_KINDS
from ctxsteward.schemas.recommendation import RecommendationKind, Status as RecordStatus
from ctxsteward.store.erasure.forget import forget

from ..needs import CHROMIUM

DATA = files("ctxsteward.console") / "data"
TEMPLATES = Path(str(files("ctxsteward.console.pages") / "templates"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("view")


@pytest.fixture(scope="module")
def store(folder: Path) -> Store:
    """The first 40 calls of the demo."""
    store = open_store(folder / "store")
    builder = EnvelopeBuilder("gpt-4o", budgets=Budgets(dynamic_tokens=2000))
    profile = Profile.load(str(DATA / "demo-profile.yaml"))
    (transcript,) = read_transcripts(Path(str(DATA / "demo.jsonl")))
    session = store.session(
        "demo", profile=profile, tools=transcript.tools, system=transcript.system, counter=builder.counter
    )
    assert len(list(islice(replay_calls(builder, session, transcript), 40))) == 40
    return store


@pytest.fixture(scope="module")
def pages(store: Store, folder: Path) -> Path:
    out = folder / "out"
    Site(store=store).write(out, calls=3)
    return out


# -- values -------------------------------------------------------------------------------------------------------


def test_the_timeline_of_the_demo(store: Store) -> None:
    calls = past_calls(store, "demo")
    shown = timeline_page("demo", calls, price=2.5)
    assert shown.totals.model_dump() == snapshot(
        {
            "calls": 40,
            "prompt_tokens": 74233,
            "read_tokens": 53989,
            "written_tokens": 18684,
            "priced_tokens": 47238.5,
            "dollars": 0.11809625,
            "compactions": 6,
            "saved": 40059.5,
            "losses": 265,
            "prefix_breaks": 6,
            "over_budget": 0,
            "peak_tokens": 2570,
        }
    )
    (row,) = [one for one in shown.calls if one.call.number == 29]
    assert row.model_dump(exclude={"call"}) == snapshot(
        {
            "read_tokens": 1382,
            "written_tokens": 468,
            "fresh_tokens": 0,
            "priced_tokens": 1159.0,
            "dollars": 0.0028975,
            "is_priced": True,
            "cut": None,
        }
    )
    sources = dict(row.call.sources)
    assert sources == {name: getattr(row.call, f"{name}_tokens") for name in sources}
    assert sum(sources.values()) > 1_000
    assert [one.call.number for one in shown.calls] == list(range(1, 41))
    assert shown.overview == ()
    assert {made.losses for call in calls for made in call.compactions} != {0}


def test_what_is_read_written_and_neither_is_the_prompt_and_costs_what_prices_say(store: Store) -> None:
    for one in timeline_page("demo", past_calls(store, "demo")).calls:
        assert one.read_tokens + one.written_tokens + one.fresh_tokens == one.call.prompt_tokens
        assert one.priced_tokens == pytest.approx(
            one.read_tokens * 0.5 + one.written_tokens + one.fresh_tokens, abs=0.06
        )
        assert one.is_priced
        assert one.dollars == pytest.approx(
            one.priced_tokens * 2.5 / 1e6, abs=1e-6
        )  # what a million tokens of gpt-4o cost
        assert not one.read_tokens or one.read_tokens >= 1024


def test_pages_of_a_timeline_begin_with_the_newest_and_the_overview_has_all(store: Store) -> None:
    calls = past_calls(store, "demo")
    first, second = (timeline_page("demo", calls, page=page, size=30) for page in (1, 2))
    assert ([one.call.number for one in first.calls], [one.call.number for one in second.calls]) == (
        list(range(11, 41)),
        list(range(1, 11)),
    )
    assert (first.pages, first.totals, timeline_page("demo", calls, page=9, size=30)) == (2, second.totals, second)
    assert [point.first for point in first.overview] == list(range(1, 41))
    long = timeline_page("demo", calls * 30, size=30).overview
    assert (len(long), long[0].last, sum(point.compactions for point in long)) == (
        240,
        5,
        30 * first.totals.compactions,
    )


def test_a_call_of_the_demo_section_by_section(store: Store) -> None:
    shown = inspect_call(store, "demo", 29)
    budgets = [(one.name, one.tokens, one.budget_tokens, one.threshold_tokens) for one in shown.sections]
    assert budgets == snapshot(
        [
            ("tools", 114, None, None),
            ("system", 200, 240, None),
            ("static", 164, 360, None),
            ("meta", 93, 180, None),
            ("dynamic", 1276, 2000, 1800),
        ]
    )
    blocks = [(one.id, one.source, one.tokens, len(one.items)) for part in shown.sections for one in part.blocks]
    assert blocks == snapshot(
        [
            ("tools-1", "tools", 114, 10),
            ("system-1", "system", 72, 2),
            ("system-2", "system", 128, 1),
            ("static-1", "static", 164, 2),
            ("meta-1", "meta", 93, 5),
            ("dynamic-1", "task", 43, 1),
            ("dynamic-2", "bullets", 751, 27),
            ("dynamic-3", "verbatim", 17, 1),
            ("dynamic-4", "verbatim", 71, 1),
            ("dynamic-5", "verbatim", 13, 1),
            ("dynamic-6", "verbatim", 293, 2),
            ("dynamic-7", "verbatim", 76, 1),
            ("dynamic-8", "live", 12, 1),
        ]
    )
    assert sum(section.tokens for section in shown.sections) + 3 == shown.call.prompt_tokens
    assert inspect_call(store, "demo").call.number == 40


def test_the_page_of_a_call_begins_with_what_it_saw_what_it_lost_and_the_rules_in_sight(store: Store) -> None:
    rules = inspect_call(store, "demo", 33).rules
    page = str(Site(store=store).answer("sessions/demo/calls/33", {})[2], "utf-8")
    answers = page[: page.index('id="section-tools"')]
    assert rules
    assert f"Rules in sight: {sum(bool(one.places) for one in rules)} of {len(rules)}" in answers
    for sign in ("Cost", "Sections against their budgets", "Lost with this call: "):
        assert sign in answers
    before = str(Site(store=store).answer("sessions/demo/calls/32", {})[2], "utf-8")
    assert "This call lost nothing" in before


def test_a_bullet_leads_to_its_original_with_the_cited_words_marked(store: Store) -> None:
    shortest = min(items(store, 29, "bullets"), key=lambda item: (item.chars, item.text))
    assert shortest.model_dump() == snapshot(
        {
            "label": "",
            "ref": "",
            "ordinal": 0,
            "text": "37, thanks.",
            "chars": 11,
            "shown": "whole",
            "note": "§16",
            "tokens": 8,
            "originals": (
                {
                    "ref": "§16",
                    "ordinal": 16,
                    "role": "user",
                    "pieces": ({"text": "37, thanks. Show me a few of them.", "marked": False},),
                    "missing": "",
                },
            ),
        }
    )
    every = items(store, 29, "bullets")
    marked = [any(piece.marked for one in item.originals for piece in one.pieces) for item in every]
    assert (len(every), sum(marked)) == snapshot((27, 26))
    for item in every:
        for one in item.originals:
            whole = text_of(store.at("default", "demo").resolve(one.ref))
            assert all(piece.text in whole for piece in one.pieces if piece.marked)


def test_what_is_recalled_names_its_message_and_says_whether_it_is_whole(store: Store) -> None:
    recalled = items(store, 30, "recall")
    assert Counter(item.shown for item in recalled) == snapshot(Counter({"whole": 4, "excerpt": 1}))
    session = store.at("default", "demo")
    for item in recalled:
        assert item.ordinal
        assert item.text.strip("…")[:40] in text_of(session.resolve(f"§{item.ordinal}"))


def test_a_tool_result_says_how_much_of_it_was_shown(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s")
    session = store.session("s")
    session.append({"role": "user", "content": "Read the log."})
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    session.append({"role": "assistant", "content": None, "tool_calls": [call]})
    session.append({"role": "tool", "tool_call_id": "c1", "content": "line of a log\n" * 900})
    session.append({"role": "assistant", "content": "", "tool_calls": [call | {"id": "c2"}]})
    session.note("plan", "read on")
    EnvelopeBuilder("gpt-4o", budgets=Budgets(dynamic_tokens=900)).build(session)
    live = [(item.label, item.ref, item.shown, item.note, item.is_cut) for item in items(store, 1, "live", "s")]
    assert live == [
        ("user", "§1", "whole", "", False),
        ("assistant", "§2", "whole", "", False),
        ("tool", "§3", "excerpt", "read", False),
        ("assistant", "§4", "whole", "", False),
        ("tool", "", "placeholder", "read", False),
    ]
    assert [(item.label, item.text) for item in items(store, 1, "notes", "s")] == [("plan", "read on")]


def items(store: Store, number: int, source: str, session: str = "demo") -> list[Item]:
    shown = inspect_call(store, session, number)
    return [item for part in shown.sections for block in part.blocks if block.source == source for item in block.items]


def test_what_changed_with_a_compaction(store: Store) -> None:
    calls = past_calls(store, "demo")
    number = next(call.number for call in calls if call.number > 12 and call.compactions)
    shown = compare_calls(store, "demo", number, number - 1)
    assert (number, shown.prefix_tokens, shown.broke_in, shown.break_at) == snapshot((17, 748, "dynamic", 25))
    counted = Counter(f"{one.status} {one.source}" for one in (*shown.shown, *shown.dropped))
    assert dict(counted) == snapshot(
        {
            "kept tools": 10,
            "kept system": 3,
            "kept static": 2,
            "kept meta": 5,
            "kept task": 1,
            "kept bullets": 4,
            "new bullets": 13,
            "kept verbatim": 1,
            "new verbatim": 1,
            "new recall": 3,
            "new live": 1,
            "dropped verbatim": 9,
            "dropped live": 2,
        }
    )
    gone = [f"{one.ref} {one.why}, {len(one.losses)} losses, {len(one.bullets)} bullets" for one in shown.dropped]
    assert gone == snapshot(
        [
            "§16 bullet, 0 losses, 1 bullets",
            "§19 compacted, 14 losses, 0 bullets",
            "§20 bullet, 0 losses, 2 bullets",
            "§21 bullet, 33 losses, 1 bullets",
            "§23 bullet, 2 losses, 3 bullets",
            "§24 bullet, 0 losses, 1 bullets",
            "§25 compacted, 4 losses, 0 bullets",
            "§26 compacted, 1 losses, 0 bullets",
            "§27 bullet, 1 losses, 3 bullets",
            "§30 bullet, 0 losses, 2 bullets",
            "§32 recalled, 7 losses, 0 bullets",
        ]
    )
    assert [report.id for report in shown.reports] == [made.report for made in calls[number - 1].compactions]
    losses = {loss.ref for report in shown.reports for loss in report.losses}
    assert {loss.ref for one in shown.dropped for loss in one.losses} <= losses


def test_what_two_calls_show_alike_is_kept_and_only_that(store: Store) -> None:
    """Of two calls in one turn the earlier is a prefix of the later."""
    calls = past_calls(store, "demo")
    number = next(b.number for a, b in pairwise(calls) if a.turn == b.turn and not b.broke_in)
    shown = compare_calls(store, "demo", number, number - 1)
    assert ({one.status for one in shown.dropped}, shown.broke_in, shown.reports) == (set(), None, ())
    assert [one.status for one in shown.shown[shown.break_at :]] == ["new"] * (len(shown.shown) - shown.break_at)
    apart = compare_calls(store, "demo", 40, 1)
    assert sum(len(call.compactions) for call in calls[1:]) == len(apart.reports)


def test_losses_are_found_by_kind_and_words(store: Store) -> None:
    session, calls = store.at("default", "demo"), past_calls(store, "demo")
    rows = loss_rows(session, calls)
    every = losses_page(rows, size=10_000)
    assert loss_kinds(rows) == snapshot(
        [
            ("number", 117),
            ("identifier", 91),
            ("fact", 25),
            ("constraint", 15),
            ("error", 8),
            ("path", 5),
            ("url", 3),
            ("decision", 1),
        ]
    )
    assert every.total == sum(made.losses for call in calls for made in call.compactions) == len(every.rows)
    assert [row.call for row in every.rows] == sorted((row.call for row in every.rows), reverse=True)
    found = losses_page(rows, query="retry BUDGET", size=10_000)
    assert found.rows == tuple(
        row for row in every.rows if {"retry", "budget"} <= set(re.findall("[a-z]+", row.loss.text.lower()))
    )
    assert found.rows
    kind = losses_page(rows, kind="decision", page=99, size=3)
    assert (kind.page, kind.pages, {row.loss.kind for row in kind.rows}) == (
        kind.pages,
        -(-kind.total // 3),
        {"decision"},
    )


def test_messages_are_the_log_with_the_places_of_losses_marked(store: Store) -> None:
    session = store.at("default", "demo")
    spans = loss_spans(session)
    shown = messages_page(session, spans, page=1, size=20)
    assert ["".join(piece.text for piece in one.pieces) for one in shown.rows] == [
        text_of(entry.message) for entry in session.entries(1, 20)
    ]
    named = {
        row.loss.text.rstrip("…").strip()
        for row in loss_rows(session, ())
        if row.loss.ref.partition(".")[0] == "§4" and row.loss.span
    }
    marked = "".join(piece.text for piece in shown.rows[3].pieces if piece.marked)
    assert named
    assert all(text in marked for text in named)


def test_long_messages_are_cut_and_forgotten_ones_say_so(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s")
    session = store.session("s")
    session.append({"role": "user", "content": "x" * 5000})
    session.append({"role": "user", "content": "my number is 4417"}, principal="wei")
    EnvelopeBuilder("gpt-4o").build(session)
    forget(store, principal="wei", who="dpo", why="asked", when="2026-11-24T00:00:00Z")
    long, gone = messages_page(store.at("default", "s"), {}).rows
    assert (long.is_cut, long.chars, len(long.pieces[0].text)) == (True, 5000, 4000)
    assert (gone.pieces, "erased" in gone.missing) == ((), True)
    out = tmp_path / "out"
    Site(store=store).write(out)
    assert "x" * 5000 in (out / "en/sessions/s/message-1.html").read_text(encoding="utf-8")
    assert not any("4417" in path.read_text(encoding="utf-8") for path in out.rglob("*.html"))


def test_the_index_has_pages_and_is_searched(tmp_path: Path) -> None:
    store = open_store("memory:")
    for number in range(120):
        store.session(f"s-{number:03}").append({"role": "user", "content": f"Hello {number}"})
    store.session("empty")
    second = sessions_page(store, "default", page=2)
    assert (second.pages, second.total, [row.id for row in second.rows[:2]]) == (3, 121, ["s-049", "s-050"])
    (row,) = sessions_page(store, "default", query="S-07 9").rows
    assert row._asdict() == {
        "id": "s-079",
        "messages": 1,
        "compactions": 0,
        "title": "Hello 79",
        "is_damaged": False,
    }
    assert sessions_page(store, "default", query="empty").rows[0].messages == 0
    assert sessions_page(store, "other").rows == ()


def test_a_long_tail_of_other_records_does_not_hide_the_number_of_messages() -> None:
    store = open_store("memory:")
    session = store.session("s")
    session.append({"role": "user", "content": "Hello"})
    for number in range(150):
        session.note("plan", str(number))
    assert sessions_page(store, "default").rows[0].messages == 1


QUOTES = {
    "as it stands": ("Keep it. Never book before ten. Thanks.", "Never book before ten.", ["Never book before ten."]),
    "over a line": ("never book\nbefore ten", "Never book before ten", ["never book\nbefore ten"]),
    "two parts": (
        "Budget is 5 now. Then tea in the garden.",
        "Budget is 5 now…tea in the garden",
        ["Budget is 5 now.", "tea in the garden."],
    ),
    "not there": ("Budget is 5 now.", "Retries are unlimited", []),
    "too short": ("a b c d", "b c", []),
    "short, but all": ("Make it 5.", "Make it 5.", ["Make it 5."]),
    "nothing": ("Budget", "", []),
    "of a pattern": ("costs (about $5.00) [net]", "costs (about $5.00) [net]", ["costs (about $5.00) [net]"]),
}


@pytest.mark.parametrize(("text", "quote", "marked"), QUOTES.values(), ids=QUOTES)
def test_quoted_words_are_found(text: str, quote: str, marked: list[str]) -> None:
    assert [text[start:stop] for start, stop in quoted(text, quote)] == marked


# -- frame --------------------------------------------------------------------------------------------------------

NAMES = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=40)


@given(name=st.sampled_from(sorted(ROUTES)), session=NAMES, number=st.integers(1, 10**6), page=st.integers(1, 999))
def test_a_live_link_leads_to_its_place(name: str, session: str, number: int, page: int) -> None:
    pattern = ROUTES[name].live
    place = Place(
        name,
        session if "{session}" in pattern else "",
        number if "{number}" in pattern else 0,
        number + 1 if "{since}" in pattern else 0,
        page,
        (("q", session),),
    )
    link = urlsplit(Frame(at=Place("sessions"), root="/view").href(place))
    asked = dict(pair.split("=") for pair in link.query.split("&") if pair)
    decoded = {key: unquote(value.replace("+", " ")) for key, value in asked.items()}
    assert place_of(unquote(link.path).removeprefix("/view/"), decoded) == place  # as a server decodes a path once


@pytest.mark.parametrize(
    "path", ["nothing", "sessions/a/b", "sessions/a/calls/0", "sessions/a/calls/x", "sessions/a/calls/1/since/"]
)
def test_other_paths_are_no_places(path: str) -> None:
    assert place_of(path, {}) is None


def test_both_languages_have_every_text_with_the_same_values_and_no_other() -> None:
    assert all(tuple(both) == LANGUAGES for both in texts().values())
    for key, both in texts().items():
        english, chinese = (sorted(re.findall(r"\{(\w+)\}", text)) for text in both.values())
        assert english == chinese, key
        assert all(text.strip() for text in both.values()), key
    used, begun = set(), set()
    for path in TEMPLATES.glob("*.j2"):
        for key, more in re.findall(r"""\bt\(["']([\w.]+)["']( ~)?""", path.read_text(encoding="utf-8")):
            (begun if more else used).add(key)
    assert used <= set(texts())
    assert {key for key in texts() if key not in used and not key.startswith(tuple(begun))} == set()
    assert all(any(key.startswith(start) for key in texts()) for start in begun)
    assert {f"kind.{kind}" for kind in get_args(RecommendationKind)} <= set(texts())
    assert {f"status.{status}" for status in get_args(RecordStatus)} <= set(texts())


def test_a_language_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="'fr' is no language of these pages; take en or zh"):
        Frame(at=Place("sessions"), language="fr")


def test_what_has_no_shape_is_written_out() -> None:
    assert str(seen("a\x00\u202eb<\u200b\ud800\n\t")) == (
        'a<span class="unseen">\\x00</span><span class="unseen">\\u202e</span>b&lt;'
        '<span class="unseen">\\u200b</span><span class="unseen">\\ud800</span>\n\t'
    )
    assert plain("a\x00\u2066") == "a\\x00\\u2066"
    assert str(seen("👩‍🔬 नमस्ते 中文 é")) == "👩‍🔬 नमस्ते 中文 é"


def test_a_bar_of_page_numbers_names_the_ends_and_what_is_near() -> None:
    assert [list(window(*one)) for one in ((1, 1), (5, 3), (40, 20))] == [
        [1],
        [1, 2, 3, 4, 5],
        [1, 0, 17, 18, 19, 20, 21, 22, 23, 0, 40],
    ]
    assert [pages_of(count, 50) for count in (0, 1, 50, 51)] == [1, 1, 1, 2]


# -- HTML ---------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """A page taken apart."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[tuple[str, str]] = []
        self.tags: Counter[str] = Counter()
        self.faults: list[str] = []
        self.text: list[str] = []
        self.unnamed: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.faults += [f"{tag} is never closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags[tag] += 1
        if tag not in VOID:
            self._open.append(tag)
        self.faults += [f"{tag} {name}" for name in given if name.startswith("on") or name == "style"]
        if "id" in given:
            self.ids.append(given["id"])
        self.links += [(tag, given[name]) for name in ("href", "src", "action") if name in given]
        if tag == "script" and "src" not in given:
            self.faults.append("a script without a file")
        if tag in ("style", "iframe", "object", "embed", "base"):
            self.faults.append(tag)
        if tag == "svg" and not (given.get("aria-label") or given.get("aria-hidden")):
            self.unnamed.append("svg")
        if tag == "nav" and not given.get("aria-label"):
            self.unnamed.append("nav")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if self._open[-1:] == ["script"] and data.strip():
            self.faults.append("text in a script")


VOID = {"meta", "link", "br", "img", "input", "hr"}
ENTRY = f"{DOCUMENTATION}troubleshooting/#"


def taken_apart(out: Path) -> dict[str, Page]:
    return {str(path.relative_to(out)): Page(path.read_text(encoding="utf-8")) for path in sorted(out.rglob("*.html"))}


def check(out: Path, apart: dict[str, Page]) -> None:
    """Every id once, every link to a file and a place that are there, nothing from elsewhere, nothing inline.

    What a finding means is the one thing that stands elsewhere: in the documentation.
    """
    ids = {name: set(page.ids) for name, page in apart.items()}
    for name, page in apart.items():
        assert page.faults == [], name
        assert page.unnamed == [], name
        assert len(page.ids) == len(ids[name]), (name, [id for id, times in Counter(page.ids).items() if times > 1])
        assert (page.tags["main"], page.tags["h1"], page.tags["table"]) == (1, 1, page.tags["caption"]), name
        for tag, link in page.links:
            if tag == "a" and link.startswith(ENTRY) and link.removeprefix(ENTRY) in FINDING_KINDS:
                continue
            parts = urlsplit(link)
            assert (parts.scheme, parts.netloc, parts.query) == ("", "", ""), (name, tag, link)
            to = (out / name).parent / unquote(parts.path) if parts.path else out / name
            assert to.resolve().is_relative_to(out.resolve()), (name, link)
            assert to.is_file(), (name, link)
            if parts.fragment and to.suffix == ".html":
                assert unquote(parts.fragment) in ids[str(to.resolve().relative_to(out.resolve()))], (name, link)


def test_every_page_of_the_demo_holds_together(pages: Path) -> None:
    apart = taken_apart(pages)
    check(pages, apart)
    session = "sessions/demo"
    one = [
        f"{session}/{name}"
        for name in (
            "call-38",
            "call-39",
            "call-40",
            "diff-37-38",
            "diff-38-39",
            "diff-39-40",
            "health",
            "index",
            "losses",
            "message-22",
            "messages",
            "messages-2",
        )
    ]
    assert sorted(apart) == sorted(
        ["index.html", *(f"{tag}/{name}.html" for tag in LANGUAGES for name in ("index", "widget", *one))]
    )
    assert {path.name for path in (pages / "assets").iterdir()} == {
        "pages.css",
        "pages.js",
        "context-meter.js",
        "icon.svg",
    }


def test_each_page_is_in_its_language_and_leads_to_the_other(pages: Path) -> None:
    for tag, other in (LANGUAGES, LANGUAGES[::-1]):
        text = (pages / tag / "sessions/demo/call-40.html").read_text(encoding="utf-8")
        assert f'<html lang="{tag}">' in text
        assert f'href="../../../{other}/sessions/demo/call-40.html"' in text
        assert texts()["session.timeline"][tag] in text


def test_the_same_store_gives_the_same_bytes_and_what_is_no_longer_written_goes(store: Store, tmp_path: Path) -> None:
    contents = []
    for name in ("a", "b"):
        Site(store=store).write(tmp_path / name, calls=2)
        contents.append(
            {
                str(path.relative_to(tmp_path / name)): path.read_bytes()
                for path in (tmp_path / name).rglob("*")
                if path.is_file()
            }
        )
    assert contents[0] == contents[1]
    (tmp_path / "a" / "notes.txt").write_text("mine")
    Site(store=store).write(tmp_path / "a", calls=1)
    left = {str(path.relative_to(tmp_path / "a")) for path in (tmp_path / "a").rglob("*") if path.is_file()}
    assert set(contents[0]) - left == {
        f"{tag}/sessions/demo/{name}.html" for tag in LANGUAGES for name in ("call-39", "diff-38-39")
    }
    assert left - set(contents[0]) == {"notes.txt"}


def test_files_that_a_forged_list_names_outside_stay(store: Store, tmp_path: Path) -> None:
    mine = tmp_path / "mine.html"
    mine.write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/written-by-ctxsteward-view.txt").write_text(
        f"../mine.html\nen/../../mine.html\n{mine}\nen/old.html\n"
    )
    (tmp_path / "out/en").mkdir()
    (tmp_path / "out/en/old.html").write_text("old")
    Site(store=store, sessions=()).write(tmp_path / "out")
    assert (mine.read_text(), (tmp_path / "out/en/old.html").exists()) == ("mine", False)


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "<svg onload=alert(1)>",
    "{{7*7}} {% raw %} ${7*7}",
    "nul \x00 esc \x1b[31m",
    "bidi \u202e\u2066evil\u2069",
    "</style><style>*{}</style>",
    "<!--",
    "]]>",
    "' onmouseover='x",
    "</main></body>",
    "&lt;b&gt;",
    "[x](javascript:alert(1))",
    '§12 §x" onclick="y',
]
SESSION = '"><script>alert(1)</script>{{7*7}}'


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Hostile texts wherever a text goes: names, notes, tools, results, the session's own."""
    store = open_store(tmp_path_factory.mktemp("hostile") / "s")
    function = {"name": "run<script>", "description": HOSTILE[0], "parameters": {"type": "object", "properties": {}}}
    session = store.session(SESSION, system=HOSTILE[3], tools=[{"type": "function", "function": function}])
    builder = EnvelopeBuilder("gpt-4o", budgets=Budgets(dynamic_tokens=400))
    for turn in range(40):
        text = HOSTILE[turn % len(HOSTILE)]
        session.append(
            {"role": "user", "content": f"We decided: {text} is {turn} ms, never more. What of {text}?"},
            principal=plain(text)[:60],
        )
        call = {
            "id": f"c{turn}",
            "type": "function",
            "function": {"name": "run<script>", "arguments": json.dumps({"x": text})},
        }
        session.append({"role": "assistant", "content": text, "tool_calls": [call]})
        session.append({"role": "tool", "tool_call_id": f"c{turn}", "content": text * (400 if turn == 39 else 1)})
        session.note(f"note-{turn % 3}", text)
        builder.build(session)
        session.append({"role": "assistant", "content": f"Noted {text}"})
    return store


def test_hostile_texts_stay_texts(hostile: Store, tmp_path: Path) -> None:
    out = tmp_path / "out"
    Site(store=hostile).write(out, calls=4)
    apart = taken_apart(out)
    check(out, apart)
    assert len(apart) > 20
    for name, page in apart.items():
        assert page.tags["script"] == (name != "index.html") + name.endswith("/widget.html"), name
        assert (page.tags["img"], page.tags["style"]) == (0, 0), name
    every = "".join(path.read_text(encoding="utf-8") for path in out.rglob("*.html"))
    assert not set(every) & set("\x00\x1b\u202e\u2066\u2069")
    assert "\\u202e" in every
    said = "".join("".join(page.text) for name, page in apart.items() if name.startswith("en") and "/messages" in name)
    assert [text for text in HOSTILE if text.isprintable() and text not in said] == []
    assert "{{7*7}}" in said


def test_hostile_requests_are_answered_with_pages(hostile: Store) -> None:
    site = Site(store=hostile, root="/view")
    for text in (*HOSTILE, SESSION):
        for path, asked in (
            (f"sessions/{text}", {}),
            ("sessions", {"q": text, "page": text, "lang": text}),
            (text, {}),
            (f"assets/{text}", {}),
            (f"sessions/{SESSION}/losses", {"q": text, "kind": text}),
        ):
            answer = site.answer(path, asked)
            page = Page(answer.body.decode())
            assert answer.status in (200, 404), (path, asked)
            assert page.faults == [], (path, asked)
            assert page.tags["script"] == 2


def test_live_pages_have_the_same_contents_and_live_links(store: Store) -> None:
    site = Site(store=store, root="/view")
    answer = site.answer("sessions/demo/calls/40", {"lang": "zh"})
    page = Page(answer.body.decode())
    assert (answer.status, answer.kind, page.faults) == (200, "text/html; charset=utf-8", [])
    assert ("a", "/view/sessions/demo/calls/39?lang=zh") in page.links
    assert ("a", "/view/sessions/demo/calls/40") in page.links  # the other language
    assert ("script", "/view/assets/htmx.min.js") in page.links
    for _, link in page.links:
        parts = urlsplit(link)
        if parts.path.startswith("/view/"):
            asked = dict(pair.split("=") for pair in parts.query.split("&") if pair)
            assert site.answer(unquote(parts.path).removeprefix("/view/"), asked).status == 200, link
    assert {name: site.answer(f"assets/{name}", {}).status for name in ASSETS} == dict.fromkeys(ASSETS, 200)


STATUSES = {
    "no page": ("nowhere", 404, "There is no such page."),
    "no session": ("sessions/nobody", 404, "no such session"),
    "no call": ("sessions/demo/calls/99", 422, "no call 99; it has 1 to 40"),
    "no message": ("sessions/demo/messages/9999", 422, "no message §9999; it holds §1 to §"),
    "calls the wrong way round": ("sessions/demo/calls/3/since/4", 422, "call 3 is not after call 4"),
    "no asset": ("assets/x.js", 404, "There is no such page."),
    "an asset above": ("assets/../texts.yaml", 404, "There is no such page."),
    "a page beyond": ("sessions/demo?page=99", 200, "Calls"),
    "nothing": ("", 200, "Sessions"),
}


@pytest.mark.parametrize(("path", "status", "said"), STATUSES.values(), ids=STATUSES)
def test_what_is_not_there_says_so(store: Store, path: str, status: int, said: str) -> None:
    parts = urlsplit(path)
    asked = dict(pair.split("=") for pair in parts.query.split("&") if pair)
    answer = Site(store=store).answer(parts.path, asked)
    assert (answer.status, said in "".join(Page(answer.body.decode()).text)) == (status, True)


def test_only_what_is_shown_is_shown(store: Store) -> None:
    site = Site(store=store, sessions=("other",))
    assert site.answer("sessions/demo", {}).status == 404
    assert site.answer("sessions", {}).body.count(b"<tr>") == 2  # the head, and `other`
    with pytest.raises(ReferenceNotFound):
        site.reading("demo")


def test_a_browser_runs_the_pages_from_the_disk(pages: Path, tmp_path: Path) -> None:
    """Under their own policy: the sheet is taken, and the script counts the rows that a table has."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip(CHROMIUM)
    page = pages / "en/sessions/demo/losses.html"
    done = subprocess.run(
        [
            chromium,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path}",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    rows = page.read_text(encoding="utf-8").count("<tr data-kind")
    assert rows > 100
    assert re.search(rf'<output class="dim"[^>]*>{rows} / {rows}</output>', done.stdout), done.stderr[-2000:]
    assert "Refused to" not in done.stderr


# -- commands -----------------------------------------------------------------------------------------------------


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def run(store: Store, *args: str) -> Ran:
    done = CliRunner().invoke(cli, [*args, "--store", store.uri])
    return Ran(done.exit_code, done.stdout, done.stderr)


def test_a_call_as_a_grid(store: Store) -> None:
    done = run(store, "view", "demo", "--call", "29")
    assert (done.code, done.err) == (0, "")
    assert done.out == snapshot("""\
demo: call 29 of 40, gpt-4o
T T T T T T T T T P P P P P P P P P P P   ■ T  tool schemas       114   4 %
P P P P S S S S S S S S S S S S S M M M   ■ P  persona, policies  200   8 %
M M M M K K K K B B B B B B B B B B B B   ■ S  rails, surface     164   6 %
B B B B B B B B B B B B B B B B B B B B   ■ M  recommendations     93   4 %
B B B B B B B B B B B B B B B B B B B B   ■ K  task                43   2 %
B B B B B B C C C C C C C C C C C C C C   ■ B  bullets            751  29 %
C C C C C C C C C C C C C C C C C C C C   ■ C  closed turns       470  18 %
C C C L · · · · · · · · · · · · · · · ·   ■ L  live turn           12   0 %
· · · · · · · · · · · · · · · · · · · ·   ·    free               724  28 %
· · · · · · · · · · · · · · · · · · · ·                                    \n\
prompt 1,850 of 2,574 tokens, compacted once it exceeds 2,374; cache read 1,382, written 468;\
 1,159 plain tokens, $0.00290
""")
    newest = run(store, "view", "demo", "--grid")
    assert run(store, "context", "--grid", "demo") == newest
    assert newest.out.startswith("demo: call 40 of 40, gpt-4o\n")
    cells = [line.split("   ")[0].split() for line in newest.out.splitlines()[1:11]]
    assert [len(row) for row in cells] == [20] * 10


def test_a_call_that_is_none_is_refused_in_one_line(store: Store, tmp_path: Path) -> None:
    done = run(store, "view", "demo", "--call", "99")
    assert done == (2, "", "ctxsteward: session 'demo': no call 99; it has 1 to 40\n")
    silent = open_store(tmp_path / "s")
    silent.session("s")
    assert run(silent, "view", "s").err == ("ctxsteward: session 's': no envelope was built of it; build it first\n")


def test_a_call_as_json_is_its_view_model(store: Store) -> None:
    done = run(store, "view", "demo", "--call", "29", "--json")
    assert json.loads(done.out) == inspect_call(store, "demo", 29).model_dump(mode="json")
    assert json.loads(run(store, "context", "--grid", "demo", "--json").out)["call"]["number"] == 40


def test_pages_are_written_by_the_command(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(store, "view", "demo", "--static", str(out), "--calls", "1", "--price", "2.5")
    assert (done.code, done.out, done.err) == (0, "", f"ctxsteward: 21 pages; open {out / 'index.html'}\n")
    assert "$ " in (out / "en/sessions/demo/call-40.html").read_text(encoding="utf-8")


def test_without_a_session_all_of_them_get_pages_and_with_all_every_call(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s")
    builder = EnvelopeBuilder("gpt-4o")
    for id in ("a", "b"):
        session = store.session(id)
        for turn in range(3):
            session.append({"role": "user", "content": f"Turn {turn}"})
            builder.build(session)
    out = tmp_path / "out"
    done = run(store, "view", "--static", str(out), "--calls", "all", "--json")
    assert json.loads(done.out) == {"folder": str(out), "index": str(out / "index.html"), "pages": 1 + 2 * (2 + 2 * 9)}
    check(out, taken_apart(out))


def test_eval_results_stand_in_the_same_frame(store: Store, tmp_path: Path) -> None:
    from ..evals.suites.made import made, played

    history = tmp_path / "history.jsonl"
    results = [made(played(0, good, 10)).model_copy(update={"when": f"2026-11-2{good}T00:00:00Z"}) for good in (7, 9)]
    history.write_text("".join(f"{one.model_dump_json()}\n" for one in results), encoding="utf-8")
    out = tmp_path / "out"
    done = run(store, "view", "demo", "--static", str(out), "--calls", "1", "--history", str(history))
    assert done.code == 0, done.err
    apart = taken_apart(out)
    check(out, apart)
    assert "since last run" in "".join(apart["en/evals.html"].text)
    assert Site(store=store).answer("evals", {}).status == 200
