"""One session's records in the journal: written with their codes, checked when read, fetched again where damaged.

A record's code is HMAC-SHA-256 under the tenant's address key of session, kind, place, tool outputs, id and body, each
length-prefixed: a record that was changed, swapped, moved or replayed is found out at reading. The place is a message's
ordinal, any other record's position. A message's wire bytes are covered through the address in its body, which is
checked apart (so that an address alone proves an original). A manifest carries its code as its last field, ``"mac"``.

A record that is missing, or not what was written at its place, is first fetched through `repair` (the object store may
hold it); where that fails too, the row is a `DamagedRecord`. A sound record costs one code to check and, if it is a
message, one address.

Raises `StoreError`; `UnsupportedVersion` for a record of a later version. Source: RFC 2104.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ctxsteward.schemas import StoreError
from ctxsteward.schemas.errors import Damaged
from ctxsteward.schemas.message import Wire

from ..crypto.keyring import AddressKey, address_of, code, subject_of
from .events import Event, MessageAppended, WindowCompacted, from_record, to_record
from .port import Journal, JournalRecord, SessionKey

MANIFEST_KIND = "manifest"
_NO_ID = b"\x00\x00\x00\x00"
_ZERO = b"\x00\x00\x00\x010"


def code_of(key: AddressKey, session: str, position: int, record: JournalRecord) -> str:
    """The code of a record that stands, or is to stand, at `position`."""
    numbers = _numbered(record.ordinal or -1 - position) + (_numbered(record.outputs) if record.outputs else _ZERO)
    id = _NO_ID if record.id is None else prefixed(record.id)
    text = owned(session, record.kind) + numbers + id + prefixed(record.body)
    return code(key, text + b"\x00" if record.id is None else text)


def body_of(record: JournalRecord) -> dict[str, Any] | None:
    """What a record's body says, damaged or not; None where it cannot be read."""
    try:
        body = json.loads(record.body)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def principals_of(rows: Sequence[JournalRecord]) -> set[str]:
    """Who wrote in this log."""
    bodies = (body_of(record) or {} for record in rows if record.kind == "message" and '"principal"' in record.body)
    return {name for name in (body.get("principal") for body in bodies) if isinstance(name, str)}


@lru_cache(maxsize=4096)
def owned(session: str, kind: str) -> bytes:
    """How what is coded begins: whose it is, and of what kind."""
    return prefixed(session) + prefixed(kind)


def prefixed(text: str) -> bytes:
    """The text behind its length, so that no two rows of texts are alike."""
    data = text.encode()
    return len(data).to_bytes(4, "big") + data


def _numbered(number: int) -> bytes:
    data = b"%d" % number
    return len(data).to_bytes(4, "big") + data


def coded(key: AddressKey, session: str, position: int, record: JournalRecord) -> JournalRecord:
    """The record with its code."""
    return JournalRecord(
        record.kind,
        record.body,
        record.ordinal,
        record.outputs,
        record.id,
        record.wire,
        code_of(key, session, position, record),
    )


def check(key: AddressKey, session: str, position: int, record: JournalRecord) -> None:
    """Raise `Damaged` where a record is not what was written at this place."""
    try:
        right = hmac.compare_digest(record.mac, code_of(key, session, position, record))
    except (TypeError, AttributeError, ValueError):  # no text, or none that can be encoded
        right = False
    if not right:
        what = f"§{record.ordinal}" if record.ordinal else f"position {position}"
        raise Damaged(
            f"session {session!r}: the {record.kind} record of {what} is not what was written; "
            "`ctxsteward store fsck --repair` restores what can be, else restore the journal from a backup"
        )


def coded_manifest(key: AddressKey, address: str, fields: str) -> str:
    """The text of a manifest: a JSON object's members, and behind them their code.

    >>> coded_manifest(AddressKey(b"k" * 32), "ab12", '"position":3')[:20]
    '{"position":3,"mac":'
    """
    return f'{{{fields},"mac":"{address_of(key, address, MANIFEST_KIND, fields.encode())}"}}'


