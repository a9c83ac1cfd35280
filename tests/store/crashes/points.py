"""Labelled crash points: a process dies before or after the n-th write of a kind, and nobody has asked the product.

    points = Points()                        # a dry run: notes every label that is passed
    points = Points("journal.append 3 before")
    Store(points.journal(journal), points.objects(objects), …)

Every write of the journal's port, every put and delete of the object store's, and every call that a `file:` object
store makes to its disk is a point; a write to a file has one more, in its middle. Reads are none: a process that dies
before one leaves what it leaves when it dies after the write before. So the labels of a dry run are all there are.

SIGKILL's exit, 137, by `os._exit`: no `finally`, no `close`, no flush.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from ctxsteward.store.journal.port import Journal
from ctxsteward.store.objects.file import FileObjects
from ctxsteward.store.objects.port import Leftover, ObjectInfo, ObjectStore, PutOutcome

KILLED = 137
JOURNAL_WRITES = frozenset(
    {
        "append",
        "put_manifest",
        "rewrite",
        "truncate",
        "drop_manifests",
        "adopt",
        "scrub",
        "set_drained",
        "see",
        "forget",
    }
)
_DISK_WRITES = ("open", "fsync", "close", "link", "unlink", "mkdir")

T = TypeVar("T")


class Points:
    """Counts writes by kind, and ends the process at the label it is given."""

    def __init__(self, stop: str | None = None) -> None:
        self.labels: list[str] = []
        self._stop = stop
        self._counts: Counter[str] = Counter()

    def around(self, kind: str, act: Callable[[], T]) -> T:
        """Do it, with a point before and one after."""
        number = self._next(kind)
        self._pass(f"{kind} {number} before")
        done = act()
        self._pass(f"{kind} {number} after")
        return done

    def write(self, descriptor: int, data: memoryview) -> int:
        """A write to a file: half of it may be all that gets there."""
        number = self._next("disk.write")
        for label in ("before", "torn"):
            self._pass(f"disk.write {number} {label}", lambda: os.write(descriptor, data[: len(data) // 2]))
        written = os.write(descriptor, data)
        self._pass(f"disk.write {number} after")
        return written

    def _next(self, kind: str) -> int:
        self._counts[kind] += 1
        return self._counts[kind]

    def _pass(self, label: str, torn: Callable[[], object] = lambda: None) -> None:
        self.labels.append(label)
        if label == self._stop:
            if label.endswith(" torn"):
                torn()
            os._exit(KILLED)

    # -- what is wrapped ----------------------------------------------------------------------------------------

    def journal(self, journal: Journal) -> Any:
        return _Journal(self, journal)

    def objects(self, objects: ObjectStore) -> ObjectStore:
        return _Objects(self, objects)

    def files(self, root: Path) -> ObjectStore:
        """A `file:` store whose disk has points, too."""
        return _Files(self, FileObjects(root, disk=_Disk(self)))


class _Journal:
    """Everything but the writes goes straight through."""

    def __init__(self, points: Points, journal: Journal) -> None:
        self._points, self._journal = points, journal

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._journal, name)
        if name not in JOURNAL_WRITES:
            return found
        return lambda *given, **named: self._points.around(f"journal.{name}", lambda: found(*given, **named))


class _Objects(ObjectStore):
    def __init__(self, points: Points, objects: ObjectStore) -> None:
        self._points, self._objects = points, objects

    @property
    def uri(self) -> str:
        return self._objects.uri

    def put(self, key: str, body: bytes) -> PutOutcome:
        return self._points.around("objects.put", lambda: self._objects.put(key, body))

    def get(self, key: str) -> bytes:
        return self._objects.get(key)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        return self._objects.list(prefix, after=after)

    def delete(self, key: str) -> None:
        self._points.around("objects.delete", lambda: self._objects.delete(key))

    def close(self) -> None:
        self._objects.close()


class _Files(_Objects):
    def __init__(self, points: Points, files: FileObjects) -> None:
        super().__init__(points, files)
        self._files = files

    def temporaries(self) -> Iterator[Leftover]:
        return self._files.temporaries()

    def sweep(self, older_than_seconds: float) -> int:
        return self._points.around("objects.sweep", lambda: self._files.sweep(older_than_seconds))


class _Disk:
    """An `create_once.Disk`."""

    def __init__(self, points: Points) -> None:
        self._points = points

    def __getattr__(self, name: str) -> Any:
        assert name in _DISK_WRITES, name
        act = getattr(os, name)
        return lambda *given, **named: self._points.around(f"disk.{name}", lambda: act(*given, **named))

    def write(self, descriptor: int, data: memoryview, /) -> int:
        return self._points.write(descriptor, data)
