"""Facts that earlier versions stored: one chain per audience of a profile, one set per link. Nothing writes them now.

    facts/<tenant>/<profile>/<audience address>/000000000001.json   a link whose body is a set (`fact`)

Facts are found only by their audience: the folder is an HMAC of profile, kind and name. Links tell which facts a past
envelope showed.

An erasure withdraws facts whose link names an erased subject (`withdraw_facts`), and all facts about a forgotten user
or session (`forget_audience`). Destroying a fact's key removes it from every link and envelope. Withdrawing costs a
listing of tombstones and all fact links of the tenant.

Sessions read through a `FactLookup`, so that no build waits for a dead store. If the journal is in the store, a read is
that of a local file. Else a thread reads, and a build waits at most `wait_seconds`. After failures the store is not
called for a while (`Breaker`), so a dead store costs a build only a finding. `epoch` grows with each erasure by
any process; sessions must then drop their cached facts.

Two functions keep withdrawn meta records out of sessions' heads. A session's log contains its pinned profile with all
records; a record is withdrawn when its key in the vault is destroyed. An erasure cleans earlier logs
(`withdrawn_heads`): a head keeps its position, its other records and its version number, and gets a valid code only if
it had one. A profile that was read before the erasure is checked before it is written (`without_withdrawn_records`),
with one request per record. If the store does not answer in time, the profile is written unchanged, with a finding.

Raises `Damaged`, `UnsupportedVersion`, `StoreUnavailable`; a lookup also raises the errors of its question. Source: the
state design (committing governed state; erasure).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar
from urllib.parse import unquote

from pydantic import ValidationError

from ctxsteward.schemas import Finding, StoreError
from ctxsteward.schemas.profile import MetaRecord

from ..backend import Backend
from ..crypto.hash_chain import Link
from ..crypto.keyring import AddressKey, address_of
from ..crypto.vault import Vault
from ..journal.events import encoded_body
from ..journal.log import recoded
from ..journal.port import JournalRecord
from ..names import checked_profile_name, facts_folder, number_of, part_of
from ..objects.port import folders_in
from ..profiles.pointers import Sessions
from ..profiles.version_codec import MetaRecordVault, RecordRef, of_known_fields, record_subject
from ..replication.breaker import Asker
from .fact import (
    Audience,
    Fact,
    read_fact,
    records_of,
)


class FactStore:
    """The facts about the audiences of one profile of one tenant."""

    def __init__(self, store: Backend, profile: str, tenant: str = "default") -> None:
        self.profile: str = checked_profile_name(profile)
        self.tenant: str = tenant
        self._store = store
        self.vault: Vault = store.vault(tenant)
        self._key = store.keys.address_key(tenant)
        self._shelf = MetaRecordVault(self.vault, self._key, profile)

    def folder(self, audience: Audience) -> str:
        """Return the folder of an audience's facts."""
        kind, name = f"{audience.kind}s", audience.name.encode()
        return facts_folder(self.tenant, self.profile, address_of(self._key, self.profile, kind, name))

    def fact(self, kept: RecordRef) -> Fact | None:
        """Return a fact from the vault, or None if it was erased. Fields of later versions are left out."""
        data = self._shelf.content(kept)
        return None if data is None else read_fact(kept, data)

    def folders(self) -> list[str]:
        """Return the folders of all audiences; costs one listing of all links."""
        listed = self._store.objects.list(facts_folder(self.tenant, self.profile) + "/")
        return list(dict.fromkeys(info.key.rpartition("/")[0] for info in listed if number_of(info.key) is not None))

    def links(self, folder: str) -> Iterator[Link]:
        """Yield all links of a folder, oldest first."""
        return self._store.chain(folder, tenant=self.tenant).links()


def erased_fact(kept: RecordRef) -> Finding:
    """Return a finding that an erased fact was left out."""
    return Finding(kind="fact_erased", field="dynamic", text=f"fact {kept.blob[:16]}… was erased and is left out")


def withdraw_facts(store: Backend, tenant: str, *, who: str, when: str, why: str) -> int:
    """Destroy the keys of facts that cite a forgotten subject; return their number."""
    vault, withdrawn = store.vault(tenant), 0
    shelves = list(_shelves(store, tenant))
    if not shelves:
        return 0
    erased = frozenset(vault.erased())
    keys: dict[str, bool] = {}
    for shelf in shelves:
        for folder in shelf.folders():
            for link in shelf.links(folder):
                for record in records_of(link, folder):
                    keys[record["key"]] = keys.get(record["key"], False) or not erased.isdisjoint(record["rests"])
    for key, rests_on_erased in keys.items():
        if key in erased:
            vault.finish_destroying(key)
        elif rests_on_erased:
            vault.destroy_key_at(key, who=who, when=when, why=why)
            withdrawn += 1
    return withdrawn


def forget_audience(store: Backend, tenant: str, audience: Audience, *, who: str, when: str, why: str) -> int:
    """Destroy the keys of all facts about this audience in every profile; return the number of facts."""
    vault, forgotten = store.vault(tenant), 0
    for shelf in _shelves(store, tenant):
        folder = shelf.folder(audience)
        keys = {record["key"] for link in shelf.links(folder) for record in records_of(link, folder)}
        for key in sorted(keys):
            forgotten += vault.tombstone(key) is None
            vault.destroy_key_at(key, who=who, when=when, why=why)
    return forgotten


