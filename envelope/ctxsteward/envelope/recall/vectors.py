"""The vectors of one session's messages, each combined with its neighbours.

A row is the message's own unit vector plus half of the adjacent ones and a quarter of those two away, scaled to length
1; neighbours do not extend beyond a sitting (a day's talk). It costs one embedding a message and ranks far better than
the message alone: an answer often has no word of its question, but its neighbours do. A message without text has no row
of its own and is not found. Sums are taken without BLAS, with one thread, so that figures are equal everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxsteward.schemas import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .selection import Embedder

    Matrix = NDArray[np.float32]

NEIGHBOUR_WEIGHTS = (1.0, 0.5, 0.25)
"""Weights of a message's own vector, of adjacent ones, and of those two away."""
REACH = len(NEIGHBOUR_WEIGHTS) - 1


class SessionVectors:
    """Rows in the order of the messages; it grows at its end."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._rows: Matrix = np.zeros((64, dimensions), dtype=np.float32)
        self._size = 0
        self._has_text: list[bool] = []
        self._tail: list[tuple[Matrix, str | None]] = []
        """Own vectors and sittings of the newest messages: those whose rows a new one changes, and their neighbours."""

    def __len__(self) -> int:
        return self._size

    def add(self, own: Matrix, sittings: Sequence[str | None]) -> None:
        """Add the next messages: their unit vectors (zero for no text) and their sittings."""
        known = self._tail + list(zip(own, sittings, strict=True))
        first = self._size - len(self._tail)
        self._size += len(sittings)
        self._has_text += [bool(vector.any()) for vector in own]
        self._make_room()
        changed = max(0, len(self._tail) - REACH)
        for at in range(changed, len(known)):
            self._rows[first + at] = _together(known, at)
        self._tail = known[-2 * REACH :]

    def cosines(self, query: Matrix) -> list[tuple[int, float]]:
        """Return (message, cosine) of every message with text, best first; equals in order."""
        cosines = np.einsum("ij,j->i", self._rows[: self._size], query)
        order = np.argsort(-cosines, kind="stable")
        return [(int(at), float(cosines[at])) for at in order if self._has_text[at]]

    def _make_room(self) -> None:
        if self._size > len(self._rows):
            grown = np.zeros((max(self._size, 2 * len(self._rows)), self.dimensions), dtype=np.float32)
            grown[: len(self._rows)] = self._rows
            self._rows = grown


def unit_vectors(vectors: Any, count: int, dimensions: int) -> Matrix:
    """Return an embedder's vectors as rows of length 1 (zeros stay 0).

    Raises `InputError` unless there are `count` vectors of `dimensions` finite numbers.
    """
    try:
        array = np.asarray(vectors, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"the embedder's answer is no {count} × {dimensions} array of numbers: {error}") from error
    if array.shape != (count, dimensions):
        shape = " × ".join(map(str, array.shape)) or "a single number"
        raise InputError(f"the embedder answered {shape}, but {count} vectors of {dimensions} numbers were asked for")
    with np.errstate(all="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", array, array))
    if not np.isfinite(lengths).all():
        at = int(np.argmin(np.isfinite(lengths)))
        raise InputError(f"the embedder's vector {at} has the length {lengths[at]}; a finite one is needed")
    scaled: Matrix = (array / np.where(lengths > 0, lengths, 1.0)[:, None]).astype(np.float32)
    return scaled


def rows_of(texts: Sequence[str], embedder: Embedder) -> Matrix:
    """Return a unit vector for each text; zeros for empty texts, which are not embedded."""
    rows: Matrix = np.zeros((len(texts), embedder.dimensions), dtype=np.float32)
    said = [at for at, text in enumerate(texts) if text]
    if said:
        rows[said] = unit_vectors(embedder([texts[at] for at in said]), len(said), embedder.dimensions)
    return rows


def _together(known: Sequence[tuple[Matrix, str | None]], at: int) -> Matrix:
    """Return a message's vector plus its neighbours' of the same sitting, scaled to length 1."""
    own, sitting = known[at]
    total = own.copy()
    for away in range(1, REACH + 1):
        for other in (at - away, at + away):
            if 0 <= other < len(known) and known[other][1] == sitting:
                total += NEIGHBOUR_WEIGHTS[away] * known[other][0]
    length = float(np.sqrt(np.einsum("i,i->", total, total)))
    return total / np.float32(length) if length > 0 else total
