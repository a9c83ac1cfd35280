"""One browser and one service for all of these tests: 1,000 sessions, one of 2,000 turns, a desk with people."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from ctxsteward.console.steward.actors import Voucher, add_actor
from ctxsteward.console.terminal.options import utc_now
from ctxsteward.envelope import Budgets, EnvelopeBuilder, Profile, Store, open_store
from ctxsteward.steward import Approvals
from ctxsteward.steward.drift.report import report

from ..console.steward.scenes import run as run_steward, transcript
from ..evals.suites.made import made, played
from ..needs import CHROMIUM
from .attacks import ATTACKS, HOOK

COMMAND = [sys.executable, "-c", "from ctxsteward.console.cli import main; main()", "serve", "--port", "0", "--json"]
SESSIONS, TURNS, DESK = 1_000, 2_000, "fernhollow-desk"
LANGUAGES, THEMES = ("en", "zh"), ("light", "dark")
HOSTILE = '"><script>alert(`ran-session`)</script>{{7*7}}'
"""Id of a session."""


class Served(NamedTuple):
    """A service of a process of its own, and who may decide there."""

    url: str
    store: str
    tokens: dict[str, str]

    def at(self, path: str) -> str:
        return self.url + path.removeprefix("/")


def _fill(store: Store) -> None:
    for number in range(SESSIONS):
        store.session(f"s-{number:04}").append({"role": "user", "content": f"Ticket {number}: please look at it."})
    builder = EnvelopeBuilder("gpt-4o", budgets=Budgets(dynamic_tokens=2000))
    long = store.session("long", system="You look after tickets.")
    for stretch in range(2):
        start = stretch * TURNS // 2
        long.extend(
            {"role": role, "content": f"{said} {number}: service-{number % 40} needs {number * 3} ms."}
            for number in range(start, start + TURNS // 2)
            for role, said in (("user", "Look at ticket"), ("assistant", "Noted ticket"))
        )
        builder.build(long)
    trip = store.session("trip", system="You plan trips.")
    small = EnvelopeBuilder("gpt-4o", budgets=Budgets(dynamic_tokens=600))
    for number in range(24):
        trip.append({"role": "user", "content": f"Day {number}: never book before {number}:00; budget {number * 900}."})
        small.build(trip)
        trip.append({"role": "assistant", "content": f"Noted: day {number} begins after {number}:00, tea, a garden."})
    for name in ("full", "plain", "meter"):
        rules = ({"role": "user", "content": f"Rule {n}: keep room {n} at {n} degrees, always."} for n in range(95))
        store.session(name).extend(rules)
    _attack(store)


def _attack(store: Store) -> None:
    """Attacks wherever somebody's text goes."""
    function = {"name": "run<script>", "description": ATTACKS[0], "parameters": {"type": "object", "properties": {}}}
    session = store.session(HOSTILE, system=ATTACKS[8], tools=[{"type": "function", "function": function}])
    builder = EnvelopeBuilder("gpt-4o", budgets=Budgets(dynamic_tokens=900))
    for at, text in enumerate(ATTACKS):
        call = {
            "id": f"c{at}",
            "type": "function",
            "function": {"name": "run<script>", "arguments": json.dumps({"x": text})},
        }
        session.extend(
            [
                {"role": "user", "content": f"We decided: {text} is {at} ms, never more. What of {text}?"},
                {"role": "assistant", "content": text, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{at}", "content": f"Error: {text}"},
                {"role": "assistant", "content": f"Noted {text}"},
            ]
        )
        if at % 8 == 7 or at == len(ATTACKS) - 1:
            session.note("plan", "\n".join(f"- [ ] {each}" for each in ATTACKS))
            builder.build(session)
    session.append({"role": "user", "content": "And now?"})
    builder.build(session)
    said, changed = (
        Profile.model_validate(
            {
                "name": "hostile",
                "persona": [{"id": f"a{at}", "text": " ".join(text.split()) + more} for at, text in enumerate(ATTACKS)],
            }
        )
        for more in ("", " again")
    )
    when = utc_now()
    store.profiles("hostile").commit(said, who=ATTACKS[9][:80], why=ATTACKS[0], when=when, parent=0)
    Approvals(store, "hostile").request(
        changed, report(said, changed), parent=1, author=ATTACKS[10], when=when, note=ATTACKS[4]
    )


def _hostile_transcripts(folder: Path) -> None:
    """What several people say, so that a candidate quotes it."""
    for at in range(0, len(ATTACKS), 7):
        text = " ".join(ATTACKS[at].split())
        for name in ("xan", "yma", "zoe"):
            said = (
                f"When does pickup {at} end?",
                "At 17:00.",
                f"Correction: pickup {at} {text} ends at 18:{at:02}.",
                "Ok.",
            )
            transcript(folder / f"{name}-{at}.json", *said, session=f"{name}-{at}", principal=f"{name}<b>")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("browser")
    uri = f"file:{folder / 'store'}"
    _hostile_transcripts(folder / "said")
    shipped = Path(__file__).parents[2] / "console/ctxsteward/console/data/steward"
    run_steward(
        "run",
        "--store",
        uri,
        "--profile",
        str(shipped / "profile.yaml"),
        "--transcripts",
        str(shipped / "transcripts"),
        "--transcripts",
        str(folder / "said"),
        code=None,
    )
    with open_store(uri) as store:
        _fill(store)
    roles = {"ada": ("reviewer",), "ben": ("reviewer",), "otto": ("operator",)}
    tokens: dict[str, str] = {}
    for name, role in roles.items():
        by = Voucher("ada", tokens["ada"]) if tokens else None
        tokens[name] = add_actor(folder / "store/actors.yaml", name, role, by)
    history = folder / "history.jsonl"
    results = [made(played(0, good, 10)).model_copy(update={"when": f"2026-11-2{good}T00:00:00Z"}) for good in (7, 9)]
    history.write_text("".join(f"{one.model_dump_json()}\n" for one in results), encoding="utf-8")
    with _running(folder, uri, "--eval-history", str(history)) as url:
        yield Served(url, uri, tokens)


@contextmanager
def _running(folder: Path, uri: str, *options: str) -> Iterator[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CTXSTEWARD_")}
    log = (folder / "log").open("w")
    process = subprocess.Popen(
        [*COMMAND, "--store", uri, "--rate", "0", "--budget", "dynamic_tokens=2000", *options],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=log,
        env=kept,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (folder / "log").read_text()
        yield str(json.loads(line)["url"])
    finally:
        process.terminate()
        process.communicate(timeout=60)
        log.close()


@pytest.fixture(scope="module")  # while it is open an event loop runs in this thread: it ends with its tests
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip(CHROMIUM)
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
            env={**os.environ, "HOME": home},
        )
        yield started
        started.close()


class Watched(NamedTuple):
    """A page, and what happened on it that should not."""

    page: Page
    faults: list[str]

    def open(self, url: str) -> None:
        self.page.goto(url, wait_until="load")


@contextmanager
def looking(browser: Browser, served: Served, **options: Any) -> Iterator[Watched]:
    """A window of a browser that knows nothing yet."""
    context: BrowserContext = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
    context.set_default_timeout(30_000)
    context.add_init_script(HOOK)
    faults: list[str] = []
    page = context.new_page()
    watch(page, served.url, faults)
    try:
        yield Watched(page, faults)
    finally:
        context.close()


def watch(page: Page, url: str, faults: list[str]) -> None:
    page.on("console", lambda said: faults.append(f"console: {said.text}") if said.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    page.on(
        "request",
        lambda asked: (
            None if asked.url.startswith((url, "about:", "blob:")) else faults.append(f"request: {asked.url}")
        ),
    )
    page.on("dialog", lambda dialog: (faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))


def ids(session: str) -> str:
    """Of a session, as it stands in a path."""
    return quote(quote(session, safe=""), safe="")
