"""Withdrawing recommendations that rest on nothing any more.

Where it is known what stands behind a recommendation (`supports`), it goes as soon as fewer are left than its gate
asks for, and stays as long as enough are, whatever became of the originals that it shows pointers to. Else those are
what it rests on (``s-42§128``): it goes when none of them is left. Its data key is destroyed (`slices`): text and
rendered lines go from every version at once. What is left is asked of the tombstones and of the local journal; an
original of a session that only another machine holds counts as left until that session is forgotten.

Costs a read of every version, of every record in them, and of the links that tell supports. Raises what `Vault` and
`Chain` raise.
Source: the state design (a recommendation is withdrawn when its support falls below its gate).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import filterfalse
from typing import TYPE_CHECKING, Any

from ctxsteward.schemas import Erased, ObjectMissing

from .keys import subject_of
from .objects.names import data_key_name, number_of, numbered, part_of
from .objects.port import list_twice
from .slices import references
from .stores.port import SessionKey, Witness
from .supports import newest_supports
from .vault import Vault

if TYPE_CHECKING:
    from .store import Store


def withdraw_unsupported(store: Store, tenant: str, *, who: str, when: str, why: str) -> int:
    """Destroy the keys of recommendations without enough behind them; how many there were."""
    vault, withdrawn = store.vault(tenant), 0
    left = _Left(store, vault, tenant)
    chains = _chains(store, tenant)
    supports = newest_supports(store, tenant, list(filter(_tells_supports, chains)))
    buried = frozenset(vault.buried()) if supports else frozenset[str]()
    for key, sources in _recommendations(store, vault, tenant, chains):
        support = supports.get(key)
        if support.falls(buried) if support else sources and not any(map(left, sources)):
            vault.bury_address(key, who=who, when=when, why=why)
            withdrawn += 1
    return withdrawn


def withdrawn_keys(store: Store, tenant: str) -> frozenset[str]:
    """Addresses of the subjects of records that were withdrawn; costs a reading of all links."""
    folders = filterfalse(_tells_supports, _chains(store, tenant))
    links = (link for folder in folders for link in store.chain(folder, tenant=tenant).links())
    keys = {kept.key for link in links for kept in references(link.body)}
    return frozenset(keys.intersection(store.vault(tenant).buried())) if keys else frozenset()


def _recommendations(store: Store, vault: Vault, tenant: str, chains: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Key and sources of every recommendation, once each."""
    seen: set[str] = set()
    for folder in filterfalse(_tells_supports, chains):
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


def _tells_supports(folder: str) -> bool:
    return folder.startswith("steward/") and folder.endswith("/nights")


def _chains(store: Store, tenant: str) -> list[str]:
    """Folders of the tenant's profile versions and snapshots, of what waits for a review, and of supports."""
    found: dict[str, None] = {}
    for prefix in (f"profiles/{part_of(tenant)}/", f"snapshots/{part_of(tenant)}/", f"steward/{part_of(tenant)}/"):
        for key in (*list_twice(store.objects, prefix), *_seen(store, prefix)):
            folder = key.rpartition("/")[0]
            if number_of(key) is not None and (
                prefix[:7] != "steward" or folder.endswith("/reviews") or _tells_supports(folder)
            ):
                found[folder] = None
    return list(found)


def _seen(store: Store, prefix: str) -> Iterator[str]:
    """Links that the journal has seen, whatever a listing says."""
    if isinstance(store.journal, Witness):
        for name, number in store.journal.witnessed().items():
            if name.startswith(prefix):
                yield numbered(name, number)


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
