"""What a user turn costs that recalls: append, select, build and render, at 500, 5,000 and 20,000 messages.

Something is recalled in every turn that counts. Each session is opened once and read once, by the turn before the first
that counts; turns of all sizes take turns, so that a drifting machine hits them alike. Milliseconds of CPU.

What one more message costs: append, build and render, at 50 and at 5,000 messages, against the floor.

The floor is what no design avoids: tokenize that message and serialize the window once. Nothing is recalled in these
steps; what a turn costs that recalls is in `warm_recall`.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Session, open_store
from ctxsteward.envelope.tokens.tokenizer import load_tokenizer
from ctxsteward.schemas import Wire

from . import BenchmarkRow, row
from .conversations import conversation

RECALL_SIZES = (500, 5_000, 20_000)
TURNS = 100
_BUILD_EVERY = 20
"""Messages between two builds while a session is made."""


@dataclass(slots=True)
class _RecallSession:
    """A session, who builds it, and what is said next."""

    session: Session
    builder: EnvelopeBuilder
    coming: Iterator[Wire]

    def turn_ms(self) -> float | None:
        """A user turn and its reply; None where it compacted or recalled nothing."""
        question, reply = next(self.coming), next(self.coming)
        started = time.process_time_ns()
        self.session.append(question)
        envelope = self.builder.build(self.session)
        envelope.render("openai-chat")
        spent = (time.process_time_ns() - started) / 1e6
        self.session.append(reply)
        return None if envelope.reports or envelope.dynamic.context is None else spent


def rows(name: str) -> Iterator[BenchmarkRow]:
    """Yield the figures under this benchmark's name."""
    talks = {size: _talk(size) for size in RECALL_SIZES}
    spent: dict[int, list[float]] = {size: [] for size in RECALL_SIZES}
    for _ in range(TURNS):
        for size, talk in talks.items():
            found = talk.turn_ms()
            if found is not None:
                spent[size].append(found)
    young = statistics.median(spent[RECALL_SIZES[0]])
    for size in RECALL_SIZES[1:]:
        ratio = statistics.median(spent[size]) / young
        yield row(name, f"a user turn that recalls at {size:,} / {RECALL_SIZES[0]} messages", ratio, "×", at_most=1.5)
    for size in RECALL_SIZES:
        yield row(name, f"a user turn that recalls at {size:,} messages, p50", statistics.median(spent[size]), "ms")


def _talk(size: int) -> _RecallSession:
    """A session of so many messages, compacted as it grew."""
    session = open_store("memory:").session("bench")
    builder, earlier = (EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=4_000)) for _ in range(2))
    earlier.selector = None  # what is asked before the turns that count costs nothing here
    messages = conversation(size + 2 * TURNS, seed=1)
    for number, message in enumerate(messages[:size]):
        session.append(message)
        if number % _BUILD_EVERY == 0:
            earlier.build(session)
    builder.build(session)
    return _RecallSession(session, builder, iter(messages[size:]))


NAME = "warm"
SIZES = (50, 5_000)
STEPS = 200
ROUNDS = 5


class WarmStep(NamedTuple):
    """Microseconds of CPU."""

    build: float
    floor: float
    compaction_p50: float
    compaction_p99: float


def run(data: object = None) -> Iterator[BenchmarkRow]:
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
    yield from rows(NAME)


def _measure(size: int, seed: int) -> WarmStep:
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
    return WarmStep(
        statistics.median(warm),
        statistics.median(floor),
        statistics.median(compacting) if compacting else 0.0,
        compacting[min(len(compacting) - 1, int(len(compacting) * 0.99))] if compacting else 0.0,
    )
