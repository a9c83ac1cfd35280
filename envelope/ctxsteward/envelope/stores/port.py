"""What a session needs from storage: an ordered journal, and envelope manifests beside it.

The journal of a session is a list of records at positions 0, 1, 2 …; appending names the position it expects to take,
so two writers never overwrite each other: the second gets `Conflict` and decides again on what it then reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..keys import AddressKey


class SessionKey(NamedTuple):
    """Which log: a tenant's session."""

    tenant: str
    session: str


class Record(NamedTuple):
    """One journal record. `wire` holds a message's JSON text, everything else is in `body`."""

    kind: str
    """opened | head | message | note | pin | compaction | refused | selection"""
    body: str
    """JSON object."""
    ordinal: int = 0
    """A message's ordinal; 0 for other records."""
    outputs: int = 0
    """Tool outputs in the session up to and including this message; 0 for other records."""
    id: str | None = None
    """The caller's idempotency key."""
    wire: str | None = None


class Journal(Protocol):
    """Ordered, durable records of one session each; every method raises `StoreError` subclasses only."""

    def append(self, key: SessionKey, position: int, records: Sequence[Record]) -> None:
        """Write all records at `position` and after, or none: `Conflict` when it is taken."""

    def length(self, key: SessionKey) -> int: ...

    def read(self, key: SessionKey, start: int, stop: int | None = None) -> list[Record]: ...

    def checkpoint(self, key: SessionKey, before: int | None = None) -> int:
        """Position of the newest compaction (below `before`); 0 where there is none."""

    def message(self, key: SessionKey, ordinal: int) -> Record | None: ...

    def position(self, key: SessionKey, ordinal: int) -> int | None:
        """Where the message with this ordinal stands."""

    def by_id(self, key: SessionKey, id: str) -> Record | None: ...

    def by_output(self, key: SessionKey, number: int) -> Record | None:
        """The message that holds the session's n-th tool output."""

    def sessions(self, tenant: str) -> list[str]: ...

    def put_manifest(self, tenant: str, address: str, body: str) -> None:
        """Keep an envelope's manifest; the same address twice is one manifest."""

    def get_manifest(self, tenant: str, address: str) -> str | None: ...

    def find(self, tenant: str, address: str) -> tuple[str, int] | None:
        """Session and position of the compaction with this address."""

    def matching(self, tenant: str, prefix: str) -> list[str]:
        """Addresses of envelopes and compactions that begin so, at most three."""

    def address_key(self, tenant: str) -> AddressKey:
        """The tenant's key, made at first use."""

    def close(self) -> None: ...
