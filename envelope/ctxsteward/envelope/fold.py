"""Folding a log that may have holes: what can be read is applied in order, what cannot stands in or is passed over.

A spoiled message gets a stand-in, so that ordinals, roles and tool pairs go on; any other spoiled record is treated as
never made (a compaction: the window before it goes on growing and the next build compacts anew from originals). Whether
an unreadable record was a message is told by the ordinals after it, else by what it claims; where nothing tells, a
missing one counts as a message, because an ordinal is never given twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from ctxsteward.schemas import Message

from .damage import Hole, claimed, fill, refit
from .events import Appended
from .groups import Entry
from .log import Row, Spoiled
from .state import State
from .stores.port import Record


class Witness(Protocol):
    """Who hears of what cannot be read, and may know better."""

    def original(self, ordinal: int) -> Appended | None:
        """The message with this ordinal, should it stand elsewhere in the log."""

    def stood_in(self, ordinal: int) -> None:
        """A message has a stand-in."""

    def passed_over(self, row: Spoiled) -> None:
        """Another record was treated as never made."""


def fold(state: State, rows: Sequence[Row], witness: Witness) -> None:
    """Apply rows of the log to the state, which stands where they begin."""
    mending = _Mending(state, witness) if _holds_stand_in(state) else None
    for index, row in enumerate(rows):
        if isinstance(row, Appended):
            if mending is None and row.ordinal == state.ordinal + 1:
                state.add(Entry(row))
            else:
                mending = mending or _Mending(state, witness)
                mending.add(row, rows[index:])
        elif isinstance(row, Spoiled):
            mending = mending or _Mending(state, witness)
            mending.take_spoiled(row, rows[index + 1 :])
        else:
            state.apply(row)
    if mending is not None:
        mending.finish()


class _Mending:
    """Goes on with a log in which something was met that cannot be read, or that stands where it should not."""

    def __init__(self, state: State, witness: Witness) -> None:
        self._state, self._witness = state, witness
        self._owed = 0
        """Messages that were taken up before their record was met: a gap in the ordinals told of them."""
        self._ahead = 0
        """Records of messages that cannot be read and stand in front of messages they belong behind."""
        self._highest = 0
        """Ordinal that any record that cannot be read claims."""

    def add(self, event: Appended, rows: Sequence[Row]) -> None:
        """A message: it goes to its ordinal's place or, where that is taken already, nowhere."""
        state = self._state
        if event.ordinal <= state.ordinal:
            self._pass_over(Spoiled(position=state.position, kind="message"))
            return
        while event.ordinal > state.ordinal + 1:
            found = self._witness.original(state.ordinal + 1)
            if found is None:
                self._stand_in(None, rows)
            else:
                state.add(refit(state, Entry(found)))
            state.position -= 1  # it has an ordinal, and no record here
            if self._ahead:
                self._ahead -= 1
            else:
                self._owed += 1
        state.add(refit(state, Entry(event)))

    def take_spoiled(self, row: Spoiled, later: Sequence[Row]) -> None:
        """A record that cannot be read, before these rows."""
        self._highest = max(self._highest, _claimed_ordinal(row))
        if self._is_new_message(row, later):
            self._stand_in(row.record.wire if row.record else None, later)
        else:
            self._pass_over(row)

    def finish(self) -> None:
        """At the end of the rows: an ordinal that may have been given is not given again."""
        for _ in range(self._ahead):
            if self._highest > self._state.ordinal:
                self._stand_in(None, ())
                self._state.position -= 1

    def _pass_over(self, row: Spoiled) -> None:
        if self._owed and (row.record is None or _claims_message(row.record)):
            self._owed -= 1
        elif _claimed_ordinal(row):
            self._ahead += 1
        self._state.skip(row.kind)
        self._witness.passed_over(row)

    def _stand_in(self, wire: str | None, later: Sequence[Row]) -> None:
        state = self._state
        before = state.groups[-1].entries[-1].message.role if state.groups else None
        hole = Hole(ordinal=state.ordinal + 1, said=claimed(wire))
        state.add(fill(state, hole, before, list(_joined(later)), state.outputs))
        self._witness.stood_in(hole.ordinal)

    def _is_new_message(self, row: Spoiled, later: Sequence[Row]) -> bool:
        following = next((event.ordinal for event in later if isinstance(event, Appended)), None)
        if self._owed or (following is not None and following == self._state.ordinal + 1):
            return False
        return row.record is None or _claims_message(row.record)


def _claimed_ordinal(row: Spoiled) -> int:
    return row.record.ordinal if row.record is not None and isinstance(row.record.ordinal, int) else 0


def _claims_message(record: Record) -> bool:
    return record.kind == "message" or bool(record.ordinal) or record.wire is not None


def _joined(later: Sequence[Row]) -> Iterator[Message]:
    """Messages that belong to the tool group in front of them."""
    for event in later:
        if isinstance(event, Appended):
            if not event.placement.joins:
                return
            yield Entry(event).message


def _holds_stand_in(state: State) -> bool:
    return state.repaired and any(entry.event.damaged for group in state.groups for entry in group.entries)
