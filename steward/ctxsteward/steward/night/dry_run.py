"""A store on top of another one, for a dry run: everything is read from below, and what is written stays in memory.

`setup` puts it under a night with `dry_run` set, so a dry run is the same night over another store and no stage has to
know. Deletions are kept in memory, too. The store below stays open: whoever opened it closes it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from ctxsteward.envelope import Store
from ctxsteward.schemas import ObjectMissing
from ctxsteward.store import (
    DraftJournal,
    MemoryObjects,
    ObjectInfo,
    ObjectStore,
    PutOutcome,
    SessionKey,
    memory_keys,
    part_of,
)

_NOBODY = SessionKey("", "")
"""A session that no journal has: a draft journal writes to one session at most, and a night to none."""
_FAMILIES = ("blobs", "facts", "keys", "profiles", "sessions", "snapshots", "steward", "tenants", "tombstones")


class DraftObjects:
    """An `ObjectStore` in memory over another one."""

    def __init__(self, below: ObjectStore) -> None:
        self._below, self._own = below, MemoryObjects()
        self._gone: set[str] = set()

    @property
    def uri(self) -> str:
        return self._below.uri

    def put(self, key: str, body: bytes) -> PutOutcome:
        return "conflicted" if self._is_below(key) else self._own.put(key, body)

    def get(self, key: str) -> bytes:
        try:
            return self._own.get(key)
        except ObjectMissing:
            if key in self._gone:
                raise
        return self._below.get(key)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        below = (info for info in self._below.list(prefix, after=after) if info.key not in self._gone)
        return heapq.merge(below, self._own.list(prefix, after=after))

    def delete(self, key: str) -> None:
        self._own.delete(key)
        self._gone.add(key)

    def close(self) -> None:
        """Nothing to release."""

    def _is_below(self, key: str) -> bool:
        if key in self._gone:
            return False
        try:
            self._below.get(key)
        except ObjectMissing:
            return False
        return True


def draft_store(store: Store, tenant: str) -> Store:
    """A store that reads through to this one and writes nothing to it; not even the keys of a new tenant."""
    objects = DraftObjects(store.objects)
    journal = DraftJournal(store.journal, _NOBODY, 0)
    known = bool(store.journal.sessions(tenant)) or any(
        next(iter(store.objects.list(f"{family}/{part_of(tenant)}/")), None) for family in _FAMILIES
    )
    return Store(journal, objects, store.keys if known else memory_keys(), uri=store.uri, patience=store.patience)
