"""A session's log and those it was forked from: which of them holds a message, and up to where each is shared.

A fork shares its parent's log up to a position and an ordinal, and counts on from there. Parents are read when they are
asked for: their first record says where they begin in turn. Raises `Damaged` where that cannot be told any more.
"""

from __future__ import annotations

from collections.abc import Iterator

from ctxsteward.schemas import Damaged

from .events import Appended, Opened, Origin
from .log import Log
from .stores.port import SessionKey


class Ancestry:
    """One log, and the one above it; a fork's parent is above."""

    def __init__(self, log: Log, origin: Origin | None = None) -> None:
        self.log, self.origin = log, origin
        self._above: Ancestry | None = None
        self._generations: tuple[tuple[SessionKey, int], ...] = ()
        """Of the logs above, as they were before they were read."""

    @classmethod
    def found(cls, log: Log) -> Ancestry:
        """As the log's first record says, with the generations of the logs above before they are read."""
        ancestry = cls(log, origin_of(log))
        keys = [one.log.key for one in ancestry.line()][1:]
        ancestry._generations = tuple((key, log.journal.generation(key)) for key in keys)
        return ancestry

    def under(self, log: Log) -> Ancestry:
        """The same logs above another log of this session."""
        other = Ancestry(log, self.origin)
        other._above, other._generations = self._above, self._generations
        return other

    @property
    def above(self) -> Ancestry | None:
        """Whose log this one shares; None for an original."""
        if self._above is None and self.origin is not None:
            log = self.log.sibling(self.origin.session)
            self._above = Ancestry(log, origin_of(log))
        return self._above

    # -- going up -----------------------------------------------------------------------------------------------

    def line(self) -> Iterator[Ancestry]:
        """This one, the one above, and so on."""
        one: Ancestry | None = self
        while one is not None:
            yield one
            one = one.above

    def stretches(self) -> Iterator[tuple[Log, int | None]]:
        """Each log with the position where its part ends; None: with its end."""
        stop = None
        for one in self.line():
            yield one.log, stop
            stop = one.origin.position if one.origin is not None else None

    def shares(self, last: int) -> Iterator[tuple[Log, int | None]]:
        """Each log with the highest ordinal of it that is shared, none over `last`; None: all of its own log."""
        limit = None
        for one in self.line():
            yield one.log, limit
            if one.origin is not None:
                limit = min(last if limit is None else limit, one.origin.ordinal)

    def owner(self, ordinal: int) -> Log:
        """Whose part of the log a message lies in."""
        for one in self.line():
            if one.origin is None or ordinal > one.origin.ordinal:
                return one.log
        return self.log

    # -- what was replaced --------------------------------------------------------------------------------------

    @property
    def generation(self) -> int:
        """Of all logs above together, when they were read."""
        return sum(generation for _, generation in self._generations)

    def is_replaced(self) -> bool:
        """Whether what was read of a log above has been replaced since."""
        journal = self.log.journal
        return any(journal.generation(key) != generation for key, generation in self._generations)


def origin_of(log: Log) -> Origin | None:
    """Where this log was forked from; `Damaged` where that cannot be told any more."""
    opened = log.at(0)
    if isinstance(opened, Opened):
        return opened.parent
    if isinstance(log.message(1), Appended):  # only the first message of all has this ordinal
        return None
    raise Damaged(
        f"session {log.key.session!r}: its first record is damaged, and so is where it begins; "
        "`ctxsteward store fsck --repair` restores what can be, else restore the journal from a backup"
    )
