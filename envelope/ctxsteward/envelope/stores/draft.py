"""A journal in memory on top of another one: what is written here stays here."""

from __future__ import annotations

from collections.abc import Sequence

from ctxsteward.schemas import Conflict

from ..keys import AddressKey
from .memory import MemoryJournal
from .port import Journal, Record, SessionKey


class DraftJournal:
    """Reads one session through to `base` up to `position`, keeps what is appended after it to itself."""

    def __init__(self, base: Journal, key: SessionKey, position: int) -> None:
        self._base, self._key, self._from = base, key, position
        self._own = MemoryJournal()

    def append(self, key: SessionKey, position: int, records: Sequence[Record]) -> None:
        if key != self._key or position < self._from:
            raise Conflict(key.session, position)
        self._own.append(key, position - self._from, records)

    def length(self, key: SessionKey) -> int:
        return self._from + self._own.length(key) if key == self._key else self._base.length(key)

    def read(self, key: SessionKey, start: int, stop: int | None = None) -> list[Record]:
        if key != self._key:
            return self._base.read(key, start, stop)
        end = self.length(key) if stop is None else stop
        below = self._base.read(key, start, min(end, self._from)) if start < self._from else []
        return [*below, *self._own.read(key, max(0, start - self._from), max(0, end - self._from))]

    def checkpoint(self, key: SessionKey, before: int | None = None) -> int:
        return self._base.checkpoint(key, self._from if before is None else min(before, self._from))

    def message(self, key: SessionKey, ordinal: int) -> Record | None:
        return self._own.message(key, ordinal) or (
            self._base.message(key, ordinal) if self._sees(key, ordinal) else None
        )

    def position(self, key: SessionKey, ordinal: int) -> int | None:
        own = self._own.position(key, ordinal)
        return self._base.position(key, ordinal) if own is None else own + self._from

    def by_id(self, key: SessionKey, id: str) -> Record | None:
        own = self._own.by_id(key, id)
        below = None if own is not None else self._base.by_id(key, id)
        return below if below is not None and self._sees(key, below.ordinal) else own

    def by_output(self, key: SessionKey, number: int) -> Record | None:
        below = self._base.by_output(key, number)
        return below if below is not None and self._sees(key, below.ordinal) else self._own.by_output(key, number)

    def _sees(self, key: SessionKey, ordinal: int) -> bool:
        """Whether a message of the base stood there when the draft was made."""
        position = self._base.position(key, ordinal)
        return key != self._key or (position is not None and position < self._from)

    def sessions(self, tenant: str) -> list[str]:
        return self._base.sessions(tenant)

    def put_manifest(self, tenant: str, address: str, body: str) -> None:
        """A draft keeps no manifest."""

    def get_manifest(self, tenant: str, address: str) -> str | None:
        return self._base.get_manifest(tenant, address)

    def find(self, tenant: str, address: str) -> tuple[str, int] | None:
        return self._base.find(tenant, address)

    def matching(self, tenant: str, prefix: str) -> list[str]:
        return self._base.matching(tenant, prefix)

    def address_key(self, tenant: str) -> AddressKey:
        return self._base.address_key(tenant)

    def close(self) -> None:
        """The base stays open: it is somebody else's."""
