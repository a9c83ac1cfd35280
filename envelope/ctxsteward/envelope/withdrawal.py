"""Withdrawing recommendations that rest on nothing any more.

A recommendation in a profile's versions and snapshots points to the originals it was made from (``s-42§128``). When
none of them is left, its data key is destroyed (`slices`): text and rendered lines go from every version at once.
Whether one is left is asked of the tombstones and of the local journal; an original of a session that only another
machine holds counts as left until that session is forgotten.

Costs a read of every version and of every record in them. Raises what `Vault` and `Chain` raise.
Source: the state design (a recommendation is withdrawn when its support falls below its gate).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ctxsteward.schemas import Erased, ObjectMissing

from .keys import subject_of
from .objects.names import data_key_name, number_of, part_of
from .slices import references
from .stores.port import SessionKey
from .vault import Vault

if TYPE_CHECKING:
    from .store import Store


def withdraw_unsupported(store: Store, tenant: str, *, who: str, when: str, why: str) -> int:
    """Destroy the keys of recommendations without a source left; how many there were."""
    vault, withdrawn = store.vault(tenant), 0
    left = _Left(store, vault, tenant)
    for key, sources in _supports(store, vault, tenant):
        if sources and not any(map(left, sources)):
            vault.bury_address(key, who=who, when=when, why=why)
            withdrawn += 1
    return withdrawn


def _supports(store: Store, vault: Vault, tenant: str) -> Iterator[tuple[str, list[str]]]:
    """Key and sources of every recommendation, once each."""
    seen: set[str] = set()
    for folder in _chains(store, tenant):
        for link in store.chain(folder, tenant=tenant).links():
            for kept in references(link.body):
                if kept.blob not in seen:
                    seen.add(kept.blob)
                    try:
                        sources = _sources(vault, kept.blob)
                    except Erased:
                        _finish(vault, kept.key)
                        continue
                    if sources is not None:
                        yield kept.key, sources


def _finish(vault: Vault, key: str) -> None:
    """Destroy a key that a burial has left, because it was cut off behind its tombstone."""
    name = data_key_name(vault.tenant, key)
    with suppress(ObjectMissing):
        vault.objects.get(name)
        vault.objects.delete(name)


def _chains(store: Store, tenant: str) -> list[str]:
    """Folders of the tenant's profile versions and snapshots."""
    found: dict[str, None] = {}
    for prefix in (f"profiles/{part_of(tenant)}/", f"snapshots/{part_of(tenant)}/"):
        for info in store.objects.list(prefix):
            if number_of(info.key) is not None:
                found[info.key.rpartition("/")[0]] = None
    return list(found)


def _sources(vault: Vault, address: str) -> list[str] | None:
    """Pointers of the record with this address; None for what is no record, or is gone. Raises `Erased`."""
    try:
        document: Any = json.loads(vault.get(address))
    except (ObjectMissing, ValueError, RecursionError):
        return None
    sources = document.get("sources") if isinstance(document, dict) else None
    return [str(pointer) for pointer in sources] if isinstance(sources, list) else None


class _Left:
    """Whether the original that a pointer names is still there."""

    def __init__(self, store: Store, vault: Vault, tenant: str) -> None:
        self._store, self._vault, self._tenant = store, vault, tenant
        self._gone: dict[str, bool] = {}

    def __call__(self, pointer: str) -> bool:
        session, _, place = pointer.rpartition("§")
        if not session:
            return True
        if session not in self._gone:
            name = self._vault.subject_address(subject_of(session, None))
            self._gone[session] = self._vault.tombstone(name) is not None
        ordinal = place.partition(".")[0]
        return not self._gone[session] and not (ordinal.isdecimal() and self._is_erased(session, int(ordinal)))

    def _is_erased(self, session: str, ordinal: int) -> bool:
        record = self._store.journal.message(SessionKey(self._tenant, session), ordinal)
        try:
            return record is not None and json.loads(record.body).get("erased") is True
        except (ValueError, AttributeError, RecursionError):
            return False
