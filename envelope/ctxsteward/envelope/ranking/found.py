"""What a query found in an index, and what a turn's score is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass

from .weights import Weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a query found: scaled scores by turn (near, wide, asked) and by sitting, and what it says of turns."""

    weights: Weights
    near: dict[int, float]
    wide: dict[int, float]
    asked: dict[int, float]
    sittings: dict[int, float]
    dates: dict[int, float]
    speaker: str | None
    pinned: Set[int]
    recency: float
    """Added for each turn before."""


class Signals(Mapping[str, float]):
    """A turn's signals, drawn up when somebody looks: of a ranking's hundreds a few dozen are logged."""

    __slots__ = ("_draw_up", "_found", "_made", "_turn")

    def __init__(self, draw_up: Callable[[Found, int], dict[str, float]], found: Found, turn: int) -> None:
        self._draw_up, self._found, self._turn = draw_up, found, turn
        self._made: dict[str, float] | None = None

    def _signals(self) -> dict[str, float]:
        if self._made is None:
            self._made = self._draw_up(self._found, self._turn)
        return self._made

    def __getitem__(self, name: str) -> float:
        return self._signals()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._signals())

    def __len__(self) -> int:
        return len(self._signals())

    def __repr__(self) -> str:
        return repr(self._signals())
