"""Forgetting, as facts see it: a fact leaves with anything it rests on, and with the one it is about.

    withdraw_facts      after sessions or principals were buried: facts whose link names one of them
    forget_audience     everything known about one user or session, whatever it rests on

Costs a listing of tombstones and a reading of all fact links of the tenant; no fact is read. Destroying a fact's key
takes it from every link and every envelope. Raises what `Vault` and `Chain` raise.
Source: the state design (erasure); NIST SP 800-88.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ctxsteward.schemas import ObjectMissing

from ..objects.names import data_key_name, part_of
from ..vault import Vault
from .fact import Audience
from .form import records_of
from .shelf import FactShelves

if TYPE_CHECKING:
    from ..store import Store


def withdraw_facts(store: Store, tenant: str, *, who: str, when: str, why: str) -> int:
    """Destroy the keys of facts that rest on a forgotten subject; how many there were."""
    vault, withdrawn = store.vault(tenant), 0
    shelves = list(_shelves(store, tenant))
    if not shelves:
        return 0
    buried = frozenset(vault.buried())
    keys: dict[str, bool] = {}
    for shelf in shelves:
        for folder in shelf.folders():
            for link in shelf.links(folder):
                for record in records_of(link, folder):
                    keys[record["key"]] = keys.get(record["key"], False) or not buried.isdisjoint(record["rests"])
    for key, rests_on_buried in keys.items():
        if key in buried:
            _finish(vault, key)
        elif rests_on_buried:
            vault.bury_address(key, who=who, when=when, why=why)
            withdrawn += 1
    store.fact_lookup.drop()
    return withdrawn


def forget_audience(store: Store, tenant: str, audience: Audience, *, who: str, when: str, why: str) -> int:
    """Destroy all that is known about this audience, in every profile; how many facts there were."""
    vault, forgotten = store.vault(tenant), 0
    for shelf in _shelves(store, tenant):
        folder = shelf.folder(audience)
        keys = {record["key"] for link in shelf.links(folder) for record in records_of(link, folder)}
        for key in sorted(keys):
            forgotten += vault.tombstone(key) is None
            vault.bury_address(key, who=who, when=when, why=why)
    store.fact_lookup.drop()
    return forgotten


def has_shelf(store: Store, tenant: str, audience: Audience) -> bool:
    """Whether anything was ever known about this audience, in any profile."""
    return any(next(shelf.links(shelf.folder(audience)), None) is not None for shelf in _shelves(store, tenant))


def _shelves(store: Store, tenant: str) -> Iterator[FactShelves]:
    """Of every profile that has facts."""
    folder, after = f"facts/{part_of(tenant)}/", ""
    while (found := next(iter(store.objects.list(folder, after=after)), None)) is not None:
        name = found.key[len(folder) :].partition("/")[0]
        after = f"{folder}{name}/~"
        yield FactShelves(store, unquote(name), tenant)


def _finish(vault: Vault, key: str) -> None:
    """Destroy a key that a burial has left, because it was cut off behind its tombstone."""
    name = data_key_name(vault.tenant, key)
    with suppress(ObjectMissing):
        vault.objects.get(name)
        vault.objects.delete(name)
