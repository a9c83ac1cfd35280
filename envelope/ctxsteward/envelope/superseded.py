"""Which messages of a session say something that a later one replaces: such a one is not recalled alone.

Every message is read once, when the first turn after it recalls; what was read is a cache, as a selector's index is.
The reader (`Replacing`) is installed under the entry-point group ``ctxsteward.replacing``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ctxsteward.schemas import Ref, Replacing, SourceMessage

from .ranking.kept import PerSession
from .selection import SelectionRequest


class _Read:
    """One session's."""

    def __init__(self, replacing: Replacing) -> None:
        self.replacing = replacing
        self.upto = 0
        self.by: dict[int, int] = {}


class Superseded:
    """Answers for many sessions; safe with threads."""

    def __init__(self, replacing: Callable[[], Replacing], max_sessions: int = 64) -> None:
        self._replacing = replacing
        self._sessions: PerSession[_Read] = PerSession(max_sessions)

    def __call__(self, request: SelectionRequest) -> Mapping[int, int]:
        """Ordinals up to the request's last that are replaced, in part or whole, each with the newest that does."""
        kept = self._sessions.of(request)
        with kept.lock:
            if kept.made is None or not kept.holds(request):
                kept.made, kept.newest, kept.generation = _Read(self._replacing()), None, request.generation
            read = kept.made
            for ordinal in range(read.upto + 1, request.last + 1):
                entry = request.entry(ordinal)
                for ref in read.replacing(SourceMessage(ref=entry.ref, message=entry.message)):
                    read.by[Ref.parse(ref).ordinal] = ordinal
                read.upto, kept.newest = ordinal, entry
            return {old: _newest(read.by, newer) for old, newer in read.by.items()}


def _newest(by: Mapping[int, int], ordinal: int) -> int:
    while (later := by.get(ordinal, 0)) > ordinal:
        ordinal = later
    return ordinal
