"""The checks of `fsck`: the journal's logs, encrypted content, and the drained sessions.

Log: each record is at its place with the right code; each message has its address, is found by its ordinal, and follows
its predecessor without a gap; each compaction is found by its address. A fork continues the ordinals of its parent,
which must be there. A record of a forgotten subject must be empty. Records appended during the check are left to the
next run.

Content: each key can be unwrapped, each tombstone's code is right, and no subject has both a key and a tombstone. With
`read_data` each blob is decrypted and its address computed anew; else only its place is checked.

Drained sessions: segments have no gaps, a takeover names the right length, a rewrite replaces existing records. With
`read_data` every record is decrypted and its code checked; if this machine's journal is at the end of the chain, the
record must equal the journal's. Each key of encrypted records is there, or its tombstone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import suppress
from typing import Any

from ctxsteward.schemas import Erased
from ctxsteward.schemas.errors import Damaged, ObjectMissing, UnsupportedVersion

from ..backend import Backend
from ..crypto.hash_chain import Link
from ..crypto.keyring import subject_of
from ..crypto.vault import Vault, derived_subject
from ..journal import log as records
from ..journal.events import BlankRecord, Event, ForkPoint, MessageAppended, SessionOpened, WindowCompacted
from ..journal.log import Log, principals_of, read_manifest
from ..journal.port import DrainMark, Journal, JournalRecord, Manifest, SessionKey
from ..names import blob_name, data_key_name, numbered, part_of, session_folder, tombstone_name
from ..objects.port import is_there
from ..profiles.version_codec import references
from ..replication.report_objects import opened
from ..replication.segment_log import NewSegments, Rewrite, Segment, SessionLog, Takeover, decode, session_id
from .damage import CheckTally
from .inventory import TenantObjects

PAGE_RECORDS = 500
_TRIES = 3
"""Most checks of a log that is rewritten during a check."""


def place(key: SessionKey, at: int | str = "") -> str:
    """Return the name, in findings, of a log, of the record at a position, or of the manifest at an address."""
    mark = f"#{at}" if isinstance(at, int) else f"@{at}" if at else ""
    return f"journal/{part_of(key.tenant)}/{part_of(key.session)}{mark}"


def check_log(store: Backend, key: SessionKey, erased: frozenset[str], tally: CheckTally, *, read_data: bool) -> None:
    """Check a session's log; `erased` are the addresses of the tenant's forgotten subjects."""
    tally.count("sessions")
    tally.tell(key.session)
    before = tally.mark()
    for _ in range(_TRIES):
        tally.take(before)
        generation = store.journal.generation(key)
        LogCheck(store, key, erased, tally).run(read_data=read_data)
        if store.journal.generation(key) == generation:
            return


class LogCheck:
    """A check of one session's log, from its first record to its last."""

    def __init__(self, store: Backend, key: SessionKey, erased: frozenset[str], tally: CheckTally) -> None:
        self.journal: Journal = store.journal
        self._store, self._key, self._erased, self._tally = store, key, erased, tally
        self._address_key = store.keys.address_key(key.tenant)
        self._log = Log(store.journal, key, self._address_key)
        self._vault = store.vault(key.tenant)
        self._next_ordinal = 1
        """Expected ordinal of the next message; 0 after an unreadable record."""

    def run(self, *, read_data: bool) -> None:
        length = self.journal.length(self._key)
        whole = len(self._tally.findings)
        for position, record in self._records(length):
            if record is None:
                self._found("record_missing", position, "no record is there")
                self._next_ordinal = 0
            else:
                self._tally.count("records")
                self._check(position, record)
        if self.journal.read(self._key, length, length + 1) and self.journal.length(self._key) == length:
            self._found("log_altered", length, f"a record is there, but the log ends at {length}")
        for manifest in self.journal.manifests(self._key):
            self._tally.count("manifests")
            if wrong := self._wrong_with(manifest, length):
                address = manifest.address
                self._tally.found("manifest_altered", place(self._key, address), wrong, of=self._key, at=address)
        if read_data and len(self._tally.findings) == whole:
            try:  # open the session as a reader does, from the journal alone
                self._store.replay(self._key, length)
            except Damaged as error:
                self._found("record_altered", max(0, length - 1), f"the session cannot be opened: {error}")
            except Erased:
                pass  # forgotten meanwhile

    def _records(self, length: int) -> Iterator[tuple[int, JournalRecord | None]]:
        for start in range(0, length, PAGE_RECORDS):
            stop = min(start + PAGE_RECORDS, length)
            page = self.journal.read(self._key, start, stop)
            if len(page) == stop - start:
                yield from enumerate(page, start)
            else:
                for position in range(start, stop):
                    yield position, next(iter(self.journal.read(self._key, position, position + 1)), None)

    def _check(self, position: int, record: JournalRecord) -> None:
        try:
            event = self._log.event(record, position)
        except Damaged:
            self._found("record_altered", position, f"the {record.kind} record is not what was written")
        except UnsupportedVersion as error:
            self._found("later_version", position, str(error))
        else:
            self._check_event(position, record, event)
            return
        self._next_ordinal = 0

    def _check_event(self, position: int, record: JournalRecord, event: Event) -> None:
        match event:
            case MessageAppended():
                self._check_message(position, record, event)
            case WindowCompacted():
                at = self.journal.find(self._key.tenant, event.report.id)
                # two machines may have made the same one, and the turns of one have moved into a fork
                twin = at is not None and self._log.sibling(at[0]).at(at[1])
                if not (isinstance(twin, WindowCompacted) and twin.report.id == event.report.id):
                    self._found("record_altered", position, "the compaction is not found by its address")
            case SessionOpened(parent=parent) if position == 0 and parent is not None:
                self._next_ordinal = parent.ordinal + 1
                self._check_parent(parent)
        if isinstance(event, SessionOpened) != (position == 0) and not isinstance(event, BlankRecord):
            self._found("record_altered", position, f"a {record.kind} record cannot stand here")

    def _check_message(self, position: int, record: JournalRecord, event: MessageAppended) -> None:
        if self._erased and not event.erased:
            name = self._vault.subject_address(subject_of(self._key.session, event.principal))
            if name in self._erased:
                where = tombstone_name(self._key.tenant, name)
                self._found("content_after_erasure", position, f"§{event.ordinal} was forgotten ({where})")
        if self._next_ordinal and event.ordinal != self._next_ordinal:
            self._found("record_altered", position, f"§{event.ordinal} stands where §{self._next_ordinal} belongs")
        self._next_ordinal = event.ordinal + 1
        if self.journal.position(self._key, event.ordinal) != position:
            self._found("record_altered", position, f"§{event.ordinal} is not found by its ordinal")
        if event.id is not None and self.journal.by_id(self._key, event.id) != record:
            self._found("record_altered", position, f"§{event.ordinal} is not found by its id")

    def _check_parent(self, parent: ForkPoint) -> None:
        try:
            length = self.journal.length(SessionKey(self._key.tenant, parent.session))
        except Damaged:
            return  # the check of the parent's own log reports it
        if length < parent.position:
            what = f"the parent has {length} records and the fork begins at {parent.position}"
            self._found("parent_missing", 0, what)

    def _wrong_with(self, manifest: Manifest, length: int) -> str:
        try:
            body = read_manifest(self._address_key, manifest.address, manifest.body)
        except Damaged:
            return "it is not what was written"
        if body["session"] != self._key.session:
            return "it is of another session"
        if body["position"] > length:
            return f"it names position {body['position']}, and the log has {length} records"
        return ""

    def _found(self, kind: str, position: int, what: str) -> None:
        where = place(self._key, position)
        mendable = kind in ("record_altered", "record_missing")
        self._tally.found(kind, where, what, of=self._key if mendable else None, at=position)


