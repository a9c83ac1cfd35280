"""What one more message costs: append, build and render, at 50 and at 5,000 messages, against the floor.

The floor is what no design avoids: tokenize that message and serialize the window once. Nothing is recalled in these
steps; what a turn costs that recalls is in `warm_recall`.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from typing import NamedTuple

from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store
from ctxsteward.envelope.tokens import load_tokenizer

from . import Row, row, warm_recall
from .conversation import conversation

NAME = "warm"
SIZES = (50, 5_000)
STEPS = 200
ROUNDS = 5


class Step(NamedTuple):
    """Microseconds of CPU."""

    build: float
    floor: float
    compaction_p50: float
    compaction_p99: float


def run(data: object = None) -> Iterator[Row]:
    """Yield the figures; medians over interleaved rounds, so that a drifting machine hits both sizes alike."""
    rounds = [{size: _measure(size, number) for size in SIZES} for number in range(ROUNDS)]
    young, old = SIZES
    ratio = statistics.median(r[old].build / r[young].build for r in rounds)
    floors = {size: statistics.median(r[size].build / r[size].floor for r in rounds) for size in SIZES}
    yield row(NAME, f"append + build + render at {old:,} / {young} messages", ratio, "×", at_most=1.2)
    for size in SIZES:
        yield row(NAME, f"p50 at {size:,} messages / floor", floors[size], "×", at_most=3)
        yield row(NAME, f"p50 at {size:,} messages", statistics.median(r[size].build for r in rounds) / 1e3, "ms")
    yield row(
        NAME,
        "floor (tokenize the message, json.dumps the window)",
        statistics.median(r[old].floor for r in rounds) / 1e3,
        "ms",
    )
    yield row(
        NAME,
        "a call that compacts, p50",
        statistics.median(r[old].compaction_p50 for r in rounds) / 1e3,
        "ms",
    )
    yield row(
        NAME,
        "a call that compacts, p99",
        statistics.median(r[old].compaction_p99 for r in rounds) / 1e3,
        "ms",
    )
    yield from warm_recall.rows(NAME)


def _measure(size: int, seed: int) -> Step:
    session = open_store("memory:").session("bench")
    budgets = Budgets(dynamic_tokens=4000, recall_fraction=0)
    builder, earlier = (EnvelopeBuilder(model="gpt-4o", budgets=budgets) for _ in range(2))
    messages = conversation(size + STEPS, seed=seed)
    for message in messages[:size]:
        session.append(message)
        if message["role"] == "user":
            earlier.build(session)
    builder.build(session).render("openai-chat")
    warm: list[float] = []
    compacting: list[float] = []
    floor: list[float] = []
    count = load_tokenizer("o200k_base").count
    for message in messages[size:]:
        start = time.process_time_ns()
        session.append(message)
        envelope = builder.build(session)
        request = envelope.render("openai-chat")
        stop = time.process_time_ns()
        (compacting if envelope.reports else warm).append((stop - start) / 1e3)
        start = time.process_time_ns()
        count(message["content"])
        json.dumps(request)
        floor.append((time.process_time_ns() - start) / 1e3)
    compacting.sort()
    return Step(
        statistics.median(warm),
        statistics.median(floor),
        statistics.median(compacting) if compacting else 0.0,
        compacting[min(len(compacting) - 1, int(len(compacting) * 0.99))] if compacting else 0.0,
    )
