"""What a selector keeps of sessions between turns: of a bounded number, and only while it is what the log says.

It is a cache: losing it costs time only.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

from .. import forking
from ..groups import Entry
from ..selection import SelectionRequest

T = TypeVar("T")


class Kept(Generic[T]):
    """One session's; hold `lock` while using it."""

    __slots__ = ("generation", "lock", "made", "newest")

    def __init__(self) -> None:
        self.lock = forking.lock()
        self.generation = 0
        self.made: T | None = None
        """Made from the originals up to `newest`."""
        self.newest: Entry | None = None

    def holds(self, request: SelectionRequest) -> bool:
        """Whether what it was made from is still what this session begins with."""
        newest = self.newest
        return newest is None or (
            self.generation == request.generation
            and newest.ordinal <= request.last
            and request.entry(newest.ordinal).event.address == newest.event.address  # a draft's turn is not the log's
        )


class PerSession(Generic[T]):
    """Safe with threads; the session used longest ago leaves."""

    def __init__(self, max_sessions: int) -> None:
        self._max_sessions = max(1, max_sessions)
        self._lock = forking.lock()
        self._kept: OrderedDict[tuple[str, str], Kept[T]] = OrderedDict()

    def of(self, request: SelectionRequest) -> Kept[T]:
        """What is kept of the request's session; empty at first."""
        key = (request.tenant, request.session)
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                kept = self._kept[key] = Kept()
            self._kept.move_to_end(key)
            while len(self._kept) > self._max_sessions:
                self._kept.popitem(last=False)
            return kept