def check_subjects(vault: Vault, found: TenantObjects, tally: CheckTally) -> None:
    """Check keys and tombstones of this tenant. Pass a fresh `vault`, without cached keys."""
    for name in found.tombstones:
        key = tombstone_name(vault.tenant, name)
        if not tally.share.holds(key):
            continue
        tally.count("tombstones")
        with tally.reading(key, "tombstone_altered", "it is not what was written"):
            vault.tombstone(name)
        if name in found.keys:
            where, what = data_key_name(vault.tenant, name), "its subject was forgotten, and the key is there"
            tally.found("key_after_tombstone", where, what, of=SessionKey(vault.tenant, name))
    for name in found.keys:
        key = data_key_name(vault.tenant, name)
        if not tally.share.holds(key):
            continue
        tally.count("keys")
        with tally.reading(key, "key_damaged", "it cannot be unwrapped"), suppress(ObjectMissing, Erased):
            vault.known_key(name)  # `Erased` or `ObjectMissing`: it was destroyed meanwhile


def check_blobs(
    vault: Vault, found: TenantObjects, owners: Mapping[str, str], tally: CheckTally, *, read_data: bool
) -> None:
    """Check the places of blobs, and with `read_data` their content; `owners` has the subject in links by blob."""
    for address, info in found.blobs.items():
        if tally.share.holds(info.key):
            tally.count("blobs")
            if read_data:
                _check_blob(vault, address, info.key, owners.get(address), tally)


