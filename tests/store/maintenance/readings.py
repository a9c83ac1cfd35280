"""How each sort of stored thing is read by the program itself: what it serves, or the error it raises.

A reading is compared with the one before the damage: another value is a defect, the same value without an error means
that the damage was not noticed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ctxsteward.envelope.building.snapshots import Snapshots
from ctxsteward.envelope.store import Store
from ctxsteward.schemas import ContextError, Erased
from ctxsteward.schemas.errors import Damaged
from ctxsteward.schemas.findings import LOG_DAMAGE
from ctxsteward.store.crypto.hash_chain import Chain
from ctxsteward.store.crypto.keyring import check_keys
from ctxsteward.store.crypto.vault import Vault
from ctxsteward.store.journal.port import DrainMark, SessionKey
from ctxsteward.store.profiles.versions import ProfileVersions
from ctxsteward.store.replication.report_objects import read_report
from ctxsteward.store.replication.segment_log import SessionLog

from .operators import kind_of

Reading = Callable[[Store], Any]


class Noticed(Exception):
    """The program has said that something is wrong."""


def outcome(read: Reading, store: Store) -> Any:
    """What is served; raises `Noticed`."""
    try:
        return read(store)
    except ContextError as error:
        raise Noticed(type(error).__name__) from error


# -- objects -------------------------------------------------------------------------------------------------


def reading_of(store: Store, key: str) -> Reading:
    """The reading of the object with this key; `store` is undamaged."""
    tenant = key.split("/")[1]
    match kind_of(key):
        case "versions":
            return lambda damaged: [
                (version.profile, version.changelog)
                for version in ProfileVersions(damaged, "support", tenant).history()
            ]
        case "snapshots":
            return lambda damaged: list(Snapshots(damaged, tenant).history("support"))
        case "writers" | "steward":
            return lambda damaged: _links(damaged.chain(key.rpartition("/")[0], tenant=tenant))
        case "sessions":
            return drained(tenant, _session_in(store, tenant, key.rpartition("/")[0]))
        case "tenants":
            return lambda damaged: check_keys(damaged.objects, damaged.keys, tenant, write=False)
        case "blobs":
            return lambda damaged: _vault(damaged, tenant).get(key.rpartition("/")[2])
        case "reports":
            return lambda damaged: read_report(damaged.objects, damaged.fresh_vault(tenant), key.rpartition("/")[2])
        case "tombstones":
            name = key.rpartition("/")[2].removesuffix(".json")
            return lambda damaged: (damaged.vault(tenant).tombstone(name), _all_content(damaged, tenant))
        case "keys":
            return lambda damaged: (_all_content(damaged, tenant), _all_drained(damaged, tenant))
    raise AssertionError(key)


def _links(chain: Chain) -> list[Any]:
    return list(chain.links())


def _vault(store: Store, tenant: str) -> Vault:
    """One that remembers nothing."""
    return Vault(store.objects, store.keys, tenant, patience=store.patience)


def _content(store: Store, tenant: str, address: str) -> bytes | str:
    try:
        return _vault(store, tenant).get(address)
    except Erased as error:
        return str(error)


def _all_content(store: Store, tenant: str) -> dict[str, bytes | str]:
    keys = [info.key for info in store.objects.list(f"blobs/{tenant}/")]
    return {key: _content(store, tenant, key.rpartition("/")[2]) for key in keys}


def drained(tenant: str, session: str) -> Reading:
    """A session as a machine without a journal reads it, which knows the newest link of the one that has one."""

    def read(store: Store) -> Any:
        key = SessionKey(tenant, session)
        log = SessionLog(store.objects, store.keys, _vault(store, tenant), key, patience=store.patience)
        log.tail(store.journal.drained(key).number)
        found = log.behind(DrainMark())
        return found.records, found.manifests

    return read


def _all_drained(store: Store, tenant: str) -> list[Any]:
    return [drained(tenant, session)(store) for session in store.journal.sessions(tenant)]


def _session_in(store: Store, tenant: str, folder: str) -> str:
    vault = store.vault(tenant)
    return next(one for one in store.journal.sessions(tenant) if vault.subject_address(one) in folder)


# -- the journal ---------------------------------------------------------------------------------------------


def message_reading(tenant: str, session: str, stops: tuple[int, ...], ordinal: int) -> Reading:
    """An original by its reference, in the session as it stood at these positions."""
    return lambda store: [_whole(store, tenant, session, stop).resolve(ordinal).wire for stop in stops]


def event_reading(tenant: str, session: str, stops: tuple[int, ...]) -> Reading:
    """The session as it stood at these positions."""

    def read(store: Store) -> Any:
        states = [_whole(store, tenant, session, stop).state for stop in stops]
        return [(one.head, one.notes, one.pins, one.bullets, one.nonce, one.ordinal) for one in states]

    return read


def compaction_reading(tenant: str, address: str) -> Reading:
    return lambda store: store.compaction(address, tenant=tenant)


def manifest_reading(tenant: str, address: str) -> Reading:
    return lambda store: json.dumps(store.manifest(address, tenant=tenant))


def _whole(store: Store, tenant: str, session: str, position: int) -> Any:
    """The session at a position, if nothing in it stands in for something else."""
    opened = store.at(tenant, session, position)
    for finding in opened.findings:
        if finding.kind in LOG_DAMAGE:
            raise Damaged(finding.text)
    for group in opened.state.groups:
        for entry in group.entries:
            if entry.event.damaged:
                raise Damaged(f"{entry.ref} is a stand-in")
    return opened
