"""The cards' part in an erasure: whoever forgets a session or a principal tells this what is gone.

>>> from .memory import MemoryCards
>>> eraser(MemoryCards())([])
0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from .port import CardIndex


class Gone(Protocol):
    """What was forgotten of one session."""

    @property
    def tenant(self) -> str: ...

    @property
    def session(self) -> str: ...

    @property
    def ordinals(self) -> frozenset[int] | None:
        """None: all."""


def eraser(index: CardIndex) -> Callable[[Sequence[Gone]], int]:
    """A callable that deletes the cards of what is gone and says how many; the files are scrubbed once, at the end."""

    def erase(gone: Sequence[Gone]) -> int:
        last = len(gone) - 1
        return sum(index.erase(one.tenant, one.session, one.ordinals, scrub=at == last) for at, one in enumerate(gone))

    return erase
