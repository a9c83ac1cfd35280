"""What a user turn costs that recalls: append, select, build and render, at 500, 5,000 and 20,000 messages.

Something is recalled in every turn that counts. Each session is opened once and read once, by the turn before the first
that counts; turns of all sizes take turns, so that a drifting machine hits them alike. Milliseconds of CPU.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Session, open_store
from ctxsteward.schemas import Wire

from . import Row, row
from .conversation import conversation

SIZES = (500, 5_000, 20_000)
TURNS = 100
_BUILD_EVERY = 20
"""Messages between two builds while a session is made."""


@dataclass(slots=True)
class _Talk:
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


def rows(name: str) -> Iterator[Row]:
    """Yield the figures under this benchmark's name."""
    talks = {size: _talk(size) for size in SIZES}
    spent: dict[int, list[float]] = {size: [] for size in SIZES}
    for _ in range(TURNS):
        for size, talk in talks.items():
            found = talk.turn_ms()
            if found is not None:
                spent[size].append(found)
    young = statistics.median(spent[SIZES[0]])
    for size in SIZES[1:]:
        ratio = statistics.median(spent[size]) / young
        yield row(name, f"a user turn that recalls at {size:,} / {SIZES[0]} messages", ratio, "×", at_most=1.5)
    for size in SIZES:
        yield row(name, f"a user turn that recalls at {size:,} messages, p50", statistics.median(spent[size]), "ms")


def _talk(size: int) -> _Talk:
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
    return _Talk(session, builder, iter(messages[size:]))
