"""`memory:`: the journal as lists. Everything a file store promises but durability; also the double for tests."""

from __future__ import annotations

import secrets
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from ctxsteward.schemas import Conflict, StoreError

from .. import process_forks as forking
from .port import (
    DrainMark,
    ForgottenSubject,
    JournalRecord,
    Manifest,
    MovedTail,
    SessionKey,
    WaitingLog,
    check_queue,
    check_replaced,
    compaction_address,
    size_bytes,
    text_bytes,
)


class _Log:
    """One log; `records` only ever grows: what is replaced makes another log."""

    __slots__ = ("by_id", "bytes", "compactions", "drained", "generation", "messages", "outputs", "records", "since")

    def __init__(self, generation: int = 0, drained: DrainMark = DrainMark()) -> None:  # noqa: B008 - a frozen value
        self.generation, self.drained = generation, drained
        self.records: list[JournalRecord] = []
        self.messages: dict[int, int] = {}
        self.by_id: dict[str, int] = {}
        self.compactions: list[int] = []
        self.outputs: list[tuple[int, int]] = []
        self.since = 0
        """Place in the order of waiting; 0: nothing waits."""
        self.bytes = 0
        """Of all that waits."""

    def add(self, record: JournalRecord) -> None:
        here = len(self.records)
        self.records.append(record)
        if record.ordinal:
            self.messages[record.ordinal] = here
        if record.id is not None:
            self.by_id[record.id] = here
        if record.outputs and (not self.outputs or self.outputs[-1][0] < record.outputs):
            self.outputs.append((record.outputs, here))
        if record.kind == "compaction":
            self.compactions.append(here)


class _ManifestRow:
    """A manifest and whether it waits."""

    __slots__ = ("body", "session", "waits")

    def __init__(self, session: str, body: str, waits: bool) -> None:
        self.session, self.body, self.waits = session, body, waits


_NONE = _Log()


