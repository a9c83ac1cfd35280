"""Fold a log that may have holes into a `State` (`fold`) and report the holes (`ReadFindings`).

`log_view` calls `fold` with the rows it has read. Readable records are applied in order. An unreadable message gets a
stand-in, so that ordinals, roles and tool pairs continue. Any other unreadable record is treated as never made (for a
compaction: the window before it keeps growing, and the next build compacts anew from originals). The ordinals after an
unreadable record show whether it was a message, else its own fields do. If neither shows it, a missing record counts as
a message, because an ordinal is never given twice.

`ReadFindings` has each finding once, and the ordinals of missing originals. Reading the whole log finds all damage
again, so `forget_damage` is called before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from ctxsteward.schemas import Finding, Message
from ctxsteward.schemas.findings import LOG_DAMAGE
from ctxsteward.store.journal.events import MessageAppended
from ctxsteward.store.journal.log import DamagedRecord, Row
from ctxsteward.store.journal.port import JournalRecord

from ..instruments import Reason, cache_miss
from .state import State
from .tool_groups import LogEntry, MissingMessage, claimed, fill, refit


class ReadFindings:
    """Findings about one session, in the order in which they were made."""

    def __init__(self, findings: Iterable[Finding] = (), missing: set[int] | None = None) -> None:
        self.findings: list[Finding] = list(findings)
        self.missing: set[int] = set() if missing is None else missing
        """Ordinals of originals that were requested and could not be read."""

    def copy(self) -> ReadFindings:
        """Return a copy with its own list of findings; both share the set of missing ordinals."""
        return ReadFindings(self.findings, self.missing)

    def add(self, findings: Iterable[Finding]) -> None:
        self.findings += [finding for finding in findings if finding not in self.findings]

    def forget_damage(self) -> None:
        """Drop findings about damage before the log is read anew."""
        self.findings = [finding for finding in self.findings if finding.kind not in LOG_DAMAGE]
        self.missing.clear()

    def damage(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.kind in LOG_DAMAGE]

    # -- unreadable records -------------------------------------------------------------------------------------

    def stood_in(self, ordinal: int) -> None:
        """Count an unreadable original once."""
        if ordinal not in self.missing:
            self.missing.add(ordinal)
            cache_miss("original")

    def restored(self, positions: Sequence[int]) -> None:
        """Report records that the object store supplied."""
        places = ", ".join(map(str, sorted(positions)))
        self._miss("restored", "record_restored", f"records at {places} cannot be read here; the object store had them")

    def head_damaged(self, position: int) -> None:
        text = f"the head record at position {position} cannot be read; what was in force before it stays"
        self._miss("record", "record_damaged", text, "head")

    def passed_over(self, row: DamagedRecord) -> None:
        """Report an unreadable record and what is done about it."""
        what = f"the {row.kind or 'missing'} record at position {row.position} cannot be read"
        if row.kind == "compaction":
            self._miss("compaction", "compaction_regenerated", f"{what}; the next build compacts from the originals")
        elif row.kind == "message" and row.record is None:
            self._miss("record", "record_skipped", f"the message at position {row.position} stands out of order")
        elif row.kind in ("selection", "refused"):
            self._miss("record", "record_skipped", f"{what}; it is decided again")
        elif row.kind == "opened":
            self._miss("record", "record_damaged", f"{what}; fences go by another nonce", row.kind)
        else:
            self._miss("record", "record_damaged", f"{what}; what was in force before it stays", row.kind or None)

    def _miss(self, reason: Reason, kind: str, text: str, field: str | None = None) -> None:
        finding = Finding(kind=kind, field=field, text=text)
        if finding not in self.findings:
            self.findings.append(finding)
            cache_miss(reason)


class DamageWitness(Protocol):
    """Port through which a fold reports unreadable records and requests originals from elsewhere in the log."""

    def original(self, ordinal: int) -> MessageAppended | None:
        """Return the message with this ordinal if it is elsewhere in the log, else None."""

    def found(self, ordinal: int, ref: str) -> LogEntry | MissingMessage:
        """Return a message that a compaction shows again."""

    def stood_in(self, ordinal: int) -> None:
        """Note that a stand-in replaces the message with this ordinal."""

    def passed_over(self, row: DamagedRecord) -> None:
        """Note that a record other than a message is treated as never made."""


def fold(state: State, rows: Sequence[Row], witness: DamageWitness, last: int | None = None) -> None:
    """Apply rows of the log to a state; the rows begin at its position. `last` is the last row's ordinal, if known."""
    holds_stand_in = state.repaired and any(entry.event.damaged for group in state.groups for entry in group.entries)
    mending = _LogMender(state, witness, last) if holds_stand_in else None
    for index, row in enumerate(rows):
        if isinstance(row, MessageAppended):
            if mending is None and row.ordinal == state.ordinal + 1:
                state.add(LogEntry(row))
            else:
                mending = mending or _LogMender(state, witness, last)
                mending.add(row, rows[index:])
        elif isinstance(row, DamagedRecord):
            mending = mending or _LogMender(state, witness, last)
            mending.take_spoiled(row, rows[index + 1 :])
        else:
            state.apply(row, lambda ordinal: witness.found(ordinal, f"§{ordinal}"))
    if last is not None and state.ordinal < last:  # the last row was a message, and its record no longer shows that
        mending = mending or _LogMender(state, witness, last)
    if mending is not None:
        mending.finish()


