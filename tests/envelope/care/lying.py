"""A double: an object store whose listings leave things out, and say nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.objects.port import ObjectInfo


class LyingObjects(MemoryObjects):
    """`hides` decides, listing by listing, which keys are not shown; what is asked for by name is always there."""

    def __init__(self, of: MemoryObjects, hides: Callable[[str], bool], *, from_listing: int = 1) -> None:
        super().__init__()
        self._objects, self._now = of._objects, of._now
        self.hides, self.from_listing, self.listings = hides, from_listing, 0

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        self.listings += 1
        lies = self.listings >= self.from_listing
        yield from (info for info in super().list(prefix, after=after) if not (lies and self.hides(info.key)))
