"""Object stores in memory that tests watch, hold up, kill, or let lie; copies of stores that took long to fill."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ctxsteward.envelope import Store
from ctxsteward.evals.suites.kit.faulty_objects import SimulatedClock
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.objects.port import ObjectInfo, ObjectStore, Patience, PutOutcome


class HookedObjects(MemoryObjects):
    """Passes every request by `ask` first, which may note it, wait or raise."""

    def ask(self, method: str, key: str) -> None:
        raise NotImplementedError

    def put(self, key: str, body: bytes) -> PutOutcome:
        self.ask("put", key)
        return super().put(key, body)

    def get(self, key: str) -> bytes:
        self.ask("get", key)
        return super().get(key)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        self.ask("list", prefix)
        return super().list(prefix, after=after)

    def delete(self, key: str) -> None:
        self.ask("delete", key)
        super().delete(key)


class LyingObjects(MemoryObjects):
    """Listings leave things out, and say nothing of it: `hides` decides, listing by listing, which keys.

    What is asked for by name is always there.
    """

    def __init__(self, of: MemoryObjects, hides: Callable[[str], bool], *, from_listing: int = 1) -> None:
        super().__init__()
        self._objects, self._now = of._objects, of._now
        self.hides, self.from_listing, self.listings = hides, from_listing, 0

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        self.listings += 1
        lies = self.listings >= self.from_listing
        yield from (info for info in super().list(prefix, after=after) if not (lies and self.hides(info.key)))


def stored(objects: ObjectStore) -> dict[str, bytes]:
    """All objects by key."""
    return {info.key: objects.get(info.key) for info in objects.list("")}


def holding(content: Mapping[str, bytes]) -> MemoryObjects:
    """A store of these objects."""
    objects = MemoryObjects()
    for key, body in content.items():
        objects.put(key, body)
    return objects


def simulated_patience(total_seconds: float) -> Patience:
    """On a clock of its own: only pauses take time."""
    clock = SimulatedClock()
    return Patience(total_seconds=total_seconds, clock=clock, sleep=clock.sleep, jitter=lambda: 0.5)


def copied(objects: MemoryObjects) -> MemoryObjects:
    """Another store that begins with the same objects."""
    copy = MemoryObjects()
    copy._objects = dict(objects._objects)
    return copy


def copied_journal(journal: MemoryJournal) -> MemoryJournal:
    """Another journal with the same name and rows."""
    copy = MemoryJournal(journal._drains, draw_id=lambda: journal.id)
    journal._db.backup(copy._db)
    copy._writer.reread(copy._db)
    return copy


def copied_store(store: Store) -> Store:
    """Another `memory:` store with the same content."""
    assert isinstance(store.journal, MemoryJournal)
    assert isinstance(store.objects, MemoryObjects)
    return Store(copied_journal(store.journal), copied(store.objects), store.keys, uri=store.uri)
