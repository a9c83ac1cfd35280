"""The steward's side of an erasure: find whose words a harvest holds, and withdraw records that lose their support.

`store.erasure` finds `StewardRecords` by the entry point group ``ctxsteward.erasure``.

A *harvest artifact* is a blob under the subject of its session; where several people are in it, its first line names
the addresses of the further subjects whose keys it needs. Batches name all artifacts, so sessions that no journal has
can be forgotten, too:

    steward/<tenant>/<profile>/batches/<batch>/   chain of {…, "artifacts": [address of a blob]}

The *support* of a meta record is a blob under the record's own key. Links of ``steward/<tenant>/<profile>/nights``
refer to it as ``"supports": [{"blob", "key"}]``; the newest link counts. So do links of ``verdicts``, which hold the
words that a person gave a record.

    {"schema_version": 1, "least": 3, "voices": [[[address of a subject, …], …], …]}

A *voice* is a principal or an event that counts once at the record's gate. A voice has places; a place is lost when one
of its subjects is erased, and the voice when all its places are. A record with fewer than `least` voices left is
withdrawn. A record without a support is withdrawn when no original is left of those it points to (``s-42§128``).
Withdrawing destroys the record's data key, which removes its text and rendered lines from every version at once.
Tombstones and the local journal decide which originals are left; an original of a session that only another machine
holds counts as left until that session is forgotten.

A profile's ledger is a file on the machine that runs its nights, ``ledgers/<tenant>/<profile>.sqlite`` beside the
journal. It holds harvested words. An erasure deletes the ledgers below its own journal's folder. A ledger in another
folder, or on another machine, removes forgotten words when a night or an erasure next opens it there. Until then the
erasure is not complete. The journal keeps two numbers for each profile: the tombstones that its ledger has applied
(`tell_ledger`), and the last night before an erasure deleted it. In PostgreSQL all machines share these numbers; a
journal on the local disk knows them for its own folder only. A profile whose nights have never run has no ledger. If no
night runs on a machine any more, delete its journal folder.

Reads every artifact, every version, every record in them, and the links that hold supports. Raises what `Vault` and
`Chain` raise. Source: the state design (a subject is one principal in one session; a recommendation is withdrawn when
its support falls below its gate).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import filterfalse
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ctxsteward.schemas import Erased, Finding, StoreError
from ctxsteward.schemas.errors import Damaged, ObjectMissing, UnsupportedVersion
from ctxsteward.schemas.profile import MetaRecord
from ctxsteward.store.backend import Backend
from ctxsteward.store.crypto.keyring import subject_of
from ctxsteward.store.crypto.vault import Vault, session_of
from ctxsteward.store.journal.erasures import ErasureRequest
from ctxsteward.store.journal.log import body_of
from ctxsteward.store.journal.port import Journal, SessionKey
from ctxsteward.store.names import number_of, numbered, part_of
from ctxsteward.store.objects.port import list_twice
from ctxsteward.store.profiles.version_codec import RecordRef, canonical, record_subject, references

LEDGER_FOLDER = "ledgers"


@dataclass(frozen=True, slots=True)
class StewardRecords:
    """The derived records of one tenant (the port `store.journal.erasures.DerivedRecords`)."""

    store: Backend
    tenant: str

    def subjects(self) -> tuple[dict[str, set[str]], list[Finding]]:
        """Return, by session, the subjects whose keys decrypt artifacts of that session."""
        vault, findings = self.store.vault(self.tenant), list[Finding]()
        subjects: dict[str, set[str]] = {}
        for address in dict.fromkeys(_artifacts(self.store, self.tenant, findings)):
            try:
                entry = vault.entry(address)
            except (Erased, ObjectMissing):
                continue
            except (Damaged, UnsupportedVersion) as error:
                findings.append(_unread(address[:16], error))
                continue
            further = entry.data.partition(b"\n")[0].decode(errors="replace")
            names = subjects.setdefault(session_of(entry.subject), set())
            names |= {vault.subject_address(entry.subject), *filter(None, further.split(","))}
        return subjects, findings

    def withdraw(self, request: ErasureRequest) -> int:
        """Destroy the keys of recommendations that have lost their support; return how many."""
        store, tenant = self.store, self.tenant
        vault, withdrawn = store.vault(tenant), 0
        left = _originals_left(store, vault, tenant)
        chains = _chains(store, tenant)
        supports = newest_supports(store, tenant, list(filter(_tells_supports, chains)))
        erased = frozenset(vault.erased()) if supports else frozenset[str]()
        for key, sources in _recommendations(store, vault, tenant, chains):
            support = supports.get(key)
            if support.falls(erased) if support else sources and not any(map(left, sources)):
                vault.destroy_key_at(key, **request._asdict())
                withdrawn += 1
        return withdrawn

    def withdrawn_keys(self) -> frozenset[str]:
        """Return the key addresses of withdrawn records; reads all links."""
        folders = filterfalse(_is_of_nights, _chains(self.store, self.tenant))
        links = (link for folder in folders for link in self.store.chain(folder, tenant=self.tenant).links())
        keys = {kept.key for link in links for kept in references(link.body)}
        return frozenset(keys.intersection(self.store.vault(self.tenant).erased())) if keys else frozenset()

    def watch_files(self) -> Callable[[], list[Finding]]:
        """Look for ledgers before the erasure deletes them; return a function that reports the others after it."""
        nights = _newest_nights(self.store, self.tenant)
        folder = (self.store.folder or Path()) / LEDGER_FOLDER / part_of(self.tenant)
        here = {profile for profile in nights if (folder / f"{part_of(profile)}.sqlite").is_file()}

        def unreached() -> list[Finding]:
            journal, tombstones, findings = self.store.journal, None, list[Finding]()
            for profile, night in sorted(nights.items()):
                if profile in here:
                    journal.see(_mark("deleted", self.tenant, profile), night)
                    continue
                if journal.seen(_mark("deleted", self.tenant, profile)) >= night:
                    continue
                if tombstones is None:
                    tombstones = sum(1 for _ in self.store.vault(self.tenant).erased())
                if journal.seen(_mark("told", self.tenant, profile)) < tombstones:
                    text = (
                        f"the ledger of profile {profile!r} is not in {folder} and may still hold the words: run the "
                        "next night where it is, or repeat the erasure with the journal folder of those nights "
                        "(open_store(…, journal=FOLDER); CTXSTEWARD_JOURNAL for commands)"
                    )
                    findings.append(Finding(kind="ledger_elsewhere", field=f"ledgers/{profile}", text=text))
            return findings

        return unreached


def tell_ledger(journal: Journal, tenant: str, profile: str, tombstones: int) -> None:
    """Note that the profile's ledger has removed the words that these tombstones name."""
    journal.see(_mark("told", tenant, profile), tombstones)


