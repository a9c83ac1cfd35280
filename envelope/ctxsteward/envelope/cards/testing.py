"""Doubles, shipped: an embedder that needs no model.

>>> HashEmbedder(4)(["red red", "green"])
[[0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0]]
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from zlib import crc32


class HashEmbedder:
    """Words into buckets by their checksum, as a unit vector: texts that share words are near each other."""

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
