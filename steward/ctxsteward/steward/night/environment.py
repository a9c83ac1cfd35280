"""The process that a night runs in, as a value: its name in leases, its clock, its CPU time and its keys.

Command line, Prefect flow and Dask workers call `of_this_process`; tests make a `ProcessEnvironment` of their own. No
other module of the steward reads the clock, the host name or the environment.

A dry run works on `draft_store`, a store over another one: it reads from the store below, and keeps writes and
deletions in memory. So no stage needs to know that a night is a dry run. Closing the draft does not close the store
below.
"""

from __future__ import annotations

import heapq
import os
import resource
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from ctxsteward.envelope import Store
from ctxsteward.schemas.errors import ObjectMissing
from ctxsteward.store import MasterKeys, ObjectStore
from ctxsteward.store.crypto.keyring import Keys, memory_keys
from ctxsteward.store.journal.draft import DraftJournal
from ctxsteward.store.journal.port import SessionKey
from ctxsteward.store.names import part_of
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.objects.port import ObjectInfo, PutOutcome

KEY_VARIABLE = "CTXSTEWARD_MASTER_KEY"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnvironment:
    """Name, clock, CPU time and keys of a process; values that change while it runs are callables."""

    owner: str
    """Name of the process as the holder of a lease: ``night@HOST:PID``."""
    clock: Callable[[], float]
    """Unix seconds."""
    cpu_seconds: Callable[[], float]
    """CPU time of this process and of its ended children."""
    abandoned: Callable[[str], bool] = lambda owner: False
    """Whether the process of a lease's owner is known to have ended."""
    keys: Callable[[], Keys | None] = lambda: None
    """Source of tenants' keys; None: files beside the store."""

    @property
    def when(self) -> str:
        """ISO 8601, in UTC, to the second."""
        return datetime.fromtimestamp(self.clock(), UTC).isoformat(timespec="seconds")

    @property
    def today(self) -> str:
        return self.when[:10]


def of_this_process() -> ProcessEnvironment:
    """Return the environment of this process."""
    host = socket.gethostname()
    return ProcessEnvironment(
        owner=f"night@{host}:{os.getpid()}",
        clock=time.time,
        cpu_seconds=cpu_seconds,
        abandoned=lambda owner: is_gone(owner, host),
        keys=environment_keys,
    )


def environment_keys() -> Keys | None:
    """Return keys derived from the secret in `CTXSTEWARD_MASTER_KEY`, or None if it is not set."""
    return MasterKeys.from_environment(os.environ, KEY_VARIABLE) if os.environ.get(KEY_VARIABLE) else None


def cpu_seconds() -> float:
    """Return user and system time of this process and of the children that it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def is_gone(owner: str, host: str) -> bool:
    """Whether the process of a lease's owner has ended; False for processes of other machines.

    >>> is_gone("night@elsewhere:1", "here"), is_gone("somebody", "here")
    (False, False)
    """
    name, _, pid = owner.rpartition(":")
    if name != f"night@{host}" or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False


# -- a dry run's store ------------------------------------------------------------------------------------------------

_NOBODY = SessionKey("", "")
"""A session that no journal has: a draft journal writes to one session at most, and a night to none."""
_FAMILIES = ("blobs", "facts", "keys", "profiles", "sessions", "snapshots", "steward", "tenants", "tombstones")


class DraftObjects(ObjectStore):
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
    """Return a store that reads from this one and never writes to it, not even keys of a new tenant."""
    objects = DraftObjects(store.objects)
    journal = DraftJournal(store.journal, _NOBODY, 0)
    has_tenant = bool(store.journal.sessions(tenant)) or any(
        next(iter(store.objects.list(f"{family}/{part_of(tenant)}/")), None) for family in _FAMILIES
    )
    return Store(journal, objects, store.keys if has_tenant else memory_keys(), uri=store.uri, patience=store.patience)
