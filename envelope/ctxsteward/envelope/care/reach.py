"""Which blobs something still refers to: everything that any link names, and what those blobs name in turn.

Conservative: 64 hex digits anywhere in a link's body, or in the content of a blob that is reached, count as a
reference. So no form of body has to be known, and no new one can be forgotten. A link that cannot be read may have
referred to anything: then nothing is known to be unreachable, and `Damaged` says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from ctxsteward.schemas import Erased, ObjectMissing

from ..store import Store
from ..vault import Vault
from .inventory import TenantObjects

_ADDRESS = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def addresses_in(data: bytes) -> set[str]:
    """What could be an address in these bytes."""
    return {found.decode() for found in _ADDRESS.findall(data)}


def reachable_blobs(store: Store, found: TenantObjects, tenant: str) -> set[str]:
    """Addresses of this tenant's blobs that are referred to. Raises `Damaged` where that cannot be known."""
    named = set().union(*_named_by_links(store, found.chains, tenant))
    return follow(_vault(store, tenant), named, found.blobs.keys())


def newly_reachable(
    store: Store, before: TenantObjects, now: TenantObjects, tenant: str, there: Iterable[str]
) -> set[str]:
    """Which of `there` the links that were committed between two inventories refer to."""
    folders = dict.fromkeys((*before.chains, *now.chains))  # whatever the second listing leaves out
    after = {folder: max(before.chains.get(folder, {0: None})) for folder in folders}
    named = set().union(*_named_by_links(store, folders, tenant, after))
    return follow(_vault(store, tenant), named, there)


def follow(vault: Vault, named: set[str], there: Iterable[str]) -> set[str]:
    """The named ones of `there`, and those that their content names in turn."""
    known = set(there)
    reached: set[str] = set()
    todo = named & known
    while todo:
        reached |= todo
        inside: set[str] = set()
        for address in todo:
            try:
                inside |= addresses_in(vault.get(address))
            except (Erased, ObjectMissing):
                continue  # nobody can follow what it named
        todo = (inside & known) - reached
    return reached


def _vault(store: Store, tenant: str) -> Vault:
    return Vault(store.objects, store.keys, tenant, patience=store.patience)


def _named_by_links(
    store: Store, folders: Iterable[str], tenant: str, after: dict[str, int] | None = None
) -> Iterator[set[str]]:
    for folder in folders:
        start = (after or {}).get(folder, 0) + 1
        for link in store.chain(folder, tenant=tenant).links(start):
            yield addresses_in(json.dumps(link.body).encode())