class MemoryJournal:
    """A `Journal` for one process; safe with threads. With `drains`, what is written waits to be drained."""

    def __init__(
        self,
        drains: bool = False,
        *,
        queue_bytes: int | None = None,
        draw_id: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self._drains, self._id = drains, draw_id()
        self._queue_bytes = queue_bytes if drains else None
        self._lock = forking.rlock()
        self._logs: dict[SessionKey, _Log] = {}
        self._manifests: dict[tuple[str, str], _ManifestRow] = {}
        self._found: dict[tuple[str, str], tuple[str, int]] = {}
        self._seen: dict[str, int] = {}
        self._forgotten: dict[str, dict[tuple[str, str | None], ForgottenSubject]] = {}
        self._place = 0
        self._waiting_bytes = 0

    @property
    def id(self) -> str:
        return self._id

    # -- logs

    def append(self, key: SessionKey, position: int, records: Sequence[JournalRecord], *, generation: int = 0) -> None:
        with self._lock:
            log = self._log(key)
            if position != len(log.records) or generation != log.generation:
                raise Conflict(key.session, position)
            if not records:
                return
            if self._queue_bytes is not None and any(record.kind == "message" for record in records):
                check_queue(self._waiting_bytes, sum(map(size_bytes, records)), self._queue_bytes)
            addresses = _addresses(key, log, records, self._found)
            if log is _NONE:
                log = self._logs[key] = _Log()
            for record in records:
                log.add(record)
            for address, index in addresses.items():
                self._found[key.tenant, address] = (key.session, position + index)
            if self._drains and len(log.records) > log.drained.position:
                added = sum(map(size_bytes, records[max(0, log.drained.position - position) :]))
                self._wait(log, log.bytes + added, log.since or self._next_place())

    def length(self, key: SessionKey) -> int:
        return len(self._log(key).records)

    def generation(self, key: SessionKey) -> int:
        return self._log(key).generation

    def read(self, key: SessionKey, start: int, stop: int | None = None) -> list[JournalRecord]:
        return self._log(key).records[start:stop]

    def checkpoint(self, key: SessionKey, before: int | None = None) -> int:
        compactions = self._log(key).compactions
        index = len(compactions) if before is None else bisect_left(compactions, before)
        return compactions[index - 1] if index else 0

    def message(self, key: SessionKey, ordinal: int) -> JournalRecord | None:
        log = self._log(key)
        position = log.messages.get(ordinal)
        return None if position is None else log.records[position]

    def position(self, key: SessionKey, ordinal: int) -> int | None:
        return self._log(key).messages.get(ordinal)

    def by_id(self, key: SessionKey, id: str) -> JournalRecord | None:
        log = self._log(key)
        position = log.by_id.get(id)
        return None if position is None else log.records[position]

    def by_output(self, key: SessionKey, number: int) -> JournalRecord | None:
        log = self._log(key)
        index = bisect_left(log.outputs, (number, -1))
        return log.records[log.outputs[index][1]] if index < len(log.outputs) else None

    def sessions(self, tenant: str) -> list[str]:
        with self._lock:
            return sorted(key.session for key, log in self._logs.items() if key.tenant == tenant and log.records)

    def tenants(self) -> list[str]:
        with self._lock:
            return sorted({key.tenant for key, log in self._logs.items() if log.records})

    # -- manifests, and finding by address

    def put_manifest(self, key: SessionKey, address: str, body: str) -> None:
        with self._lock:
            if (key.tenant, address) in self._manifests:
                return
            self._manifests[key.tenant, address] = _ManifestRow(key.session, body, self._drains)
            if self._drains:
                log = self._logs.setdefault(key, _Log())
                self._wait(log, log.bytes + text_bytes(body), log.since or self._next_place())

    def get_manifest(self, tenant: str, address: str) -> str | None:
        kept = self._manifests.get((tenant, address))
        return None if kept is None else kept.body

    def manifests(self, key: SessionKey, *, waiting: bool = False, limit: int | None = None) -> list[Manifest]:
        with self._lock:
            found = (
                Manifest(address, kept.body)
                for (tenant, address), kept in self._manifests.items()
                if (tenant, kept.session) == key and (kept.waits or not waiting)
            )
            return list(islice(found, limit))

    def find(self, tenant: str, address: str) -> tuple[str, int] | None:
        return self._found.get((tenant, address))

    def matching(self, tenant: str, prefix: str) -> list[str]:
        with self._lock:
            known = (address for owner, address in (*self._manifests, *self._found) if owner == tenant)
            return list(islice((address for address in known if address.startswith(prefix)), 3))

    # -- replacing what was written

    def rewrite(self, key: SessionKey, records: Mapping[int, JournalRecord]) -> None:
        with self._lock:
            old = self._log(key)
            check_replaced(key, len(old.records), records)
            if records:
                self._replace(key, [records.get(n, record) for n, record in enumerate(old.records)], old.drained)

    def truncate(self, key: SessionKey, length: int) -> None:
        with self._lock:
            old = self._log(key)
            if 0 <= length < len(old.records):
                drained = old.drained._replace(position=min(old.drained.position, length))
                self._replace(key, old.records[:length], drained)

    def drop_manifests(self, key: SessionKey) -> None:
        with self._lock:
            dropped = [
                owner
                for owner, kept in self._manifests.items()
                if (owner[0], kept.session) == (key.tenant, key.session)
            ]
            for owner in dropped:
                del self._manifests[owner]
            if dropped:
                log = self._log(key)
                self._replace(key, log.records, log.drained)

    def adopt(
        self,
        key: SessionKey,
        position: int,
        records: Sequence[JournalRecord],
        *,
        length: int,
        drained: DrainMark,
        manifests: Sequence[Manifest] = (),
        moved: MovedTail | None = None,
    ) -> None:
        with self._lock:
            old = self._log(key)
            taken = moved is not None and self._log(moved.key).records
            if len(old.records) != length or drained.number < old.drained.number or taken:
                raise Conflict(key.session, length)
            if position < length:
                self._replace(key, old.records[:position], old.drained._replace(position=position))
            log = self._logs.setdefault(key, _Log())
            for address, index in _addresses(key, log, records, self._found).items():
                self._found[key.tenant, address] = (key.session, position + index)
            for record in records:
                log.add(record)
            for manifest in manifests:
                self._manifests.setdefault(
                    (key.tenant, manifest.address), _ManifestRow(key.session, manifest.body, False)
                )
            log.drained = drained
            if moved is not None:
                self._move(key, moved)
            self._recount(key, log)

    def _move(self, key: SessionKey, moved: MovedTail) -> None:
        for address, body in moved.manifests.items():
            kept = self._manifests.get((key.tenant, address))
            if kept is not None:
                kept.session, kept.body, kept.waits = moved.key.session, body, self._drains
        new = self._logs[moved.key] = _Log()
        for address, index in _addresses(moved.key, new, moved.records, self._found).items():
            self._found[key.tenant, address] = (moved.key.session, index)
        for record in moved.records:
            new.add(record)
        self._recount(moved.key, new)
        for fork, first in moved.forks.items():
            log = self._log(fork)
            self._replace(fork, [first, *log.records[1:]], log.drained)

    def scrub(self) -> None:
        """Nothing is in a file."""

    def _replace(self, key: SessionKey, records: list[JournalRecord], drained: DrainMark) -> None:
        """Another log, of the next generation, in place of this one; or this one as it is."""
        old = self._log(key)
        elsewhere = {found: at for found, at in self._found.items() if (found[0], at[0]) != key}
        addresses = _addresses(key, _NONE, records, elsewhere)
        new = _Log(old.generation + 1, drained)
        for record in records:
            new.add(record)
        self._wait(old, 0, 0)
        self._recount(key, new)
        self._logs[key] = new
        self._found = elsewhere | {(key.tenant, address): (key.session, n) for address, n in addresses.items()}

    # -- beside the logs

    def drained(self, key: SessionKey) -> DrainMark:
        return self._log(key).drained

    def set_drained(self, key: SessionKey, drained: DrainMark, manifests: Sequence[str] = ()) -> None:
        with self._lock:
            log = self._logs.setdefault(key, _Log())
            for address in manifests:
                kept = self._manifests.get((key.tenant, address))
                if kept is not None and kept.session == key.session:
                    kept.waits = False
            if drained.number >= log.drained.number:
                log.drained = drained
            self._recount(key, log)

    def waiting(self, limit: int = 1000) -> list[WaitingLog]:
        with self._lock:
            logs = sorted(
                ((log.since, key, log) for key, log in self._logs.items() if log.since), key=lambda row: row[0]
            )
            return [
                WaitingLog(key, log.drained, len(log.records), len(self.manifests(key, waiting=True)))
                for _, key, log in logs[:limit]
            ]

    def waiting_bytes(self) -> int:
        return self._waiting_bytes

    def seen(self, name: str) -> int:
        return self._seen.get(name, 0)

    def see(self, name: str, number: int) -> None:
        with self._lock:
            self._seen[name] = max(number, self.seen(name))

    def witnessed(self) -> dict[str, int]:
        """All that `see` has noted."""
        with self._lock:
            return dict(self._seen)

    def forget(self, tenant: str, forgotten: ForgottenSubject) -> None:
        with self._lock:
            subjects = self._forgotten.setdefault(tenant, {})
            subjects.setdefault((forgotten.session, forgotten.principal), forgotten)

    def forgotten(self, tenant: str, session: str | None = None) -> list[ForgottenSubject]:
        with self._lock:
            subjects = self._forgotten.get(tenant, {}).values()
            return [one for one in subjects if session is None or one.session == session]

    def close(self) -> None:
        """Nothing to release."""

    # -- reading

    def _log(self, key: SessionKey) -> _Log:
        return self._logs.get(key, _NONE)

    def _recount(self, key: SessionKey, log: _Log) -> None:
        """Count what waits anew; the log goes to the end of the order."""
        if not self._drains:
            return
        manifests = self.manifests(key, waiting=True)
        size = sum(map(size_bytes, log.records[log.drained.position :]))
        size += sum(text_bytes(manifest.body) for manifest in manifests)
        waits = manifests or len(log.records) > log.drained.position
        self._wait(log, size, self._next_place() if waits else 0)

    def _wait(self, log: _Log, size: int, since: int) -> None:
        self._waiting_bytes += size - log.bytes
        log.bytes, log.since = size, since

    def _next_place(self) -> int:
        self._place += 1
        return self._place


def _addresses(
    key: SessionKey, log: _Log, records: Sequence[JournalRecord], found: Mapping[tuple[str, str], tuple[str, int]]
) -> dict[str, int]:
    """Addresses among these records; `StoreError` where a record repeats an id, ordinal or address."""
    ids: set[str] = set()
    ordinals: set[int] = set()
    addresses: dict[str, int] = {}
    for index, record in enumerate(records):
        id, ordinal, address = record.id, record.ordinal, compaction_address(record)
        if (
            id in ids or id in log.by_id or ordinal in ordinals or ordinal in log.messages
            or address in addresses or found.get((key.tenant, address or ""), ("", 0))[0] == key.session
        ):  # fmt: skip
            raise StoreError(
                f"session {key.session!r}: the id, ordinal or address of a {record.kind} record is there already; "
                "nothing was written; refresh and decide again"
            )
        if id is not None:
            ids.add(id)
        if ordinal:
            ordinals.add(ordinal)
        if address is not None:
            addresses[address] = index
    return addresses
