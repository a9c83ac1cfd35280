"""`memory:`: objects in a dictionary, for one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from ctxsteward.schemas.errors import ObjectMissing

from .. import process_forks as forking
from ..names import checked_key, checked_prefix
from .port import ObjectInfo, ObjectStore, PutOutcome


class MemoryObjects(ObjectStore):
    """An `ObjectStore` in memory; also the double in tests."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._lock = forking.lock()
        self._objects: dict[str, tuple[bytes, float]] = {}

    @property
    def uri(self) -> str:
        return "memory:"

    def put(self, key: str, body: bytes) -> PutOutcome:
        checked_key(key)
        with self._lock:
            if key in self._objects:
                return "conflicted"
            self._objects[key] = (bytes(body), self._now())
            return "committed"

    def get(self, key: str) -> bytes:
        with self._lock:
            found = self._objects.get(checked_key(key))
        if found is None:
            raise ObjectMissing(key)
        return found[0]

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        checked_prefix(prefix)
        with self._lock:
            keys = sorted(key for key in self._objects if key.startswith(prefix) and key > after)
            found = [ObjectInfo(key, len(self._objects[key][0]), self._objects[key][1]) for key in keys]
        yield from found

    def delete(self, key: str) -> None:
        with self._lock:
            self._objects.pop(checked_key(key), None)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
