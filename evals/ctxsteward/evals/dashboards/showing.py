"""Runs that show every instrument something: ``python -m ctxsteward.evals.dashboards.showing builds WHERE``.

``builds``: the incident that the demo ships is replayed at an even pace, over and over in sessions of their own, under
a window so small that its guard speaks; requests are audited, and now and then one lacks a message; a compaction's
record is damaged, so that the session that is opened again has to make it anew; a build fails, since its head is larger
than its window. ``nights``: one night of the steward after the other over the shipped transcripts and more and more of
a made-up help desk's, and after each a few scenarios of an eval suite.

`WHERE` is as in ``--telemetry``; the first line printed is where telemetry goes, the last is ``shown``. All offline.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.resources import files
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, Profile, Session, Store, open_store
from ctxsteward.envelope.audit import audit
from ctxsteward.envelope.audit import auditor as audits
from ctxsteward.envelope.telemetry.sdk import exported
from ctxsteward.envelope.transcripts import Transcript, parse_transcripts
from ctxsteward.schemas import BudgetExceeded, WindowExceeded
from ctxsteward.steward.night import telemetry as nights
from ctxsteward.steward.night.environment import of_this_process
from ctxsteward.steward.night.run import run_night
from ctxsteward.steward.settings import NightSettings
from ctxsteward.steward.wiring import open_night

from .. import telemetry as evals
from ..bench.conversations import write
from ..replay import new_message
from ..suites.catalogue import suite_named
from ..suites.gates import shipped_gates
from ..suites.kit.suite import Setup, drawn
from ..suites.results import result, run

MODEL, WINDOW_TOKENS, RESERVE_TOKENS = "gpt-4o", 2_720, 100
BUDGETS = Budgets(static_tokens=200, meta_tokens=160, dynamic_tokens=2_000)
DATA = Path(str(files("ctxsteward.console"))) / "data"
"""Files of the package's, not its code."""
FIRST_DAY = 23
"""Of November 2026: the day after the last shipped transcript."""
TRANSCRIPTS = 20
"""Of the help desk, more each night."""
SUITE = "verbatim"
AUDIT_EVERY, CUT_EVERY, DAMAGE_EVERY = 3, 40, 50
"""Calls between audits, requests that lack a message, damaged records."""
CALLS_PER_SECOND = 10.0


# -- nights and evals ---------------------------------------------------------------------------------------------


def nightly(seconds: float, count: int = 5) -> None:
    """So many nights and evals, spread over so long, in a store of their own."""
    started = time.monotonic()
    profile = Profile.load(DATA / "steward" / "profile.yaml")
    with TemporaryDirectory() as folder:
        store = f"file:{folder}/store"
        with open_store(store) as own:
            own.profiles(profile.name).commit(profile, who="shipped demo", why="a run to look at", when="2026-11-22")
        for number, day in enumerate(range(FIRST_DAY, FIRST_DAY + count)):
            write(Path(folder) / "desk", TRANSCRIPTS, TRANSCRIPTS * number)
            sources = (str(DATA / "steward" / "transcripts"), f"{folder}/desk")
            _night(NightSettings(store=store, sources=sources, profile=profile.name, night=f"2026-11-{day}", workers=1))
            _evals(scenarios=number + 1)
            time.sleep(max(0.0, started + seconds * (number + 1) / count - time.monotonic()))


def _night(settings: NightSettings) -> None:
    with open_night(settings, of_this_process()) as opening:
        nights.tell_night(run_night(opening.stages, opening.shell))


def _evals(scenarios: int) -> None:
    setup, suite = Setup(), suite_named(SUITE)
    played = list(run(list(drawn(SUITE, "docs", scenarios)), setup))
    evals.tell_eval(result(suite, played, split="docs", setup=setup, gates=shipped_gates()[SUITE], when="2026-11-22"))


# -- builds -------------------------------------------------------------------------------------------------------


def replay(seconds: float) -> None:
    """Build at an even pace for so long."""
    until = time.monotonic() + seconds
    with open_store("memory:") as store:
        calls = chain.from_iterable(_calls(store, f"incident-{number}") for number in count(1))
        for number, (session, builder) in enumerate(calls, start=1):
            _call(store, session, builder, number)
            if time.monotonic() > until:
                return
            time.sleep(1 / CALLS_PER_SECOND)


def _calls(store: Store, id: str) -> Iterator[tuple[Session, EnvelopeBuilder]]:
    """The session as it stands before each model call."""
    transcript = _incident()
    builder = _builder()
    profile = Profile.load(DATA / "demo-profile.yaml")
    session = store.session(id, tools=transcript.tools, system=transcript.system, profile=profile)
    for number, entry in enumerate(transcript.entries(), start=1):
        if entry.wire.get("role") == "assistant" and number > 1:
            yield session, builder
        session.extend([new_message(entry, number)])


def _call(store: Store, session: Session, builder: EnvelopeBuilder, number: int) -> None:
    with suppress(BudgetExceeded, WindowExceeded):
        envelope = builder.build(session)
        if number % AUDIT_EVERY == 0:
            _audit(envelope, cut=number % CUT_EVERY < AUDIT_EVERY)
        if number % DAMAGE_EVERY == 0:
            _damage(store, session)
            builder.build(store.session(session.id))
            _builder(window_tokens=300).build(session)  # does not fit


def _audit(envelope: Envelope, *, cut: bool) -> None:
    request = envelope.render("openai-chat")
    if cut:
        request = {**request, "messages": request["messages"][:-1]}
    audit(envelope, request)


def _damage(store: Store, session: Session) -> None:
    """The newest compaction, or the newest record, no longer carries its code."""
    records = store.journal.read(session.key, 0)
    at = max((n for n, record in enumerate(records) if record.kind == "compaction"), default=len(records) - 1)
    store.journal.rewrite(session.key, {at: records[at]._replace(mac="")})


def _builder(window_tokens: int = WINDOW_TOKENS) -> EnvelopeBuilder:
    return EnvelopeBuilder(
        model=MODEL, budgets=BUDGETS, window_tokens=window_tokens, output_reserve_tokens=RESERVE_TOKENS
    )


def _incident() -> Transcript:
    (transcript,) = parse_transcripts((DATA / "demo.jsonl").read_text(encoding="utf-8"), "demo.jsonl")
    return transcript


def main(argv: list[str] | None = None) -> int:
    """Show it."""
    parser = argparse.ArgumentParser(prog="python -m ctxsteward.evals.dashboards.showing", description=__doc__)
    parser.add_argument("what", choices=("builds", "nights"))
    parser.add_argument("where", metavar="WHERE")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--nights", type=int, default=5, metavar="N")
    parser.add_argument("--linger", type=float, default=0.0, metavar="SECONDS")
    options = parser.parse_args(argv)
    with exported(options.where, stream=sys.stderr, boards=(audits.board(), nights.board(), evals.board())) as where:
        print(where, flush=True)
        if options.what == "builds":
            replay(options.seconds)
        else:
            nightly(options.seconds, options.nights)
        print("shown", flush=True)
        time.sleep(options.linger)
    return 0


if __name__ == "__main__":
    sys.exit(main())