def check_reports(vault: Vault, found: TenantObjects, tally: CheckTally, *, read_data: bool) -> None:
    """Check the places of compression reports, and with `read_data` their content."""
    for address, info in found.reports.items():
        if not tally.share.holds(info.key):
            continue
        tally.count("reports")
        if not read_data:
            continue
        with tally.reading(info.key, "report_altered", "it is not the report that its address names"):
            try:
                data = vault.objects.get(info.key)
                tally.count("bytes", len(data))
                opened(vault, address, data)
            except Erased:
                tally.found("report_erased", info.key, "a report of a forgotten session, or of what was said before")
            except ObjectMissing as error:
                if error.key != info.key:  # else the report itself was collected meanwhile
                    tally.found("key_missing", error.key, f"report {address[:16]}… was written under it")


def _check_blob(vault: Vault, address: str, key: str, owner: str | None, tally: CheckTally) -> None:
    with tally.reading(key, "blob_altered", "it is not what its address says"):
        try:
            data = vault.get(address)
            tally.count("bytes", len(data))
            tally.tell(f"{tally.counts['blobs']:,} blobs")
        except Erased:
            if owner is not None and not vault.is_erased(owner, damaged=True):
                tally.found("blob_altered", key, "it names a forgotten subject, and belongs to another one")
            else:
                tally.found("blob_erased", key, "content of a forgotten subject")
        except ObjectMissing as error:
            if error.key != key:  # else the blob itself was collected meanwhile
                tally.found("key_missing", error.key, f"blob {address[:16]}… was written under it")


def check_references(
    vault: Vault, objects: TenantObjects, link: Link, key: str, tally: CheckTally
) -> Iterator[tuple[str, str]]:
    """Check that each blob and key in a link of governed state exists or was forgotten; yield pairs of both."""
    for blob, name in references(link.body):
        tally.count("references")
        yield blob, name
        if name in objects.tombstones:
            continue
        if blob not in objects.blobs and not is_there(vault.objects, blob_name(vault.tenant, blob)):
            where = blob_name(vault.tenant, blob)
            tally.found("blob_missing", where, f"{key} refers to it")
        if name not in objects.keys and not is_there(vault.objects, data_key_name(vault.tenant, name)):
            where = data_key_name(vault.tenant, name)
            tally.found("key_missing", where, f"{key} refers to a blob that was written under it")


