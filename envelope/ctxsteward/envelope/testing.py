"""Doubles, shipped: for our tests and for those of our users. Small, honest, deterministic.

>>> CharTokenizer().count("four")
4
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxsteward.schemas import Bullet, Source, Summary

from .keyring import memory_keys
from .objects.faulty import Crashed, Fault, FaultyObjects, SeededFaults
from .objects.memory import MemoryObjects
from .selection import Scored, SelectionRequest
from .store import Store
from .stores.memory import MemoryJournal

__all__ = [
    "CharTokenizer",
    "Crashed",
    "Fault",
    "FaultyObjects",
    "FirstLine",
    "SeededFaults",
    "SimulatedClock",
    "WordOverlap",
    "memory_store",
]


class SimulatedClock:
    """Seconds that pass only when somebody sleeps."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class CharTokenizer:
    """Counts characters, so that a reader can do the arithmetic."""

    name = "chars"

    def count(self, text: str) -> int:
        return len(text)


def memory_store(nonce: str = "000000000", key: bytes = b"k" * 32) -> Store:
    """A `memory:` store whose nonce and keys are the same in every run."""
    keys = memory_keys(lambda size: key[:size])
    return Store(MemoryJournal(), MemoryObjects(), keys, uri="memory:", draw_nonce=lambda: nonce)


class FirstLine:
    """A summarizer: the first line of every message, newest first until the budget is spent."""

    def __call__(self, source: Source, *, budget_tokens: int) -> Summary:
        bullets: list[Bullet] = []
        left = budget_tokens
        for item in reversed(source.messages):
            texts = [item.message.text, *(result.text for result in item.message.tool_results)]
            line = next((row.strip() for text in texts for row in text.splitlines() if row.strip()), "")[:120]
            cost = source.count_tokens(f"- {line} {item.ref}\n")
            if not line or cost > left:
                continue
            left -= cost
            bullets.append(Bullet(text=line, citations=(item.ref,)))
        return Summary(bullets=tuple(reversed(bullets)))


class WordOverlap:
    """A selector: originals that share words with the query, most first."""

    def __call__(self, request: SelectionRequest) -> Sequence[Scored]:
        wanted = set(request.query.text.lower().split())
        scored = [
            (len(wanted & set(request.message(ordinal).text.lower().split())), ordinal)
            for ordinal in range(1, request.last + 1)
        ]
        return [Scored(ordinal, score) for score, ordinal in sorted(scored, reverse=True) if score]
