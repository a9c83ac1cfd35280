"""`memory:`: the journal as lists. Everything a file store promises but durability; also the double for tests."""

from __future__ import annotations

import json
import secrets
import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import islice

from ctxsteward.schemas import Conflict

from ..keys import KEY_BYTES, AddressKey
from .port import Record, SessionKey


class _Log:
    __slots__ = ("by_id", "compactions", "messages", "outputs", "records")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.messages: dict[int, int] = {}
        self.by_id: dict[str, int] = {}
        self.compactions: list[int] = []
        self.outputs: list[tuple[int, int]] = []


class MemoryJournal:
    """A `Journal` for one process; safe with threads."""

    def __init__(self, random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> None:
        self._random_bytes = random_bytes
        self._lock = threading.Lock()
        self._logs: dict[SessionKey, _Log] = {}
        self._manifests: dict[tuple[str, str], str] = {}
        self._keys: dict[str, AddressKey] = {}
        self._found: dict[tuple[str, str], tuple[str, int]] = {}

    def append(self, key: SessionKey, position: int, records: Sequence[Record]) -> None:
        with self._lock:
            log = self._logs.get(key)
            if log is None:
                log = self._logs[key] = _Log()
            if position != len(log.records):
                raise Conflict(key.session, position)
            for record in records:
                self._index(key, log, record)
                log.records.append(record)

    def _index(self, key: SessionKey, log: _Log, record: Record) -> None:
        here = len(log.records)
        if record.ordinal:
            log.messages[record.ordinal] = here
            if record.id is not None:
                log.by_id[record.id] = here
            if record.outputs and (not log.outputs or log.outputs[-1][0] < record.outputs):
                log.outputs.append((record.outputs, here))
        elif record.kind == "compaction":
            log.compactions.append(here)
            self._found[key.tenant, json.loads(record.body)["report"]["id"]] = (key.session, here)

    def length(self, key: SessionKey) -> int:
        log = self._logs.get(key)
        return len(log.records) if log else 0

    def read(self, key: SessionKey, start: int, stop: int | None = None) -> list[Record]:
        log = self._logs.get(key)
        return log.records[start:stop] if log else []

    def checkpoint(self, key: SessionKey, before: int | None = None) -> int:
        log = self._logs.get(key)
        if log is None or not log.compactions:
            return 0
        index = len(log.compactions) if before is None else bisect_left(log.compactions, before)
        return log.compactions[index - 1] if index else 0

    def message(self, key: SessionKey, ordinal: int) -> Record | None:
        position = self.position(key, ordinal)
        return None if position is None else self._logs[key].records[position]

    def position(self, key: SessionKey, ordinal: int) -> int | None:
        log = self._logs.get(key)
        return log.messages.get(ordinal) if log else None

    def by_id(self, key: SessionKey, id: str) -> Record | None:
        log = self._logs.get(key)
        position = log.by_id.get(id) if log else None
        return None if log is None or position is None else log.records[position]

    def by_output(self, key: SessionKey, number: int) -> Record | None:
        log = self._logs.get(key)
        if log is None:
            return None
        index = bisect_left(log.outputs, (number, -1))
        return log.records[log.outputs[index][1]] if index < len(log.outputs) else None

    def sessions(self, tenant: str) -> list[str]:
        return sorted(key.session for key in self._logs if key.tenant == tenant)

    def put_manifest(self, tenant: str, address: str, body: str) -> None:
        self._manifests.setdefault((tenant, address), body)

    def get_manifest(self, tenant: str, address: str) -> str | None:
        return self._manifests.get((tenant, address))

    def find(self, tenant: str, address: str) -> tuple[str, int] | None:
        return self._found.get((tenant, address))

    def matching(self, tenant: str, prefix: str) -> list[str]:
        known = (address for owner, address in (*self._manifests, *self._found) if owner == tenant)
        return list(islice((address for address in known if address.startswith(prefix)), 3))

    def address_key(self, tenant: str) -> AddressKey:
        with self._lock:
            return self._keys.setdefault(tenant, AddressKey(self._random_bytes(KEY_BYTES)))

    def close(self) -> None:
        """Nothing to release."""