class DrainedLog:
    """A check of a session's chain, link by link, which collects its current records."""

    def __init__(self, store: Backend, vault: Vault, folder: str, tally: CheckTally) -> None:
        self.length: int = 0
        """Number of records so far."""
        self.number: int = 0
        """Number of the last link."""
        self.session: str | None = None
        """The session's id, or None if it was forgotten or not read."""
        self.records: dict[int, JournalRecord] = {}
        self.manifests: set[str] = set()
        self.broken: bool = False
        """Whether a link could not be read, so that lengths are unknown."""
        self._address_key = store.keys.address_key(vault.tenant)
        self._vault, self._folder, self._tally = vault, folder, tally

    def take(self, link: Link, *, read_data: bool) -> None:
        """Check the next readable link."""
        self.broken = self.broken or link.number != self.number + 1
        self.number = link.number
        try:
            if link.number == 1:
                self.session = session_id(link.body, self._vault, self._folder)
                named = self.session and session_folder(self._vault.tenant, self._vault.subject_address(self.session))
                if named is not None and named != self._folder:
                    self._found("segment_altered", link, "the session it names belongs into another folder")
            self._check_places(link)
            if read_data:
                self._check_records(link)
        except (Damaged, KeyError, TypeError, ValueError) as error:
            self._found("segment_altered", link, str(error))
            self.broken = True
        except UnsupportedVersion as error:
            self._found("later_version", link, str(error))
            self.broken = True

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
            replaced: Mapping[int, JournalRecord | None] = dict(enumerate(part.records, part.start))
        elif isinstance(part, Rewrite):
            replaced = part.records
        else:
            return
        for position, record in replaced.items():
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
    store: Backend,
    vault: Vault,
    folder: str,
    links: Iterable[Link],
    objects: TenantObjects,
    tally: CheckTally,
    altered: Set[str],
    *,
    read_data: bool,
) -> None:
    """Check a session's chain, and compare it with this machine's log unless the log's row is `altered`."""
    log = DrainedLog(store, vault, folder, tally)
    for link in links:
        _check_keys(vault, link, folder, objects, tally)
        log.take(link, read_data=read_data)
    if log.session is not None and log.session not in altered and not log.broken:
        _compare(store, vault, SessionKey(vault.tenant, log.session), log, objects, tally)


def read_drained(store: Backend, key: SessionKey) -> NewSegments | None:
    """Return a session's current records in the object store, or None if any is unreadable or it was forgotten."""
    vault = store.fresh_vault(key.tenant)
    try:
        return SessionLog(store.objects, store.keys, vault, key, patience=store.patience).behind(DrainMark())
    except (Damaged, Erased, ObjectMissing, UnsupportedVersion):
        return None


def _check_keys(vault: Vault, link: Link, folder: str, objects: TenantObjects, tally: CheckTally) -> None:
    names: Any = link.body.get("keys", ())
    for name in names if isinstance(names, list) else ():
        if isinstance(name, str) and name not in objects.keys and name not in objects.tombstones:
            try:
                vault.known_key(name)  # the key may be younger than the listing
            except ObjectMissing:
                where = data_key_name(vault.tenant, name)
                tally.found("key_missing", where, f"records in {numbered(folder, link.number)} need it")
            except (Erased, Damaged, UnsupportedVersion):
                continue  # forgotten meanwhile, or damaged, which `check_subjects` reports


def _compare(
    store: Backend, vault: Vault, key: SessionKey, log: DrainedLog, objects: TenantObjects, tally: CheckTally
) -> None:
    """If the journal has read the chain to its end, check that both have the same records and manifests."""
    drained = store.journal.drained(key)
    if drained.number != log.number:
        return  # another machine has written since, or this journal does not have the session
    if drained.position != log.length:
        where = place(key, drained.position)
        tally.found("drain_altered", where, f"drained to here, but the chain holds {log.length} records")
        return
    for position, record in sorted(log.records.items()):
        local = store.journal.read(key, position, position + 1)
        if local and local[0].mac != record.mac and is_sound(store, key, position, local[0]):
            where = place(key, position)
            if record.kind != "message" and _is_being_erased(store, vault, key, objects):
                tally.found("content_after_erasure", where, "the object store still holds what was derived before")
            else:
                tally.found("original_altered", where, "another record than the object store's")
    for address in sorted(log.manifests):
        if store.journal.get_manifest(key.tenant, address) is None:
            tally.found("manifest_missing", place(key, address), "the object store has it", of=key, at=address)


def _is_being_erased(store: Backend, vault: Vault, key: SessionKey, found: TenantObjects) -> bool:
    """Return whether an erasure is unfinished: for each forgotten principal one generation of derived keys must go."""
    wrote = principals_of(store.journal.read(key, 0))
    gone = sum(vault.subject_address(subject_of(key.session, name)) in found.tombstones for name in wrote)
    derived = (derived_subject(key.session, generation) for generation in range(gone))
    return any(vault.subject_address(subject) not in found.tombstones for subject in derived)


def is_sound(store: Backend, key: SessionKey, position: int, record: JournalRecord) -> bool:
    """Return whether the record has the code of this place."""
    try:
        records.check(store.keys.address_key(key.tenant), key.session, position, record)
    except Damaged:
        return False
    return True
