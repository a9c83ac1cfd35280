"""A journal in memory on top of another one, for `Session.draft`. Its writes never reach the other journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ctxsteward.schemas import StoreError
from ctxsteward.schemas.errors import Conflict

from .port import DrainMark, ForgottenSubject, Journal, JournalRecord, Manifest, SessionKey

_READ_ONLY = "a draft replaces and drops nothing; call this on the store's own journal"


class DraftJournal(Journal):
    """A journal that reads `base`, the session's log only up to `position`, and keeps later appends in memory.

    After a change of generation of the session's log in `base`, an append raises `Conflict`.
    """

    def __init__(self, base: Journal, key: SessionKey, position: int) -> None:
        from .memory import MemoryJournal  # imported here because few sessions make a draft and SQLite loads slowly

        self._base, self._key, self._from = base, key, position
        self._own = MemoryJournal(draw_id=lambda: base.id)

    @property
    def id(self) -> str:
        return self._base.id

    def append(self, key: SessionKey, position: int, records: Sequence[JournalRecord], *, generation: int = 0) -> None:
        if key != self._key or position < self._from or generation != self.generation(key):
            raise Conflict(key.session, position)
        self._own.append(key, position - self._from, records)

    def length(self, key: SessionKey) -> int:
        return self._from + self._own.length(key) if key == self._key else self._base.length(key)

    def generation(self, key: SessionKey) -> int:
        return self._base.generation(key)

    def read(self, key: SessionKey, start: int, stop: int | None = None) -> list[JournalRecord]:
        if key != self._key:
            return self._base.read(key, start, stop)
        end = self.length(key) if stop is None else stop
        below = self._base.read(key, start, min(end, self._from)) if start < self._from else []
        return [*below, *self._own.read(key, max(0, start - self._from), max(0, end - self._from))]

    def checkpoint(self, key: SessionKey, before: int | None = None) -> int:
        if key != self._key:
            return self._base.checkpoint(key, before)
        return self._base.checkpoint(key, self._from if before is None else min(before, self._from))

    def message(self, key: SessionKey, ordinal: int) -> JournalRecord | None:
        return self._own.message(key, ordinal) or (
            self._base.message(key, ordinal) if self._sees(key, ordinal) else None
        )

    def position(self, key: SessionKey, ordinal: int) -> int | None:
        own = self._own.position(key, ordinal)
        if own is not None:
            return own + self._from
        return self._base.position(key, ordinal) if self._sees(key, ordinal) else None

    def by_id(self, key: SessionKey, id: str) -> JournalRecord | None:
        own = self._own.by_id(key, id)
        below = None if own is not None else self._base.by_id(key, id)
        return below if below is not None and self._sees(key, below.ordinal) else own

    def by_output(self, key: SessionKey, number: int) -> JournalRecord | None:
        below = self._base.by_output(key, number)
        return below if below is not None and self._sees(key, below.ordinal) else self._own.by_output(key, number)

    def _sees(self, key: SessionKey, ordinal: int) -> bool:
        """Return whether this message was in the base when the draft was made."""
        if key != self._key:
            return True
        position = self._base.position(key, ordinal)
        return position is not None and position < self._from

    # -- a draft reads the rest of its base, and writes nothing to it

    def put_manifest(self, key: SessionKey, address: str, body: str, *, generation: int | None = None) -> None:
        """Do nothing: nobody looks up envelopes of a draft by their address."""

    def scrub(self) -> None:
        """Do nothing: a draft has no file."""

    def close(self) -> None:
        """Do nothing: the owner of the base closes it."""

    def rewrite(self, key: SessionKey, records: Mapping[int, JournalRecord]) -> None:
        raise StoreError(_READ_ONLY)

    def truncate(self, key: SessionKey, length: int) -> None:
        raise StoreError(_READ_ONLY)

    def drop_manifests(self, key: SessionKey, instead: Sequence[Manifest] = ()) -> None:
        raise StoreError(_READ_ONLY)

    def sessions(self, tenant: str) -> list[str]:
        return self._base.sessions(tenant)

    def tenants(self) -> list[str]:
        return self._base.tenants()

    def get_manifest(self, tenant: str, address: str) -> str | None:
        return self._base.get_manifest(tenant, address)

    def manifests(self, key: SessionKey, *, waiting: bool = False, limit: int | None = None) -> list[Manifest]:
        return self._base.manifests(key, waiting=waiting, limit=limit)

    def find(self, tenant: str, address: str) -> tuple[str, int] | None:
        return self._base.find(tenant, address)

    def matching(self, tenant: str, prefix: str) -> list[str]:
        return self._base.matching(tenant, prefix)

    def drained(self, key: SessionKey) -> DrainMark:
        return self._base.drained(key)

    # -- beside the logs

    def seen(self, name: str) -> int:
        return max(self._own.seen(name), self._base.seen(name))

    def see(self, name: str, number: int) -> None:
        self._own.see(name, number)

    def forget(self, tenant: str, forgotten: ForgottenSubject) -> None:
        self._own.forget(tenant, forgotten)

    def forgotten(self, tenant: str, session: str | None = None) -> list[ForgottenSubject]:
        subjects = {(subject.session, subject.principal): subject for subject in self._own.forgotten(tenant, session)}
        subjects |= {(subject.session, subject.principal): subject for subject in self._base.forgotten(tenant, session)}
        return list(subjects.values())
