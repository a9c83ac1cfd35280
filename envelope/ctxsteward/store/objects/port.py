"""The port `ObjectStore`, and the commit of one object (`put_once`). A put has three outcomes, not two.

Keys are slash-separated names that `names` has encoded: printable ASCII, no empty, ``.`` or ``..`` parts. Bodies are
bytes. No key is a folder of another key (``a`` and ``a/b``), because a file system cannot have both. A put is one
attempt and never overwrites. If it does not know whether it wrote, it returns `unknown`, which is not an error.

A conditional write that landed but lost its reply returns *conflicted* when it is sent again; a write that timed out
may land later. So `put_once` sends the same bytes until the key is occupied, reads the object back and compares commit
ids. (After an unanswered write it sends again before it reads back, because the object may be visible but not durable.)
If the outcome is still unknown when patience ends, it raises `OutcomeUnknown`: do not clean up; a repeat with the same
commit id is safe. The clock only decides when patience ends.

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
unknown: after a timeout, reset, 409, 5xx or cancellation the object may have landed, may land later, or never."""


class ObjectInfo(NamedTuple):
    """The entry of an object in a listing."""

    key: str
    size_bytes: int
    modified_seconds: float
    """Unix time by the store's clock; use it only for the grace period of garbage collection."""


class Leftover(NamedTuple):
    """A temporary file of an unfinished put, which may still be running."""

    path: Path
    size_bytes: int
    age_seconds: float


def list_twice(objects: ObjectStore, folder: str) -> list[str]:
    """Return the keys below a folder (with its slash) from two different listing requests, because one listing may
    omit keys."""
    again = (info.key for info in objects.list(folder[:-1]) if info.key.startswith(folder))
    return sorted({*(info.key for info in objects.list(folder)), *again})


def folders_in(objects: ObjectStore, folder: str) -> Iterator[str]:
    """Yield the names of the folders directly in a folder (with its slash), in byte order; one request each."""
    after = ""
    while (found := next(iter(objects.list(folder, after=after)), None)) is not None:
        name = found.key[len(folder) :].partition("/")[0]
        after = f"{folder}{name}/~"
        yield name


def is_there(objects: ObjectStore, key: str) -> bool:
    """Return whether an object of this name can be read; listings are not trusted."""
    try:
        objects.get(key)
    except ObjectMissing:
        return False
    return True


class ObjectStore(Protocol):
    """Objects by key. An object store inherits from this class; the last three methods have a default.

    Every method is safe with threads and raises only `StoreError` subclasses.
    """

    @property
    def uri(self) -> str: ...

    def put(self, key: str, body: bytes) -> PutOutcome:
        """Create the object if the key is free; one attempt. Raises `StoreUnavailable` only if the object certainly
        did not land and a repeat cannot help (no bucket, no permission, disk full)."""

    def get(self, key: str) -> bytes:
        """Return the object's bytes. Raises `ObjectMissing`, `StoreUnavailable`."""

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        """Yield objects whose keys begin with `prefix` and sort after `after`, in byte order of their keys."""

    def delete(self, key: str) -> None:
        """Remove the object and all its versions; a missing object is no error. Only for `gc` and `forget`."""

    def close(self) -> None: ...

    def make_durable(self, key: str) -> None:
        """Make an object that was read outlive a power cut, because its writer may have died before it did so. Nothing
        to do in a store whose objects are visible only once they are durable. Raises `StoreUnavailable`."""
        del key

    def temporaries(self) -> Iterator[Leftover]:
        """Yield the temporary files of unfinished puts, in no order. A store without such files yields none."""
        return iter(())

    def sweep(self, older_than_seconds: float) -> int:
        """Remove temporary files of at least this age and return their number."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Duration and pauses of a commit's attempts."""

    total_seconds: float = 20.0
    first_pause_seconds: float = 0.05
    longest_pause_seconds: float = 2.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    jitter: Callable[[], float] = random.SystemRandom().random
    """Random number from 0 to 1 that spreads colliding writers; does not use the application's own `random`."""

    def within(self, total_seconds: float) -> Patience:
        return replace(self, total_seconds=total_seconds)


class PutResult(NamedTuple):
    """The result of `put_once`."""

    is_ours: bool
    """Whether our object is stored; else the key has another writer's object for good."""
    found: bytes | None = None
    """The stored bytes if they were read back: another writer's, or those of our earlier attempt."""


def put_once(
    objects: ObjectStore, key: str, body: bytes, *, commit_id: str, mine: Callable[[bytes], bool], patience: Patience
) -> PutResult:
    """Create `key` with `body` at most once, with repeated attempts; `mine` recognizes our own stored bytes.

    Raises `OutcomeUnknown` with the `commit_id` if the outcome stays unknown, and `StoreUnavailable` only if nothing of
    this call can have landed.
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
        may_have_landed = True  # also after a conflict: until it is read back, the stored object may be ours
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
    except StoreError:  # missing or no answer: in both cases the outcome is still unknown
        return None