def has_shelf(store: Backend, tenant: str, audience: Audience) -> bool:
    """Return whether any profile ever had facts about this audience."""
    return any(next(shelf.links(shelf.folder(audience)), None) is not None for shelf in _shelves(store, tenant))


def _shelves(store: Backend, tenant: str) -> Iterator[FactStore]:
    """Yield the fact store of every profile that has facts."""
    names = folders_in(store.objects, f"facts/{part_of(tenant)}/")
    return (FactStore(store, unquote(name), tenant) for name in names)


def withdrawn_heads(
    key: AddressKey, session: str, rows: Sequence[JournalRecord], is_gone: Callable[[str], bool]
) -> dict[int, JournalRecord]:
    """Return new head records without withdrawn meta records, by position; `is_gone` judges a record's subject."""
    changed: dict[int, JournalRecord] = {}
    for position, record in enumerate(rows):
        body = _without(record, is_gone) if record.kind == "head" and '"meta":[{' in record.body else None
        if body is not None:
            changed[position] = recoded(key, session, position, record, record._replace(body=body))
    return changed


def without_withdrawn_records(
    lookup: FactLookup | None, tenant: str, profile: dict[str, Any]
) -> tuple[dict[str, Any], list[Finding]]:
    """Return a profile (JSON) without the records that were withdrawn after it was read, and findings."""
    records: list[dict[str, Any]] = profile.get("meta") or []
    if lookup is None or not records:
        return profile, []
    gone: dict[str, bool] = {}

    def look() -> None:
        vault = lookup.shelves(profile["name"], tenant).vault
        names = [vault.subject_address(_subject(profile["name"], record)) for record in records]
        are_gone = lookup.each(lambda name: vault.tombstone(name) is not None, names)
        gone.update({record["id"]: is_gone for record, is_gone in zip(records, are_gone, strict=True)})

    try:
        lookup.ask(look)
    except StoreError as error:
        text = f"it is not known whether records of the profile were withdrawn: {type(error).__name__}: {error}"
        return profile, [Finding(kind="withdrawals_unknown", field="meta", text=text[:500])]
    kept = [record for record in records if not gone[record["id"]]]
    if len(kept) == len(records):
        return profile, []
    text = f"the profile in memory is out of date: {len(records) - len(kept)} of its meta records were withdrawn since"
    return {**profile, "meta": kept}, [Finding(kind="meta_record_withdrawn", field="meta", text=text)]


def _without(record: JournalRecord, is_gone: Callable[[str], bool]) -> str | None:
    """Return the body without withdrawn records, or None if it has none or cannot be read."""
    try:
        body: dict[str, Any] = json.loads(record.body)
        profile = body["profile"]
        kept = [meta_record for meta_record in profile["meta"] if not is_gone(_subject(profile["name"], meta_record))]
    except (ValueError, KeyError, TypeError, RecursionError, ValidationError):
        return None
    if len(kept) == len(profile["meta"]):
        return None
    profile["meta"] = kept
    return encoded_body(body)


def _subject(profile: str, fields: dict[str, Any]) -> str:
    return record_subject(profile, of_known_fields(MetaRecord, fields))


WAIT_SECONDS = 0.25
"""Longest wait of a build for facts from a store that is not local."""
MAX_ASKING = 8
"""Most questions at the same time."""
MAX_AT_A_TIME = 8
"""Most requests of one question at the same time."""
_LATE = "the object store did not answer in time"


A = TypeVar("A")
B = TypeVar("B")


class FactLookup:
    """Bounded reads of facts and withdrawals for sessions. Safe with threads."""

    def __init__(
        self,
        shelves: Callable[[str, str], FactStore],
        *,
        wait_seconds: float | None = None,
        erasures: Callable[[str], int] = lambda tenant: 0,
        sessions: Sessions | None = None,
    ) -> None:
        """`shelves` returns the fact store of a profile and tenant. With `wait_seconds`, questions run in threads.
        `erasures` returns the number of a tenant's erasures by all processes."""
        self.shelves = shelves
        self.sessions = sessions
        """Source of profiles and of the originals that their records cite, or None."""
        self.epoch = erasures
        """Return a tenant's epoch: cached facts are valid only while it stays the same."""
        self._wait_seconds = wait_seconds
        self._asker = Asker("facts", MAX_ASKING, late=_LATE)

    def ask(self, question: Callable[[], None]) -> None:
        """Run this question and wait at most `wait_seconds`. It stores its answer itself, possibly after the wait."""
        if self._wait_seconds is None:
            question()
        else:
            self._asker.ask(lambda _: question(), self._wait_seconds)

    def each(self, read: Callable[[A], B], items: Iterable[A]) -> Iterable[B]:
        """Do `map`, with several calls at a time if the store is not local."""
        if self._wait_seconds is None:
            return map(read, items)
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(MAX_AT_A_TIME, thread_name_prefix="ctxsteward facts") as pool:
            return list(pool.map(read, items))
