"""Forks of turns that lost their session: what a machine wrote while another one took the session over.

The fork is named after session, epoch of the writer that lost it and position: ``s-42-fork-e1-17`` (with the beginning
of the journal's id where that writer had never owned it). It shares the session's log up to that position, counts on
from there, and holds the turns as they were: same ordinals, ids, texts, times. Addresses of its messages are its own,
because an address names its subject; a compaction keeps the address its report was handed out under. Manifests of
envelopes that were built on these turns, and logs that were forked off them, go with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from ..events import Opened, Origin, from_record, to_record
from ..keys import AddressKey, address_of, subject_of
from ..records import coded, coded_manifest
from ..stores.port import Journal, Moved, Record, SessionKey

MARK = "-fork-e"
MAX_STEM_CHARS = 150


def fork_key(journal: Journal, key: SessionKey, position: int, epoch: int) -> SessionKey:
    """A free name for the fork at `position`; `epoch` is the journal's own, 0 or less where it owned nothing."""
    stem = f"{_stem(key.session)}{MARK}{abs(epoch)}-{position}"
    if epoch <= 0:
        stem += f"-{journal.id[:8]}"
    name, count = stem, 1
    while journal.length(SessionKey(key.tenant, name)):
        count += 1
        name = f"{stem}-{count}"
    return SessionKey(key.tenant, name)


def forks_of(journal: Journal, key: SessionKey) -> list[str]:
    """Forks that were made of this session's turns in this journal."""
    beginning = _stem(key.session) + MARK
    return [name for name in journal.sessions(key.tenant) if name.startswith(beginning)]


def moved_tail(
    journal: Journal, address_key: AddressKey, key: SessionKey, position: int, tail: Sequence[Record], epoch: int
) -> Moved:
    """What `Journal.adopt` needs to make a fork of the records at `position` and after."""
    fork = fork_key(journal, key, position, epoch)
    shift = 1 - position if position else 0
    moving = _Moving(address_key, key, fork, position, shift)
    first = journal.read(key, 0, 1)
    opened = from_record(first[0]) if first else None
    records = []
    if position and isinstance(opened, Opened):
        origin = Origin(key.session, position, _ordinal_before(journal, key, position, opened))
        records.append(coded(address_key, fork.session, 0, to_record(Opened(nonce=opened.nonce, parent=origin))))
    records += [moving.record(record, n + shift) for n, record in enumerate(tail, position)]
    manifests = {}
    for manifest in journal.manifests(key):
        fields = json.loads(manifest.body)
        if fields["position"] > position:
            fields |= {"session": fork.session, "position": fields["position"] + shift}
            fields.pop("mac", None)
            manifests[manifest.address] = coded_manifest(address_key, manifest.address, _dump(fields)[1:-1])
    return Moved(fork, tuple(records), manifests, forked_off(journal, address_key, key, position, fork))


def forked_off(
    journal: Journal, address_key: AddressKey, key: SessionKey, position: int, fork: SessionKey
) -> dict[SessionKey, Record]:
    """Logs of this journal that were forked off behind `position`: their first records, naming the fork instead."""
    shift = 1 - position if position else 0
    found: dict[SessionKey, Record] = {}
    for session in journal.sessions(key.tenant):
        child = SessionKey(key.tenant, session)
        first = journal.read(child, 0, 1)
        opened = from_record(first[0]) if first and first[0].kind == "opened" else None
        if isinstance(opened, Opened) and opened.parent is not None:
            parent = opened.parent
            if parent.session == key.session and parent.position > position:
                origin = Origin(fork.session, parent.position + shift, parent.ordinal)
                renamed = to_record(Opened(nonce=opened.nonce, parent=origin))
                found[child] = coded(address_key, session, 0, renamed)
    return found


class _Moving:
    """Writes records anew for the log they go to."""

    def __init__(self, address_key: AddressKey, key: SessionKey, fork: SessionKey, position: int, shift: int) -> None:
        self._address_key, self._key, self._fork = address_key, key, fork
        self._position, self._shift = position, shift
        self._addresses: dict[str, str] = {}

    def record(self, record: Record, position: int) -> Record:
        if record.kind in ("message", "compaction"):
            body = json.loads(record.body)
            if record.kind == "message":
                self._message(record, body)
            else:
                self._compaction(body)
            record = record._replace(body=_dump(body))
        return coded(self._address_key, self._fork.session, position, record)

    def _message(self, record: Record, body: dict[str, Any]) -> None:
        if not body.get("erased"):
            subject = subject_of(self._fork.session, body.get("principal"))
            address = address_of(self._address_key, subject, "message", (record.wire or "").encode())
            self._addresses[body["address"]] = body["address"] = address

    def _compaction(self, body: dict[str, Any]) -> None:
        report, checkpoint = body["report"], body["checkpoint"]
        report["source_addresses"] = [self._addresses.get(found, found) for found in report["source_addresses"]]
        where = checkpoint["head_at"]
        if where is not None and where[0] == self._key.session and where[1] >= self._position:
            checkpoint["head_at"] = [self._fork.session, where[1] + self._shift]


def _ordinal_before(journal: Journal, key: SessionKey, position: int, opened: Opened) -> int:
    """Ordinal of the newest message before `position`."""
    for stop in range(position, 0, -256):
        records = journal.read(key, max(0, stop - 256), stop)
        for record in reversed(records):
            if record.ordinal:
                return record.ordinal
    return opened.parent.ordinal if opened.parent is not None else 0


def _stem(session: str) -> str:
    if len(session) <= MAX_STEM_CHARS:
        return session
    return f"{session[: MAX_STEM_CHARS - 13]}~{hashlib.sha256(session.encode()).hexdigest()[:12]}"


def _dump(body: dict[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))
