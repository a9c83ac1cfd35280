"""One session's records in the journal: written with their codes, checked when read, fetched again where damaged.

A record that is not what was written at its place, or that is missing, is first asked for elsewhere (`repair`: the
object store may hold it); what is not to be had is a `Spoiled` row. A record in order costs one code to check and, if
it is a message, one address. Raises `StoreError`; `UnsupportedVersion` for a record of a later version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ctxsteward.schemas import Damaged, StoreError

from .events import Appended, Compacted, Event, from_record, to_record
from .keys import AddressKey, address_of, subject_of
from .records import check, coded
from .stores.port import Journal, Record, SessionKey

Repair = Callable[[SessionKey, int], Record | None]
"""The record of a log at a position, from elsewhere; None where it is not to be had."""

_NEARBY = 64
"""A missing message is looked for at so many positions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoiled:
    """A place in the log whose record is missing, or is not what was written there."""

    position: int
    kind: str = ""
    """As it claims; empty where it is missing."""
    record: Record | None = None
    """Not to be trusted."""


Row = Event | Spoiled


class Log:
    """Reads and writes one log."""

    def __init__(
        self, journal: Journal, key: SessionKey, address_key: AddressKey, repair: Repair | None = None
    ) -> None:
        self.journal, self.key, self.repair = journal, key, repair
        self.address_key = address_key
        self.restored: list[int] = []
        """Positions of records that came from elsewhere."""

    def sibling(self, session: str) -> Log:
        """The log of another session of this tenant."""
        return Log(self.journal, SessionKey(self.key.tenant, session), self.address_key, self.repair)

    def append(self, position: int, events: Sequence[Event], generation: int) -> None:
        """Append events, each with its code; `Conflict` where the log is not at this position and generation."""
        key, session = self.address_key, self.key.session
        records = [coded(key, session, place, to_record(event)) for place, event in enumerate(events, position)]
        self.journal.append(self.key, position, records, generation=generation)

    # -- in order -----------------------------------------------------------------------------------------------

    def read(self, start: int, stop: int | None = None, *, whole: bool = True) -> list[Row]:
        """Rows from `start` on. Without `whole`, an empty answer is not doubted."""
        records = self.journal.read(self.key, start, stop)
        if not records and not whole:
            return []
        length = self.journal.length(self.key)
        end = length if stop is None else min(stop, length)
        if start + len(records) >= end:
            try:
                return [self.event(record, position) for position, record in enumerate(records, start)]
            except Damaged:
                pass
        return [self.at(position) for position in range(start, max(end, start + len(records)))]

    def at(self, position: int) -> Row:
        """The row at this position."""
        record = next(iter(self.journal.read(self.key, position, position + 1)), None)
        if record is not None:
            try:
                return self.event(record, position)
            except Damaged:
                pass
        return self._restored(position) or Spoiled(position=position, kind=record.kind if record else "", record=record)

    def compactions(self, before: int | None = None) -> Iterator[tuple[int, Compacted]]:
        """The compactions that can be read and their positions, newest first."""
        position = self.journal.checkpoint(self.key, before=before)
        while position:
            event = self.at(position)
            if isinstance(event, Compacted):
                yield position, event
            position = self.journal.checkpoint(self.key, before=position)

    # -- by ordinal ---------------------------------------------------------------------------------------------

    def message(self, ordinal: int) -> Appended | Spoiled | None:
        """The message with this ordinal; None where the log seems to have none."""
        record = self.journal.message(self.key, ordinal)
        if record is not None:
            try:
                event = self.event(record)
                if isinstance(event, Appended) and event.ordinal == ordinal:
                    return event
            except Damaged:
                pass
        for position in self._places(ordinal):
            found = self._restored(position)
            if isinstance(found, Appended) and found.ordinal == ordinal:
                return found
        return None if record is None else Spoiled(position=-1, kind="message", record=record)

    def _places(self, ordinal: int) -> Sequence[int]:
        """Where a message that cannot be read stands, or may have stood."""
        if self.repair is None:
            return ()
        position = self.journal.position(self.key, ordinal)
        if position is not None:
            return (position,)
        near = range(1, _NEARBY)
        before = (self.journal.position(self.key, ordinal - n) for n in near if ordinal > n)
        after = (self.journal.position(self.key, ordinal + n) for n in near)
        low = next((place for place in before if place is not None), -1)
        high = next((place for place in after if place is not None), self.journal.length(self.key))
        return range(low + 1, min(high, low + 1 + _NEARBY))

    def _restored(self, position: int) -> Event | None:
        if self.repair is None:
            return None
        try:
            record = self.repair(self.key, position)
            event = None if record is None else self.event(record, position)
        except StoreError:  # what is elsewhere cannot be had, or is no better
            return None
        if event is not None and position not in self.restored:
            self.restored.append(position)
        return event

    # -- checking -----------------------------------------------------------------------------------------------

    def event(self, record: Record, position: int = -1) -> Event:
        """What a record holds; `Damaged` where it is not what was written at this position.

        A message's place is its ordinal, so its position need not be known.
        """
        session = self.key.session
        check(self.address_key, session, position, record)
        try:
            event = from_record(record)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            what = f"session {session!r}: the {record.kind} record cannot be read ({type(error).__name__}: {error})"
            raise Damaged(f"{what}; it was written by another program or with other fields") from error
        if isinstance(event, Appended) and not self._is_original(event):
            raise Damaged(
                f"session {session!r}: the record of §{event.ordinal} is not what its address says; "
                "`ctxsteward store fsck --repair` restores what can be, else restore the journal from a backup"
            )
        return event

    def _is_original(self, event: Appended) -> bool:
        """Whether a message's bytes are those of its address."""
        try:
            return self.address(event.principal, event.wire) == event.address
        except (UnicodeEncodeError, AttributeError):  # no text, or none that can be encoded
            return False

    def address(self, principal: str | None, wire: str) -> str:
        """The address of a message of this session."""
        return address_of(self.address_key, subject_of(self.key.session, principal), "message", wire.encode())
