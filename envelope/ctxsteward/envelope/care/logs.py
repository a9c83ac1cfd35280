"""Checks of the journal: each session's records in their places, each code right, each message what its address says.

A message is found by its ordinal and a compaction by its address, so both are looked up that way, too; messages follow
one another without a gap. A fork counts on from its parent, which must be there. A record of somebody who was
forgotten holds nothing any more. Records that are appended while this runs are left to the next run.
"""

from __future__ import annotations

from collections.abc import Iterator

from ctxsteward.schemas import Damaged, Erased, UnsupportedVersion

from ..counting import Counter
from ..events import Appended, Blank, Compacted, Event, Opened, Origin
from ..keys import subject_of
from ..log import Log
from ..objects.names import part_of, tombstone_name
from ..records import read_manifest
from ..session import Session
from ..store import Store
from ..stores.port import Journal, Manifest, Record, SessionKey
from .tally import BrokenManifest, BrokenRecord, Tally

PAGE_RECORDS = 500
_TRIES = 3
"""A log that is rewritten while it is checked is checked again."""


def place(key: SessionKey, position: int) -> str:
    """How findings name a record."""
    return f"journal/{part_of(key.tenant)}/{part_of(key.session)}#{position}"


def check_log(store: Store, key: SessionKey, buried: frozenset[str], tally: Tally, *, read_data: bool) -> None:
    """Check a session's journal; `buried` are addresses of the tenant's forgotten subjects."""
    tally.count("sessions")
    tally.tell(key.session)
    before = tally.mark()
    for _ in range(_TRIES):
        tally.take(before)
        generation = store.journal.generation(key)
        LogCheck(store, key, buried, tally).run(read_data=read_data)
        if store.journal.generation(key) == generation:
            return


class LogCheck:
    """One session's log, from its first record to its last."""

    def __init__(self, store: Store, key: SessionKey, buried: frozenset[str], tally: Tally) -> None:
        self.journal: Journal = store.journal
        self._store, self._key, self._buried, self._tally = store, key, buried, tally
        self._address_key = store.keys.address_key(key.tenant)
        self._log = Log(store.journal, key, self._address_key)
        self._vault = store.vault(key.tenant)
        self._next_ordinal = 1
        """0: a record before this one could not be read."""

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
            self._check_manifest(manifest, length)
        if read_data and len(self._tally.findings) == whole:
            self._fold(length)

    def _records(self, length: int) -> Iterator[tuple[int, Record | None]]:
        for start in range(0, length, PAGE_RECORDS):
            stop = min(start + PAGE_RECORDS, length)
            page = self.journal.read(self._key, start, stop)
            if len(page) == stop - start:
                yield from enumerate(page, start)
            else:
                for position in range(start, stop):
                    yield position, next(iter(self.journal.read(self._key, position, position + 1)), None)

    def _check(self, position: int, record: Record) -> None:
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

    def _check_event(self, position: int, record: Record, event: Event) -> None:
        match event:
            case Appended():
                self._check_message(position, record, event)
            case Compacted():
                at = self.journal.find(self._key.tenant, event.report.id)
                if at != (self._key.session, position):
                    self._found("record_altered", position, "the compaction is not found by its address")
            case Opened(parent=parent) if position == 0 and parent is not None:
                self._next_ordinal = parent.ordinal + 1
                self._check_parent(parent)
        if isinstance(event, Opened) != (position == 0) and not isinstance(event, Blank):
            self._found("record_altered", position, f"a {record.kind} record cannot stand here")

    def _check_message(self, position: int, record: Record, event: Appended) -> None:
        if self._buried and not event.erased:
            name = self._vault.subject_address(subject_of(self._key.session, event.principal))
            if name in self._buried:
                where = tombstone_name(self._key.tenant, name)
                self._found("content_after_erasure", position, f"§{event.ordinal} was forgotten ({where})")
        if self._next_ordinal and event.ordinal != self._next_ordinal:
            self._found("record_altered", position, f"§{event.ordinal} stands where §{self._next_ordinal} belongs")
        self._next_ordinal = event.ordinal + 1
        if self.journal.position(self._key, event.ordinal) != position:
            self._found("record_altered", position, f"§{event.ordinal} is not found by its ordinal")
        if event.id is not None and self.journal.by_id(self._key, event.id) != record:
            self._found("record_altered", position, f"§{event.ordinal} is not found by its id")

    def _check_parent(self, parent: Origin) -> None:
        try:
            length = self.journal.length(SessionKey(self._key.tenant, parent.session))
        except Damaged:
            return  # found where it lies
        if length < parent.position:
            what = f"the parent has {length} records and the fork begins at {parent.position}"
            self._found("parent_missing", 0, what)

    def _check_manifest(self, manifest: Manifest, length: int) -> None:
        where = f"{place(self._key, 0).rpartition('#')[0]}@{manifest.address}"
        wrong = self._wrong_with(manifest, length)
        if wrong:
            self._tally.found("manifest_altered", where, wrong, BrokenManifest(self._key, manifest.address))

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

    def _fold(self, length: int) -> None:
        """Open the session as its readers do, with what is here alone."""
        store = self._store
        session = Session(self.journal, self._key, _no_counter, lambda: "", store.keys)
        try:
            session.load(upto=length)
        except Damaged as error:
            self._found("record_altered", max(0, length - 1), f"the session cannot be opened: {error}")
        except Erased:
            pass  # forgotten meanwhile

    def _found(self, kind: str, position: int, what: str) -> None:
        where = place(self._key, position)
        broken = BrokenRecord(self._key, position) if kind in ("record_altered", "record_missing") else None
        self._tally.found(kind, where, what, broken)


def _no_counter() -> Counter:
    raise AssertionError("reading counts no tokens")