def _mark(event: str, tenant: str, profile: str) -> str:
    return f"ledger_{event}/{tenant}/{part_of(profile)}"


def _newest_nights(store: Backend, tenant: str) -> dict[str, int]:
    """Return the number of the newest night of each profile."""
    newest: dict[str, int] = {}
    if store.folder is None:
        return newest
    for stored in store.objects.list(f"steward/{part_of(tenant)}/"):
        parts, number = stored.key.split("/"), number_of(stored.key)
        if len(parts) > 4 and parts[3] == "nights" and number is not None:
            profile = unquote(parts[2])
            newest[profile] = max(number, newest.get(profile, 0))
    return newest


def _artifacts(store: Backend, tenant: str, findings: list[Finding]) -> Iterator[str]:
    keys = list_twice(store.objects, f"steward/{part_of(tenant)}/")
    for folder in dict.fromkeys(key.rpartition("/")[0] for key in keys if number_of(key) is not None):
        for link in store.chain(folder, tenant=tenant).readable() if "/batches/" in folder else ():
            if isinstance(link, Damaged):
                findings.append(_unread(folder, link))
            else:
                yield from link.body.get("artifacts", ())


def _unread(field: str, error: StoreError) -> Finding:
    text = f"cannot read what was harvested there, so it is skipped: {error}"
    return Finding(kind="harvest_unreachable", field=field, text=text)


VERSION = 1
KIND = "support"
SupportPlace = tuple[str, ...]
"""Sorted addresses of subjects; the place is lost when any of them is erased."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSupport:
    """The voices behind a record, and how many of them it needs."""

    voices: tuple[tuple[SupportPlace, ...], ...]
    least: int

    def falls(self, erased: Collection[str]) -> bool:
        """Whether fewer voices are left than the record needs."""
        left = sum(any(not any(name in erased for name in place) for place in voice) for voice in self.voices)
        return left < min(self.least, len(self.voices))


def support_of(voices: Mapping[Any, Iterable[SupportPlace]], least: int) -> RecordSupport:
    """Return the support in canonical order."""
    return RecordSupport(voices=tuple(sorted(tuple(sorted(set(places))) for places in voices.values())), least=least)


def keep_support(vault: Vault, profile: str, record: MetaRecord, support: RecordSupport) -> RecordRef:
    """Store the support under its record's key; raises `Erased` if the record was withdrawn."""
    subject = record_subject(profile, record)
    data = canonical({"schema_version": VERSION, "least": support.least, "voices": support.voices})
    return RecordRef(vault.put(subject, KIND, data), vault.subject_address(subject))