def read_manifest(key: AddressKey, address: str, body: str) -> Wire:
    """The members of the manifest at this address; raises `Damaged` where it is not what was written there."""
    fields, separator, end = body[1:].rpartition(',"mac":"')
    try:
        expected = address_of(key, address, MANIFEST_KIND, fields.encode()) + '"}'
        if separator and body[:1] == "{" and hmac.compare_digest(end, expected):
            manifest: Wire = json.loads(body)
            return manifest
    except (ValueError, TypeError):  # a lone surrogate, no JSON
        pass
    raise Damaged(
        f"the manifest of envelope {address[:16]}… is not what was written: it cannot be rebuilt from it; "
        "build the session anew, or restore the journal from a backup"
    )


Repair = Callable[[SessionKey, int], JournalRecord | None]
"""The record of a log at a position, from elsewhere; None where it is not to be had."""

Listener = Callable[[SessionKey], object]
"""Told which log has grown, by a session of this process; it does not wait, and raises nothing."""

_NEARBY = 64
"""A missing message is looked for at so many positions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedRecord:
    """A place in the log whose record is missing, or is not what was written there."""

    position: int
    kind: str = ""
    """As it claims; empty where it is missing."""
    record: JournalRecord | None = None
    """Not to be trusted."""


Row = Event | DamagedRecord


class Log:
    """Reads and writes one log."""

    def __init__(
        self,
        journal: Journal,
        key: SessionKey,
        address_key: AddressKey,
        repair: Repair | None = None,
        listeners: Sequence[Listener] = (),
    ) -> None:
        self.journal: Journal = journal
        self.key: SessionKey = key
        self.repair: Repair | None = repair
        self.address_key = address_key
        self.listeners = listeners
        """Told of every append."""
        self.restored: list[int] = []
        """Positions of records that came from elsewhere."""

    def sibling(self, session: str) -> Log:
        """The log of another session of this tenant."""
        key = SessionKey(self.key.tenant, session)
        return Log(self.journal, key, self.address_key, self.repair, self.listeners)

    def append(self, position: int, events: Sequence[Event], generation: int) -> None:
        """Append events, each with its code; `Conflict` where the log is not at this position and generation."""
        key, session = self.address_key, self.key.session
        records = [coded(key, session, place, to_record(event)) for place, event in enumerate(events, position)]
        self.journal.append(self.key, position, records, generation=generation)
        for listener in self.listeners:
            listener(self.key)

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
        return self._restored(position) or DamagedRecord(
            position=position, kind=record.kind if record else "", record=record
        )

    def compactions(self, before: int | None = None) -> Iterator[tuple[int, WindowCompacted]]:
        """The compactions that can be read and their positions, newest first."""
        position = self.journal.checkpoint(self.key, before=before)
        while position:
            event = self.at(position)
            if isinstance(event, WindowCompacted):
                yield position, event
            position = self.journal.checkpoint(self.key, before=position)

    # -- by ordinal ---------------------------------------------------------------------------------------------

    def message(self, ordinal: int) -> MessageAppended | DamagedRecord | None:
        """The message with this ordinal; None where the log seems to have none."""
        record = self.journal.message(self.key, ordinal)
        if record is not None:
            try:
                event = self.event(record)
                if isinstance(event, MessageAppended) and event.ordinal == ordinal:
                    return event
            except Damaged:
                pass
        for position in self._places(ordinal):
            restored = self._restored(position)
            if isinstance(restored, MessageAppended) and restored.ordinal == ordinal:
                return restored
        return None if record is None else DamagedRecord(position=-1, kind="message", record=record)

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

    def event(self, record: JournalRecord, position: int = -1) -> Event:
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
        if isinstance(event, MessageAppended) and not self._is_original(event):
            raise Damaged(
                f"session {session!r}: the record of §{event.ordinal} is not what its address says; "
                "`ctxsteward store fsck --repair` restores what can be, else restore the journal from a backup"
            )
        return event

    def _is_original(self, event: MessageAppended) -> bool:
        """Whether a message's bytes are those of its address."""
        try:
            return self.address(event.principal, event.wire) == event.address
        except (UnicodeEncodeError, AttributeError):  # no text, or none that can be encoded
            return False

    def address(self, principal: str | None, wire: str) -> str:
        """The address of a message of this session."""
        return address_of(self.address_key, subject_of(self.key.session, principal), "message", wire.encode())