class _LogMender:
    """The rest of a fold, from the first record on that is unreadable or out of place."""

    def __init__(self, state: State, witness: DamageWitness, last: int | None) -> None:
        self._state, self._witness, self._last = state, witness, last
        self._owed = 0
        """Messages added ahead of their records, because a gap in the ordinals revealed them."""
        self._ahead = 0
        """Unreadable records of messages that lie before messages with lower ordinals."""
        self._highest = 0
        """Highest ordinal that an unreadable record claims."""

    def add(self, event: MessageAppended, rows: Sequence[Row]) -> None:
        """Add a message at its ordinal, or pass over it if that ordinal is taken."""
        state = self._state
        if event.ordinal <= state.ordinal:
            self._pass_over(DamagedRecord(position=state.position, kind="message"))
            return
        while event.ordinal > state.ordinal + 1:
            original = self._witness.original(state.ordinal + 1)
            if original is None:
                self._stand_in(None, rows)
            else:
                state.add(refit(state.open_calls, state.call_ids, LogEntry(original)))
            state.position -= 1  # the message takes an ordinal but no record at this position
            if self._ahead:
                self._ahead -= 1
            else:
                self._owed += 1
        state.add(refit(state.open_calls, state.call_ids, LogEntry(event)))

    def take_spoiled(self, row: DamagedRecord, later: Sequence[Row]) -> None:
        """Handle an unreadable record; `later` are the rows behind it."""
        self._highest = max(self._highest, _claimed_ordinal(row))
        if self._is_new_message(row, later):
            self._stand_in(row.record.wire if row.record else None, later)
        else:
            self._pass_over(row)

    def finish(self) -> None:
        """Use up ordinals that unreadable records may have had, so that none is given twice."""
        for _ in range(self._ahead):
            if self._highest > self._state.ordinal:
                self._stand_in(None, ())
                self._state.position -= 1
        while self._last is not None and self._state.ordinal < self._last:
            self._stand_in(None, ())
            self._state.position -= 1

    def _pass_over(self, row: DamagedRecord) -> None:
        if self._owed and (row.record is None or _claims_message(row.record)):
            self._owed -= 1
        elif _claimed_ordinal(row):
            self._ahead += 1
        self._state.skip(row.kind)
        self._witness.passed_over(row)

    def _stand_in(self, wire: str | None, later: Sequence[Row]) -> None:
        state = self._state
        before = state.groups[-1].entries[-1].message.role if state.groups else None
        hole = MissingMessage(ordinal=state.ordinal + 1, said=claimed(wire))
        state.add(fill(state.open_calls, state.call_ids, hole, before, list(_joined(later)), state.outputs))
        self._witness.stood_in(hole.ordinal)

    def _is_new_message(self, row: DamagedRecord, later: Sequence[Row]) -> bool:
        following = next((event.ordinal for event in later if isinstance(event, MessageAppended)), None)
        if self._owed or (following is not None and following == self._state.ordinal + 1):
            return False
        if self._last is not None and self._state.ordinal >= self._last:
            return False
        return row.record is None or _claims_message(row.record)


def _claimed_ordinal(row: DamagedRecord) -> int:
    return row.record.ordinal if row.record is not None and isinstance(row.record.ordinal, int) else 0


def _claims_message(record: JournalRecord) -> bool:
    return record.kind == "message" or bool(record.ordinal) or record.wire is not None


def _joined(later: Sequence[Row]) -> Iterator[Message]:
    """Yield the next messages that belong to the tool group in front of them."""
    for event in later:
        if isinstance(event, MessageAppended):
            if not event.placement.joins:
                return
            yield LogEntry(event).message
