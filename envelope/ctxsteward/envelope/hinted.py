"""A journal that says which logs grow, after each append and without waiting for anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from .stores.port import Journal, Record, SessionKey


def hinted(journal: Journal, hint: Callable[[SessionKey], None]) -> Journal:
    """The journal, with a hint of the log's key after every append that it has taken."""
    return cast(Journal, _Hinted(journal, hint))


class _Hinted:
    def __init__(self, journal: Journal, hint: Callable[[SessionKey], None]) -> None:
        self._journal, self._hint = journal, hint

    def append(self, key: SessionKey, position: int, records: Sequence[Record], *, generation: int = 0) -> None:
        self._journal.append(key, position, records, generation=generation)
        self._hint(key)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)
