"""A journal that tells a worker which sessions grow, after each append and without waiting for anything.

store.journal = hinted(store.journal, worker.hint)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ..stores.port import Journal, SessionKey


def hinted(journal: Journal, hint: Callable[[SessionKey], None]) -> Journal:
    """The journal, with a hint of the session's key after every append that it has taken."""
    return cast(Journal, _Hinted(journal, hint))


class _Hinted:
    def __init__(self, journal: Journal, hint: Callable[[SessionKey], None]) -> None:
        self._journal, self._hint = journal, hint

    def append(self, key: SessionKey, *args: Any, **more: Any) -> None:
        self._journal.append(key, *args, **more)
        self._hint(key)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)
