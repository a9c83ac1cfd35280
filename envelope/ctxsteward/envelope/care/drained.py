"""Checks of what was drained: the segments of a session's journal in the object store, and the journal beside them.

Segments follow one another without a gap, a takeover names the length it found, a rewrite replaces what is there. With
`read_data` every record is decrypted and its code checked, and, where this machine's journal is at the end of the
chain, compared with the journal's own. A key that records were encrypted under is there, or its tombstone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from ctxsteward.schemas import Damaged, Erased, ObjectMissing, UnsupportedVersion

from .. import records
from ..chain import Link
from ..keys import subject_of
from ..objects.names import data_key_name, numbered, session_folder
from ..redacted_log import principals_of
from ..store import Store
from ..stores.port import Drained, Record, SessionKey
from ..vault import Vault, derived_subject
from ..writebehind.segments import Rewrite, Segment, Takeover, decode, session_id
from ..writebehind.sessionlog import Incoming, SessionLog
from .inventory import TenantObjects
from .logs import place
from .tally import BrokenManifest, Tally


class DrainedLog:
    """A session's chain, link by link; afterwards the records that stand in it."""

    def __init__(self, store: Store, vault: Vault, folder: str, tally: Tally) -> None:
        self.length = 0
        """Records so far."""
        self.number = 0
        """Of the last link."""
        self.session: str | None = None
        """None: forgotten, or not read."""
        self.records: dict[int, Record] = {}
        self.manifests: set[str] = set()
        self.broken = False
        """A link could not be read: lengths are not known any more."""
        self._address_key = store.keys.address_key(vault.tenant)
        self._vault, self._folder, self._tally = vault, folder, tally

    def take(self, link: Link, *, read_data: bool) -> None:
        """Check the next link that can be read."""
        self.broken = self.broken or link.number != self.number + 1
        self.number = link.number
        try:
            if link.number == 1:
                self.session = session_id(link.body, self._vault, self._folder)
                self._check_name(link)
            self._check_places(link)
            if read_data:
                self._check_records(link)
        except (Damaged, KeyError, TypeError, ValueError) as error:
            self._found("segment_altered", link, str(error))
            self.broken = True
        except UnsupportedVersion as error:
            self._found("later_version", link, str(error))
            self.broken = True

    def _check_name(self, link: Link) -> None:
        if self.session is not None:
            folder = session_folder(self._vault.tenant, self._vault.subject_address(self.session))
            if folder != self._folder:
                self._found("segment_altered", link, "the session it names belongs into another folder")

    def _check_places(self, link: Link) -> None:
        body = link.body
        kind = body["kind"]
        begins = {"segment": "start", "takeover": "length"}.get(kind)
        if begins is not None and not self.broken and int(body[begins]) != self.length:
            self._found(
                "segment_missing", link, f"the {kind} is at {body[begins]}, {self.length} records are before it"
            )
        if kind == "segment":
            self.length = int(body["start"]) + len(body["records"])

    def _check_records(self, link: Link) -> None:
        part = decode(link.body, self._vault, self._folder)
        if not isinstance(part, Takeover):
            self.manifests |= {manifest.address for manifest in part.manifests}
        if isinstance(part, Segment):
            found: Mapping[int, Record | None] = dict(enumerate(part.records, part.start))
        elif isinstance(part, Rewrite):
            found = part.records
        else:
            return
        for position, record in found.items():
            self.records.pop(position, None)
            if record is not None:
                self._tally.count("drained_records")
                if self.session is not None:
                    records.check(self._address_key, self.session, position, record)
                self.records[position] = record

    def _found(self, kind: str, link: Link, what: str) -> None:
        key = numbered(self._folder, link.number)
        self._tally.found(kind, key, what)


def check_drained(
    store: Store,
    vault: Vault,
    folder: str,
    links: Iterable[Link],
    found: TenantObjects,
    tally: Tally,
    altered: Set[str],
    *,
    read_data: bool,
) -> None:
    """Check a session's chain and this machine's journal against it, unless its row there is `altered`."""
    log = DrainedLog(store, vault, folder, tally)
    for link in links:
        _check_keys(vault, link, folder, found, tally)
        log.take(link, read_data=read_data)
    if log.session is not None and log.session not in altered and not log.broken:
        _compare(store, vault, SessionKey(vault.tenant, log.session), log, found, tally)


def read_drained(store: Store, key: SessionKey) -> Incoming | None:
    """What stands of a session in the object store; None where that cannot be had whole, or was forgotten."""
    vault = Vault(store.objects, store.keys, key.tenant, patience=store.patience)
    try:
        return SessionLog(store.objects, store.keys, vault, key, patience=store.patience).behind(Drained())
    except (Damaged, Erased, ObjectMissing, UnsupportedVersion):
        return None


def _check_keys(vault: Vault, link: Link, folder: str, found: TenantObjects, tally: Tally) -> None:
    names: Any = link.body.get("keys", ())
    for name in names if isinstance(names, list) else ():
        if isinstance(name, str) and name not in found.keys and name not in found.tombstones:
            try:
                vault.known_key(name)  # it may be younger than the listing
            except ObjectMissing:
                where = data_key_name(vault.tenant, name)
                tally.found("key_missing", where, f"records in {numbered(folder, link.number)} need it")
            except (Erased, Damaged, UnsupportedVersion):
                continue  # forgotten meanwhile; a damaged one is found where it lies


def _compare(store: Store, vault: Vault, key: SessionKey, log: DrainedLog, found: TenantObjects, tally: Tally) -> None:
    """Where the journal has read the chain to its end, both hold the same."""
    drained = store.journal.drained(key)
    if drained.number != log.number:
        return  # another machine has written since, or nothing of it is here
    if drained.position != log.length:
        where = place(key, drained.position)
        tally.found("drain_altered", where, f"drained to here, but the chain holds {log.length} records")
        return
    for position, record in sorted(log.records.items()):
        local = store.journal.read(key, position, position + 1)
        if local and local[0].mac != record.mac and is_sound(store, key, position, local[0]):
            where = place(key, position)
            if record.kind != "message" and _is_being_erased(store, vault, key, found):
                tally.found("content_after_erasure", where, "the object store still holds what was derived before")
            else:
                tally.found("original_altered", where, "another record than the object store's")
    for address in sorted(log.manifests):
        if store.journal.get_manifest(key.tenant, address) is None:
            where = f"{place(key, 0).rpartition('#')[0]}@{address}"
            tally.found("manifest_missing", where, "the object store has it", BrokenManifest(key, address))


def _is_being_erased(store: Store, vault: Vault, key: SessionKey, found: TenantObjects) -> bool:
    """Whether principals were forgotten, and what had been derived from them still has its key: a generation each."""
    wrote = principals_of(store.journal.read(key, 0))
    gone = sum(vault.subject_address(subject_of(key.session, name)) in found.tombstones for name in wrote)
    derived = (derived_subject(key.session, generation) for generation in range(gone))
    return any(vault.subject_address(subject) not in found.tombstones for subject in derived)


def is_sound(store: Store, key: SessionKey, position: int, record: Record) -> bool:
    """Whether the record is one that was once written at this place."""
    try:
        records.check(store.keys.address_key(key.tenant), key.session, position, record)
    except Damaged:
        return False
    return True
