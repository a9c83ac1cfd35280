"""What governed state needs from an object store: create once, read, list; delete for garbage and erasure alone.

Keys are slash-separated names that `names` has encoded: printable ASCII, no empty, ``.`` or ``..`` parts. Bodies are
bytes. No key is a folder of another key (``a`` beside ``a/b``): a file system could not hold both. A put never
overwrites and is one attempt; what it cannot know it says: `unknown` is an answer, not an error.

Source: conditional writes as object stores offer them (``If-None-Match: *``; on a POSIX file system ``link``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, Protocol

PutOutcome = Literal["committed", "conflicted", "unknown"]
"""committed: this put created the object. conflicted: the key is occupied, possibly by an earlier attempt of ours.
unknown: timeout, reset, 409, 5xx, cancellation: it may have landed, may land later, or never."""


class ObjectInfo(NamedTuple):
    """An object as a listing shows it."""

    key: str
    size_bytes: int
    modified_seconds: float
    """Unix time by the store's clock; for the grace period of garbage collection, nothing else."""


def list_twice(objects: ObjectStore, folder: str) -> list[str]:
    """Keys below a folder (with its slash), as two listings show them that are asked for in different words: one of
    them may leave something out."""
    again = (info.key for info in objects.list(folder[:-1]) if info.key.startswith(folder))
    return sorted({*(info.key for info in objects.list(folder)), *again})


class ObjectStore(Protocol):
    """Every method is safe with threads and raises `StoreError` subclasses only."""

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
