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

from ctxsteward.schemas import Damaged, Erased, Finding, ObjectMissing, StoreError, UnsupportedVersion

from .objects.names import number_of, part_of
from .objects.port import list_twice
from .vault import session_of

if TYPE_CHECKING:
    from .store import Store


def harvested(store: Store, tenant: str, found: dict[str, set[str]]) -> list[Finding]:
    """Fill in, by session, the addresses of all subjects whose keys open something that was harvested from it; what
    cannot be read is passed over and returned."""
    vault, findings = store.vault(tenant), list[Finding]()
    for address in dict.fromkeys(_artifacts(store, tenant, findings)):
        try:
            entry = vault.entry(address)
        except (Erased, ObjectMissing):
            continue
        except (Damaged, UnsupportedVersion) as error:
            findings.append(_unread(address[:16], error))
            continue
        further = entry.data.partition(b"\n")[0].decode(errors="replace")
        names = found.setdefault(session_of(entry.subject), set())
        names |= {vault.subject_address(entry.subject), *filter(None, further.split(","))}
    return findings


def _artifacts(store: Store, tenant: str, findings: list[Finding]) -> Iterator[str]:
    keys = list_twice(store.objects, f"steward/{part_of(tenant)}/")
    for folder in dict.fromkeys(key.rpartition("/")[0] for key in keys if number_of(key) is not None):
        for link in store.chain(folder, tenant=tenant).readable() if "/batches/" in folder else ():
            if isinstance(link, Damaged):
                findings.append(_unread(folder, link))
            else:
                yield from link.body.get("artifacts", ())


def _unread(field: str, error: StoreError) -> Finding:
    text = f"what was harvested there cannot be read and is passed over: {error}"
    return Finding(kind="harvest_unreachable", field=field, text=text)
