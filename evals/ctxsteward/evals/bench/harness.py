"""What replaying scenarios through the eval harness costs: CPU of one process for so many turns, checks included.

Scenarios of the `verbatim` suite, first one after the other, then one conversation that never ends.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain, count
from pathlib import Path

from ..suites.kit.suite import Draw, PlayCounts, Scenario, Setup
from ..suites.results import play_one
from ..suites.verbatim import make, play_verbatim
from . import BenchmarkRow, row

NAME = "harness"
TURNS = 10_000
LIMIT_SECONDS = 60


def run(data: Path | None = None) -> Iterator[BenchmarkRow]:
    """Yield the figures."""
    play_one(Draw("verbatim", "docs", 1), Setup())  # the encoder's tables are loaded once a process
    turns = builds = 0
    seconds = 0.0
    for number in count():
        if turns >= TURNS:
            break
        played = play_one(Draw("verbatim", "docs", number), Setup())
        turns, builds, seconds = turns + played.turns, builds + played.builds, seconds + played.cpu_seconds
    what = f"CPU of {TURNS:,} turns of scenarios, built and judged, one core"
    yield row(NAME, what, seconds * TURNS / turns, "s", at_most=LIMIT_SECONDS)
    yield row(NAME, "  the same a build", 1000 * seconds / builds, "ms")
    yield row(NAME, f"CPU of one conversation of {TURNS:,} turns", _endless(), "s")


def _endless() -> float:
    """Scenarios said one after the other in one session."""
    made = []
    turns = 0
    for number in count():
        if turns >= TURNS:
            break
        made.append(make(Draw("verbatim", "docs", number)))
        turns += made[-1].turns
    messages = tuple(chain.from_iterable(one.messages for one in made))
    started = time.process_time()
    for _ in play_verbatim(Scenario(draw=Draw("verbatim", "docs", 0), messages=messages), Setup(), PlayCounts()):
        pass
    return time.process_time() - started
