"""One session's log in the journal: records are written with codes, checked when read, and repaired if damaged.

A record's code is HMAC-SHA-256 under the tenant's address key of session, kind, place, tool outputs, id and body, each
length-prefixed. So a read detects a record that was changed, swapped, moved or replayed. The place is a message's
ordinal, or any other record's position. The code covers a message's wire bytes through the address in the body, which
is checked separately (so that an address alone proves an original). A manifest's code is its last field, ``"mac"``.

A record that is missing, or was not written at its place, is first fetched with `repair` (the object store may have
it). If that fails, the row is a `DamagedRecord`. A check of an intact record costs one code, and for a message one
address.

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
from .events import (
    Event,
    ForkPoint,
    MessageAppended,
    WindowCompacted,
    encoded_body,
    fork_point,
    from_record,
    to_record,
)
from .port import Journal, JournalRecord, SessionKey

MANIFEST_KIND = "manifest"
_NO_ID = b"\x00\x00\x00\x00"
_ZERO = b"\x00\x00\x00\x010"


def code_of(key: AddressKey, session: str, position: int, record: JournalRecord) -> str:
    """Return the code of a record at `position`."""
    numbers = _numbered(record.ordinal or -1 - position) + (_numbered(record.outputs) if record.outputs else _ZERO)
    id = _NO_ID if record.id is None else prefixed(record.id)
    text = owned(session, record.kind) + numbers + id + prefixed(record.body)
    return code(key, text + b"\x00" if record.id is None else text)


def body_of(record: JournalRecord) -> dict[str, Any] | None:
    """Return a record's body, also of a damaged record, or None if it cannot be read."""
    try:
        body = json.loads(record.body)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def principals_of(rows: Sequence[JournalRecord]) -> set[str]:
    """Return the principals of the messages in these records."""
    bodies = (body_of(record) or {} for record in rows if record.kind == "message" and '"principal"' in record.body)
    return {name for name in (body.get("principal") for body in bodies) if isinstance(name, str)}


@lru_cache(maxsize=4096)
def owned(session: str, kind: str) -> bytes:
    """Return the first bytes of every coded text: session and kind."""
    return prefixed(session) + prefixed(kind)


def prefixed(text: str) -> bytes:
    """Return the text after its length, so that different sequences of texts have different bytes."""
    data = text.encode()
    return len(data).to_bytes(4, "big") + data


def _numbered(number: int) -> bytes:
    data = b"%d" % number
    return len(data).to_bytes(4, "big") + data


def coded(key: AddressKey, session: str, position: int, record: JournalRecord) -> JournalRecord:
    """Return the record with its code."""
    return JournalRecord(
        record.kind,
        record.body,
        record.ordinal,
        record.outputs,
        record.id,
        record.wire,
        code_of(key, session, position, record),
    )


def recoded(key: AddressKey, session: str, position: int, before: JournalRecord, after: JournalRecord) -> JournalRecord:
    """Return `after`, which replaces `before`. It gets a valid code if `before` has one; a damaged record stays so."""
    valid = hmac.compare_digest(before.mac, code_of(key, session, position, before))
    return after._replace(mac=code_of(key, session, position, after) if valid else "")


def addressed(key: AddressKey, session: str, record: JournalRecord, addresses: dict[str, str]) -> JournalRecord:
    """Return a record of another session, or of other keys, with the message addresses that it has in this session.

    A report keeps its id. `addresses` maps earlier addresses to new ones; a message adds its own.
    """
    body = json.loads(record.body) if record.kind in ("message", "compaction") else {}
    if record.kind == "message":  # also one without its words, whose address depends on the subject, too
        subject, wire = subject_of(session, body.get("principal")), (record.wire or "").encode()
        addresses[body["address"]] = body["address"] = address_of(key, subject, "message", wire)
    elif record.kind == "compaction":
        report = body["report"]
        report["source_addresses"] = [addresses.get(old, old) for old in report["source_addresses"]]
    return record._replace(body=encoded_body(body)) if body else record


def forks_above(journal: Journal, key: SessionKey) -> Iterator[tuple[SessionKey, ForkPoint]]:
    """Yield a fork with the point of its parent, then that parent if it is a fork, and so on.

    A parent is read only when the next fork is asked for: the caller may copy it into the journal first.
    """
    while (origin := fork_point(journal.read(key, 0, 1))) is not None:
        yield key, origin
        key = SessionKey(key.tenant, origin.session)