def newest_supports(store: Backend, tenant: str, folders: Iterable[str]) -> dict[str, RecordSupport]:
    """Return the newest support in these chains by the record's key."""
    newest: dict[str, RecordRef] = {}
    for folder in folders:
        for link in store.chain(folder, tenant=tenant).links():
            newest.update((kept.key, kept) for kept in references(link.body.get("supports", ())))
    vault = store.vault(tenant)
    found = {key: _read(vault, kept.blob) for key, kept in newest.items()}
    return {key: support for key, support in found.items() if support is not None}


def _read(vault: Vault, address: str) -> RecordSupport | None:
    """Return None for a support that is erased, missing, or of a later version."""
    try:
        fields: dict[str, Any] = json.loads(vault.get(address))
    except (Erased, ObjectMissing):
        return None
    if fields.get("schema_version") != VERSION:
        return None
    voices = tuple(tuple(tuple(place) for place in voice) for voice in fields["voices"])
    return RecordSupport(voices=voices, least=fields["least"])


def _recommendations(
    store: Backend, vault: Vault, tenant: str, chains: Iterable[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield key and sources of every recommendation, once each."""
    seen: set[str] = set()
    for folder in filterfalse(_is_of_nights, chains):
        for link in store.chain(folder, tenant=tenant).links():
            for kept in references(link.body):
                if kept.blob not in seen:
                    seen.add(kept.blob)
                    try:
                        sources = _sources(vault, kept.blob)
                    except Erased:
                        vault.finish_destroying(kept.key)
                        continue
                    if sources is not None:
                        yield kept.key, sources


def _tells_supports(folder: str) -> bool:
    return _is_of_nights(folder) or (folder.startswith("steward/") and folder.endswith("/verdicts"))


def _is_of_nights(folder: str) -> bool:
    return folder.startswith("steward/") and folder.endswith("/nights")


def _chains(store: Backend, tenant: str) -> list[str]:
    """List the folders of the tenant's profile versions, snapshots, review requests and supports."""
    folders: dict[str, None] = {}
    witnessed = [numbered(name, number) for name, number in store.journal.witnessed().items()]
    for prefix in (f"profiles/{part_of(tenant)}/", f"snapshots/{part_of(tenant)}/", f"steward/{part_of(tenant)}/"):
        # The journal also knows links that a listing may not show yet.
        for key in (*list_twice(store.objects, prefix), *(key for key in witnessed if key.startswith(prefix))):
            folder = key.rpartition("/")[0]
            if number_of(key) is not None and (
                prefix[:7] != "steward" or folder.endswith("/reviews") or _tells_supports(folder)
            ):
                folders[folder] = None
    return list(folders)


def _sources(vault: Vault, address: str) -> list[str] | None:
    """Return the pointers of the record with this address; None if it is no record, or is missing. Raises `Erased`."""
    try:
        document: Any = json.loads(vault.get(address))
    except (ObjectMissing, ValueError, RecursionError):
        return None
    sources = document.get("sources") if isinstance(document, dict) else None
    return [str(pointer) for pointer in sources] if isinstance(sources, list) else None


def _originals_left(store: Backend, vault: Vault, tenant: str) -> Callable[[str], bool]:
    """Return a function that says whether the original that a pointer names still exists."""

    @cache
    def is_forgotten(session: str) -> bool:
        return vault.tombstone(vault.subject_address(subject_of(session, None))) is not None

    @cache
    def is_other_session(session: str) -> bool:
        # This machine began the session while it could not read the bucket, and has not read it since. Pointers name
        # the session of this id that is in the bucket; ours will move into a fork.
        remote, key = store.write_behind, SessionKey(tenant, session)
        return remote is not None and store.journal.drained(key).number == 0 and remote.holds(key)

    def is_erased(session: str, ordinal: int) -> bool:
        record = store.journal.message(SessionKey(tenant, session), ordinal)
        if record is None or (body_of(record) or {}).get("erased") is not True:
            return False
        return not is_other_session(session)

    def is_left(pointer: str) -> bool:
        session, _, place = pointer.rpartition("§")
        ordinal = place.partition(".")[0]
        return not session or not (is_forgotten(session) or (ordinal.isdecimal() and is_erased(session, int(ordinal))))

    return is_left
