"""Deterministic test doubles, for this project's tests and for those of its users.

>>> CharTokenizer().count("four")
4
>>> HashEmbedder(4)(["red red", "green"])
[[0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0]]
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from zlib import crc32

from ctxsteward.schemas import Bullet, SummarizerInput, Summary
from ctxsteward.store.crypto.keyring import memory_keys
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.objects.memory import MemoryObjects

from .recall.selection import ScoredOriginal, SelectionRequest
from .store import Store

__all__ = ["CharTokenizer", "FirstLine", "WordOverlap", "memory_store"]


class CharTokenizer:
    """A tokenizer that counts characters, so that a reader can do the arithmetic."""

    name = "chars"

    def count(self, text: str) -> int:
        return len(text)


def memory_store(nonce: str = "000000000", key: bytes = b"k" * 32) -> Store:
    """Return a `memory:` store with the same nonce and keys in every run."""
    keys = memory_keys(lambda size: key[:size])
    return Store(MemoryJournal(), MemoryObjects(), keys, uri="memory:", draw_nonce=lambda: nonce)


class FirstLine:
    """A summarizer that takes the first line of each message, newest first, until the budget is spent."""

    def __call__(self, source: SummarizerInput, *, budget_tokens: int) -> Summary:
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
    """A selector that ranks originals by the number of words they share with the query."""

    def __call__(self, request: SelectionRequest) -> Sequence[ScoredOriginal]:
        wanted = set(request.query.text.lower().split())
        scored = [
            (len(wanted & set(request.message(ordinal).text.lower().split())), ordinal)
            for ordinal in range(1, request.last + 1)
        ]
        return [ScoredOriginal(ordinal, score) for score, ordinal in sorted(scored, reverse=True) if score]


class HashEmbedder:
    """An embedder that counts words in buckets by checksum, as a unit vector: texts that share words are close."""

    def __init__(self, dimensions: int = 16, name: str = "hash") -> None:
        self.dimensions = dimensions
        self.name = name

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        counts = [0.0] * self.dimensions
        for word in text.lower().split():
            counts[crc32(word.encode()) % self.dimensions] += 1.0
        length = sqrt(sum(count * count for count in counts))
        return [count / length for count in counts] if length else counts
