"""Whose words the steward keeps of which session: sessions that no journal has can be forgotten, too.

A harvest artifact is a blob under the subject of its session; where several people are in it, its first line names the
addresses of the further subjects whose keys it needs. Batches of the steward name all artifacts:

    steward/<tenant>/<profile>/batches/<batch>/   chain of {…, "artifacts": [address of a blob]}

Costs a listing and a read of every artifact of the tenant. Raises what `Vault` and `Chain` raise.
Source: the state design (a subject is one principal in one session).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ctxsteward.schemas import Erased, ObjectMissing

from .objects.names import number_of, part_of
from .vault import session_of

if TYPE_CHECKING:
    from .store import Store


def harvested(store: Store, tenant: str) -> dict[str, set[str]]:
    """By session, the addresses of all subjects whose keys open something that was harvested from it."""
    vault, found = store.vault(tenant), dict[str, set[str]]()
    for address in dict.fromkeys(_artifacts(store, tenant)):
        try:
            entry = vault.entry(address)
        except (Erased, ObjectMissing):
            continue
        further = entry.data.partition(b"\n")[0].decode(errors="replace")
        names = found.setdefault(session_of(entry.subject), set())
        names |= {vault.subject_address(entry.subject), *filter(None, further.split(","))}
    return found


def _artifacts(store: Store, tenant: str) -> Iterator[str]:
    for info in store.objects.list(f"steward/{part_of(tenant)}/"):
        folder, _, _ = info.key.rpartition("/")
        if "/batches/" in folder and number_of(info.key) == 1:
            for link in store.chain(folder, tenant=tenant).links():
                yield from link.body.get("artifacts", ())
