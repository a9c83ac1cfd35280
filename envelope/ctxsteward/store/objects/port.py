"""What the store needs from an object store, and how one object is committed to it: three outcomes, never two.

Keys are slash-separated names that `names` has encoded: printable ASCII, no empty, ``.`` or ``..`` parts. Bodies are
bytes. No key is a folder of another key (``a`` beside ``a/b``): a file system could not hold both. A put never
overwrites and is one attempt; what it cannot know it says: `unknown` is an answer, not an error.

A conditional write whose reply is lost comes back as *conflicted* when it is sent again, although it landed; one that
timed out may land later. So `put_once` sends the same bytes until the key is seen occupied, reads back what stands
there and compares commit ids. (What an unanswered write left is not read back before it has been sent again: it may be
visible and not yet durable.) What is still not known when patience ends is `OutcomeUnknown`: it may not be cleaned up,
and repeating it with the same commit id is safe. The clock decides nothing but when patience ends.

Source: RFC 9110 §13.1.2 (If-None-Match; on a POSIX file system ``link``); the commit protocol of the state design.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from ctxsteward.schemas import StoreError, StoreUnavailable
from ctxsteward.schemas.errors import ObjectMissing, OutcomeUnknown

PutOutcome = Literal["committed", "conflicted", "unknown"]
"""committed: this put created the object. conflicted: the key is occupied, possibly by an earlier attempt of ours.
unknown: timeout, reset, 409, 5xx, cancellation: it may have landed, may land later, or never."""


class ObjectInfo(NamedTuple):
    """An object as a listing shows it."""

    key: str
    size_bytes: int
    modified_seconds: float
    """Unix time by the store's clock; for the grace period of garbage collection, nothing else."""


class Leftover(NamedTuple):
    """A temporary file of a put that did not finish, or has not finished yet."""

    path: Path
    size_bytes: int
    age_seconds: float


def list_twice(objects: ObjectStore, folder: str) -> list[str]:
    """Keys below a folder (with its slash), as two listings show them that are asked for in different words: one of
    them may leave something out."""
    again = (info.key for info in objects.list(folder[:-1]) if info.key.startswith(folder))
    return sorted({*(info.key for info in objects.list(folder)), *again})


def folders_in(objects: ObjectStore, folder: str) -> Iterator[str]:
    """Names of the folders right below a folder (with its slash), in byte order of their keys; one request each."""
    after = ""
    while (found := next(iter(objects.list(folder, after=after)), None)) is not None:
        name = found.key[len(folder) :].partition("/")[0]
        after = f"{folder}{name}/~"
        yield name


def is_there(objects: ObjectStore, key: str) -> bool:
    """Whether there is an object of this name, whatever a listing says."""
    try:
        objects.get(key)
    except ObjectMissing:
        return False
    return True


class ObjectStore(Protocol):
    """Objects by key. An object store inherits from this class; the last two methods have a default.

    Every method is safe with threads and raises `StoreError` subclasses only.
    """

    @property
    def uri(self) -> str: ...

    def put(self, key: str, body: bytes) -> PutOutcome:
        """Create the object if the key is free; one attempt. Raises `StoreUnavailable` only where it certainly did
        not land and trying again cannot help (no bucket, no permission, disk full)."""

    def get(self, key: str) -> bytes:
        """The whole object. Raises `ObjectMissing`, `StoreUnavailable`."""

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        """Objects whose keys begin with `prefix` and sort after `after`, in byte order of their keys."""

    def delete(self, key: str) -> None:
        """Remove the object and every version of it; a missing one is fine. For `gc` and `forget` alone."""

    def close(self) -> None: ...

    def temporaries(self) -> Iterator[Leftover]:
        """Yield what unfinished puts have left behind, in no order; nothing where none leaves anything."""
        return iter(())

    def sweep(self, older_than_seconds: float) -> int:
        """Remove what unfinished puts of at least this age have left behind; return how many there were."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long, and how, a commit goes on asking."""

    total_seconds: float = 20.0
    first_pause_seconds: float = 0.05
    longest_pause_seconds: float = 2.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    jitter: Callable[[], float] = random.SystemRandom().random
    """0 to 1; keeps writers that collided once from colliding again. The application's own `random` is left alone."""

    def within(self, total_seconds: float) -> Patience:
        return replace(self, total_seconds=total_seconds)


class PutResult(NamedTuple):
    """What became of an object that was to be put."""

    is_ours: bool
    """Else somebody else's is there, and ours never will be."""
    found: bytes | None = None
    """What stands under the key where it was read back: somebody else's, or an earlier try of ours."""


def put_once(
    objects: ObjectStore, key: str, body: bytes, *, commit_id: str, mine: Callable[[bytes], bool], patience: Patience
) -> PutResult:
    """Create `key` with `body`, at most once, however often it takes; `mine` knows our own commit again.

    Raises `OutcomeUnknown`, with the `commit_id`, where the store cannot tell us now; `StoreUnavailable` only where
    nothing of this call can have landed.
    """
    started, pause, may_have_landed = patience.clock(), patience.first_pause_seconds, False
    while True:
        try:
            outcome = objects.put(key, body)
        except StoreUnavailable:
            if not may_have_landed:
                raise
            outcome = "unknown"
        if outcome == "committed":
            return PutResult(True)
        may_have_landed = True  # also where it conflicted: until it is read back, it may be ours that stands there
        waited = patience.clock() - started
        if outcome == "conflicted" or waited >= patience.total_seconds:
            standing = _read_back(objects, key)
            if standing is not None:
                return PutResult(mine(standing), standing)
        if waited >= patience.total_seconds:
            raise OutcomeUnknown(key, commit_id, waited)
        patience.sleep(min(pause * (0.5 + patience.jitter()), patience.longest_pause_seconds))
        pause *= 2


def _read_back(objects: ObjectStore, key: str) -> bytes | None:
    try:
        return objects.get(key)
    except StoreError:  # missing, or the store does not answer: either way it is not known yet
        return None