def check(key: AddressKey, session: str, position: int, record: JournalRecord) -> None:
    """Raise `Damaged` if a record is not what was written at this place."""
    try:
        right = hmac.compare_digest(record.mac, code_of(key, session, position, record))
    except (TypeError, AttributeError, ValueError):  # a value is not text, or cannot be encoded
        right = False
    if not right:
        what = f"§{record.ordinal}" if record.ordinal else f"position {position}"
        raise Damaged(
            f"session {session!r}: the {record.kind} record of {what} is not what was written; "
            "`ctxsteward store fsck --repair` restores what can be, else restore the journal from a backup"
        )


def coded_manifest(key: AddressKey, address: str, fields: str) -> str:
    """Return the text of a manifest: a JSON object of these members, and their code as the last one.

    >>> coded_manifest(AddressKey(b"k" * 32), "ab12", '"position":3')[:20]
    '{"position":3,"mac":'
    """
    return f'{{{fields},"mac":"{address_of(key, address, MANIFEST_KIND, fields.encode())}"}}'


def read_manifest(key: AddressKey, address: str, body: str) -> Wire:
    """Return the members of the manifest at this address. Raises `Damaged` if it is not what was written there."""
    fields, separator, end = body[1:].rpartition(',"mac":"')
    try:
        expected = address_of(key, address, MANIFEST_KIND, fields.encode()) + '"}'
        if separator and body[:1] == "{" and hmac.compare_digest(end, expected):
            manifest: Wire = json.loads(body)
            return manifest
    except (ValueError, TypeError):  # a lone surrogate, or invalid JSON
        pass
    raise Damaged(
        f"the manifest of envelope {address[:16]}… is not what was written: it cannot be rebuilt from it; "
        "build the session anew, or restore the journal from a backup"
    )


Repair = Callable[[SessionKey, int], JournalRecord | None]
"""Return the record of a log at a position from another place, or None if that has none."""

Listener = Callable[[SessionKey], object]
"""Called with a log's key after an append by a session of this process. Must not wait or raise."""

_NEARBY = 64
"""Most positions at which a missing message is searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedRecord:
    """A position in the log whose record is missing, or is not what was written there."""

    position: int
    kind: str = ""
    """Kind that the damaged record claims; empty if the record is missing."""
    record: JournalRecord | None = None
    """The damaged record; do not trust it."""


Row = Event | DamagedRecord


class Log:
    """Reader and writer of one log."""

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
        """Called after every append."""
        self.restored: list[int] = []
        """Positions of records that `repair` returned."""

    def sibling(self, session: str) -> Log:
        """Return the log of another session of this tenant."""
        key = SessionKey(self.key.tenant, session)
        return Log(self.journal, key, self.address_key, self.repair, self.listeners)

    def append(self, position: int, events: Sequence[Event], generation: int) -> None:
        """Append events with their codes. Raises `Conflict` if the log is not at this position and generation."""
        key, session = self.address_key, self.key.session
        records = [coded(key, session, place, to_record(event)) for place, event in enumerate(events, position)]
        self.journal.append(self.key, position, records, generation=generation)
        for listener in self.listeners:
            listener(self.key)

    # -- in order -----------------------------------------------------------------------------------------------

    def read(self, start: int, stop: int | None = None, *, whole: bool = True) -> list[Row]:
        """Return the rows from `start` on. Without `whole`, trust an empty result without checking the length."""
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
        """Return the row at this position."""
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
        """Yield the readable compactions with their positions, newest first."""
        position = self.journal.checkpoint(self.key, before=before)
        while position:
            event = self.at(position)
            if isinstance(event, WindowCompacted):
                yield position, event
            position = self.journal.checkpoint(self.key, before=position)

    # -- by ordinal ---------------------------------------------------------------------------------------------

    def message(self, ordinal: int) -> MessageAppended | DamagedRecord | None:
        """Return the message with this ordinal, or None if neither the log nor `repair` has one."""
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
        """Return the positions at which an unreadable message is, or may have been."""
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
        except StoreError:  # the other place cannot be read, or its record is damaged, too
            return None
        if event is not None and position not in self.restored:
            self.restored.append(position)
        return event

    # -- checking -----------------------------------------------------------------------------------------------

    def event(self, record: JournalRecord, position: int = -1) -> Event:
        """Return the event in a record. Raises `Damaged` if the record is not what was written at this position.

        `position` is not needed for a message, whose place is its ordinal.
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
        """Return whether a message's bytes have its address."""
        try:
            return self.address(event.principal, event.wire) == event.address
        except (UnicodeEncodeError, AttributeError):  # a value is not text, or cannot be encoded
            return False

    def address(self, principal: str | None, wire: str) -> str:
        """Return the address of a message of this session."""
        return address_of(self.address_key, subject_of(self.key.session, principal), "message", wire.encode())
