"""Where the stores of a scenario lie, and how a machine there is opened: with crash points in between, or without.

    file      journal and objects in one folder; the journal is the durable place of sessions
    drained   a journal a machine, drained into a folder of objects
    s3        the same into a bucket

A drain has no thread here: `drainer.run_once` is called, so that the order of writes is the same in every run.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ctxsteward.envelope.store import Store
from ctxsteward.store.crypto.keyring import MasterKeys
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.journal.sqlite import FileJournal
from ctxsteward.store.objects.file import FileObjects
from ctxsteward.store.objects.port import ObjectStore, Patience
from ctxsteward.store.replication.breaker import Timing

from .buckets import Mirror, bucket
from .points import Points

KEYS = MasterKeys(b"m" * 32)
TENANT = "acme"


class Place(NamedTuple):
    """Everything that outlives a process."""

    kind: str
    folder: str
    uri: str = ""
    """Of the bucket's prefix; empty where objects lie in the folder."""

    @property
    def drains(self) -> bool:
        return self.kind != "file"

    @contextmanager
    def open(self, points: Points | None = None) -> Iterator[Machines]:
        """The machines of this place; their stores are closed at the end."""
        machines = Machines(self, points)
        try:
            yield machines
        finally:
            machines.close()

    def remove(self) -> None:
        """All that lies there: a server that holds the places of hundreds of runs answers too late."""
        shutil.rmtree(self.folder)
        if self.uri:
            objects = bucket(self.uri)
            for info in list(objects.list("")):
                objects.delete(info.key)

    def copied_to(self, other: Place) -> Place:
        """Lay the same out at another place."""
        shutil.copytree(self.folder, other.folder)
        if self.uri:
            for info in bucket(self.uri).list(""):
                bucket(other.uri).put(info.key, bucket(self.uri).get(info.key))
        return other


class Machines:
    """Stores by the name of their machine; a `file:` store has one machine."""

    def __init__(self, place: Place, points: Points | None) -> None:
        self.place, self._points = place, points
        self._mirror = Mirror(bucket(place.uri)) if place.uri else None
        self._stores: dict[str, Store] = {}

    def __call__(self, name: str = "a") -> Store:
        if name not in self._stores:
            self._stores[name] = self._open(name)
        return self._stores[name]

    @property
    def names(self) -> tuple[str, ...]:
        """Machines that there are at this place by now."""
        folders = sorted(Path(self.place.folder).glob("journal-*"))
        return tuple(folder.name.removeprefix("journal-") for folder in folders) or ("a",)

    def fresh(self) -> Store:
        """A machine that has never seen anything, with everything read in; for places that drain."""
        store = _store(MemoryJournal(drains=True), self._objects(), drains=True)
        self._stores["fresh"] = store
        assert store.write_behind is not None
        store.write_behind.all_readable(TENANT)
        return store

    def close(self) -> None:
        for store in self._stores.values():
            if store.write_behind is not None:
                store.write_behind.drainer.stop(0)
            store.journal.close()

    def _open(self, name: str) -> Store:
        root = Path(self.place.folder)
        journal: Any = FileJournal(
            root / ("store" if not self.place.drains else f"journal-{name}"),
            drains=self.place.drains,
            draw_id=lambda: name * 8,
        )
        if self._points is not None:
            journal = self._points.journal(journal)
        return _store(journal, self._objects(), drains=self.place.drains)

    def _objects(self) -> ObjectStore:
        root = Path(self.place.folder) / "store" / "objects"
        if self._mirror is not None:
            return self._mirror if self._points is None else self._points.objects(bucket(self.place.uri))
        return FileObjects(root) if self._points is None else self._points.files(root)


def _store(journal: Any, objects: ObjectStore, *, drains: bool) -> Store:
    behind = {"background": False, "timing": Timing(stuck_seconds=0.0, gather_seconds=0.0)} if drains else None
    return Store(
        journal,
        objects,
        KEYS,
        uri="test:",
        draw_nonce=lambda: "000000000",
        patience=Patience(total_seconds=5.0),
        write_behind=drains,
        behind=behind,
    )


def drain(store: Store) -> None:
    """One pass of the write-behind; nothing where there is none."""
    if store.write_behind is not None:
        store.write_behind.drainer.run_once()
