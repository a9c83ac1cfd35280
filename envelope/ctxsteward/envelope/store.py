"""An application's store (`open_store`, `Store`): it opens sessions and profiles.

    open_store("file:./.ctxsteward")            one folder: journal, objects, keys
    open_store("s3://bucket/prefix", journal="/var/lib/app/journal", keys=MasterKeys(…))
    open_store("postgresql://app@db/chat", keys=MasterKeys(…))      any number of machines, in one database
    open_store("memory:")

`Store` is a `Backend` (journal, object store, keys) that also opens sessions. The journal acknowledges a turn; the
object store keeps everything for good. If the journal lies outside the store, a write-behind drains it into the object
store and never blocks a build.

Raises `ReferenceNotFound`, `Damaged`, `InputError`, `StoreError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast

from ctxsteward.schemas import CompressionReport, Erased, Finding
from ctxsteward.schemas.arguments import check_argument, check_options, known_options
from ctxsteward.schemas.message import Wire
from ctxsteward.store import Journal, ObjectStore, process_forks as forking
from ctxsteward.store.addresses import AddressLookup
from ctxsteward.store.backend import JOURNAL_FOLDER, QUEUE_BYTES, Backend, open_location
from ctxsteward.store.crypto.keyring import Keys
from ctxsteward.store.derived_files import DerivedRows
from ctxsteward.store.facts.fact_store import WAIT_SECONDS, FactLookup, FactStore
from ctxsteward.store.journal.erasures import Eraser
from ctxsteward.store.journal.events import WindowCompacted
from ctxsteward.store.journal.log import Log
from ctxsteward.store.journal.port import JournalRecord, Manifest, SessionKey
from ctxsteward.store.names import checked_name
from ctxsteward.store.objects.port import Patience
from ctxsteward.store.profiles.text import Profile

from .history.log_view import SessionLogView
from .history.session import MemoryScope, Session, check_memory
from .history.session_head import head_of, open_log
from .layout.rows import random_nonce
from .tokens.tokenizer import Counter

if TYPE_CHECKING:
    from ctxsteward.store.profiles.versions import ProfileVersions
    from ctxsteward.store.replication.write_behind import WriteBehind, WriteBehindStatus

    from .integrations.chat import Chat, ChatOptions
    from .recall.earlier_sessions import EarlierSessions

KeptT = TypeVar("KeptT")
CLOSE_SECONDS = 5.0
__all__ = ["JOURNAL_FOLDER", "Journal", "JournalRecord", "SessionKey", "Store", "open_store"]


class Store(Backend):
    """Sessions, envelopes and governed state of every tenant."""

    def __init__(
        self,
        journal: Journal,
        objects: ObjectStore,
        keys: Keys,
        *,
        uri: str,
        draw_nonce: Callable[[], str] = random_nonce,
        patience: Patience | None = None,
        write_behind: bool = False,
        behind: Mapping[str, Any] | None = None,
        folder: Path | None = None,
        derived: DerivedRows | None = None,
        now: Callable[[], str] | None = None,
    ) -> None:
        """Compose a store from its parts. `now` is the clock (ISO 8601) that dates reports. `write_behind` means that
        the journal lies outside the store and is drained into it, with the arguments `behind` of
        `replication.write_behind.WriteBehind`. `folder` is the journal's folder; `derived` keeps
        derived data if not in `folder`."""
        super().__init__(journal, objects, keys, patience=patience, folder=folder, derived=derived)
        self.uri = uri
        self.now = now
        self.unreached: list[Finding] = []
        """Findings about objects out of reach in the last call of `sessions`, `address`, `manifest` or `compaction`."""
        self._keeping = forking.lock()
        self._draw_nonce = draw_nonce
        self.fact_lookup: FactLookup = FactLookup(
            lambda profile, tenant: FactStore(self, profile, tenant),
            wait_seconds=WAIT_SECONDS if write_behind else None,
            erasures=self.erasures,
            sessions=self,
        )
        """Lookup through which sessions query the object store without waiting for one that does not answer."""
        self._earlier: EarlierSessions | None = None
        self._kept: dict[type, object] = {}
        if write_behind:
            from ctxsteward.store.replication.write_behind import WriteBehind

            self.write_behind: WriteBehind = WriteBehind(
                journal, objects, keys, self.vault, erased=self._apply_tombstones, **(behind or {})
            )
            self.appended.append(self.write_behind.grown)
        self._addressed = AddressLookup(journal, keys, self.write_behind, self.unreached)

    def profiles(self, name: str, *, tenant: str = "default") -> ProfileVersions:
        """Return the committed versions of a profile."""
        from ctxsteward.store.profiles.versions import ProfileVersions

        return ProfileVersions(self, name, checked_name("tenant", tenant))

    def earlier_sessions(self) -> EarlierSessions:
        """Return the search in earlier sessions of a person, for sessions opened with `memory`."""
        if self._earlier is None:
            from .recall.earlier_sessions import EarlierSessions

            self._earlier = EarlierSessions(self, self.fact_lookup.ask)
        return self._earlier

    @known_options()
    def session(
        self,
        id: str,
        *,
        tenant: str = "default",
        profile: Profile | None = None,
        tools: Sequence[Wire] | None = (),
        system: str | Sequence[str | Wire] | None = (),
        counter: Counter | None = None,
        memory: MemoryScope | None = None,
    ) -> Session:
        """Open a session for writing, or create it. `system` and `tools` come from the application and are trusted.

        With ``memory="principal"`` each user turn also searches the earlier sessions of the principal who says it.

        A session keeps the profile it was created with. If the journal lies outside the store, this machine becomes the
        session's owner; an object store that does not answer is a finding. Raises `StoreError`, `InvalidMessage`.
        """
        key = SessionKey(checked_name("tenant", tenant), checked_name("session", id))
        check_argument("counter", counter, Counter, "pass Counter(load_tokenizer('o200k_base'))", optional=True)
        check_memory(memory)
        head = head_of(profile, system, tools)
        findings = self._claim(key)
        session = self._session(key, counter, memory)
        open_log(session.replica, head, self._draw_nonce, self.fact_lookup)
        session.findings.extend((*self.findings, *findings))
        for listener in self.appended:
            listener(key)  # other processes may have written to the session meanwhile
        return session

    def chat(
        self,
        id: str,
        *,
        model: str | None = None,
        system: str | Sequence[str | Wire] | None = (),
        **options: Unpack[ChatOptions],
    ) -> Chat:
        """Open a session for an application's own loop of model calls; see `integrations.chat`.

        `tools`, `tenant`, `profile` and `memory` are as in `session`; `principal` is the author of the user messages.
        The model decides `provider` unless it is named. Chats with the same model and `budgets` (default: scaled to the
        model's window) share a builder, unless `builder` is given.
        """
        from .integrations.chat import ChatOptions, open_chat

        check_options("chat", options, ("model", "system", *ChatOptions.__annotations__))
        return open_chat(self, id, model=model, system=system, **options)

    def kept(self, kind: type[KeptT]) -> KeptT:
        """Return the store's only instance of this class; the first call makes it."""
        with self._keeping:
            if kind not in self._kept:
                self._kept[kind] = kind()
            return cast(KeptT, self._kept[kind])

    def __repr__(self) -> str:
        return f"<Store {self.uri}>"

    def at(self, tenant: str, id: str, position: int | None = None) -> Session:
        """Open a session for reading as it was at a log position (default: now). Its owner stays the same."""
        key = SessionKey(tenant, id)
        self._readable(key, position)
        session = self._session(key, None)
        session.replica.load(position)
        return session

    def add_log(self, key: SessionKey, records: Sequence[JournalRecord], manifests: Sequence[Manifest]) -> None:
        """Write all records of a new log, coded for it, and then its manifests; those that are here already stay.

        Without records the log is here. Raises `Conflict`, `Backpressure`, `Erased`, `StoreError`.
        """
        self._claim(key)
        if records:
            self.journal.append(key, 0, records, generation=self.journal.generation(key))
        for manifest in manifests:
            self.journal.put_manifest(key, *manifest)
        for listener in self.appended:
            listener(key)

    def _claim(self, key: SessionKey) -> list[Finding]:
        """Check the keys, or become the session's owner, before a write; return findings about steps that failed."""
        if self.write_behind is None:
            self.check_keys(key.tenant, write=True)
            return []
        try:
            return self.write_behind.opened(key)
        except Erased:  # the session, or a principal of it whose words must go here first
            self._apply_tombstones(key.tenant)
            return self.write_behind.opened(key)

    def _readable(self, key: SessionKey, length: int | None = None) -> None:
        if self.write_behind is None:
            self.check_keys(key.tenant, write=False)
        else:
            self.write_behind.readable(key, length)

    def _apply_tombstones(self, tenant: str) -> None:
        from ctxsteward.store.erasure.forget import apply_tombstones

        apply_tombstones(self, tenant, thorough=True)

    def replay(self, key: SessionKey, length: int) -> None:
        """Read a log up to position `length` from the journal alone; raise an error if that is impossible."""
        log = Log(self.journal, key, self.keys.address_key(key.tenant))
        SessionLogView(log).load(length)

    def _session(self, key: SessionKey, counter: Counter | None, memory: MemoryScope | None = None) -> Session:
        repair = None if self.write_behind is None else self.write_behind.stored_record
        log = Log(self.journal, key, self.keys.address_key(key.tenant), repair, self.appended)
        derived = self.derived_rows or self.folder
        more = self.fact_lookup, derived, self._claim, self.now, self.earlier_sessions, memory
        return Session(log, partial(_counter, counter), self._draw_nonce, self.keys, *more)

    def exists(self, id: str, *, tenant: str = "default") -> bool:
        key = SessionKey(tenant, id)
        if self.journal.length(key) > 0:
            return True
        return self.write_behind is not None and self.write_behind.is_stored(key)

    def sessions(self, *, tenant: str = "default") -> list[str]:
        """Return the ids of the tenant's sessions, here and in the object store; `unreached` tells what is missing."""
        here = self.journal.sessions(tenant)
        if self.write_behind is None:
            return here
        stored = self.write_behind.stored_sessions(tenant)
        self.unreached[:] = stored.findings
        return sorted({*here, *stored.names})

    def address(self, text: str, *, tenant: str = "default", session: str | None = None) -> str:
        """Return the whole address that begins with these digits (at least 8), or the text itself if no address does.

        Addresses unknown here are searched in the object store: in all sessions of the tenant, or in `session` alone.
        Raises `InputError` if several addresses begin so.
        """
        return self._addressed.whole(text, tenant, session)

    def manifest(self, address: str, *, tenant: str = "default", session: str | None = None) -> dict[str, Any]:
        """Return the manifest of a built envelope, found as in `address`; raise `ReferenceNotFound` or `Damaged`."""
        return self._addressed.manifest(address, tenant, session)

    def compaction(self, address: str, *, tenant: str = "default", session: str | None = None) -> WindowCompacted:
        """Return the compaction with this address, found as in `address`; raise `ReferenceNotFound` or `Damaged`."""
        return self._addressed.compaction(address, tenant, session)

    def report(self, address: str, *, tenant: str = "default", session: str | None = None) -> CompressionReport:
        """Return the report with this address, of any section. It is read from the journal, else from the object that
        the address names in the object store, else from the sessions there, as in `address`.

        Raises `ReferenceNotFound`, `Damaged`, `Erased`.
        """
        return self._addressed.report(address, tenant, session)

    def derived_text_erasers(self) -> tuple[Eraser, ...]:
        """Return this store's erasers, and those of summaries that are made ahead for its sessions."""
        from .compaction.ahead import erasers_of

        return (*self.erasers, *erasers_of(self.journal))

    # -- the write-behind ---------------------------------------------------------------------------------------

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until the object store has everything acknowledged; return False if something still waits."""
        return self.write_behind is None or self.write_behind.flush(timeout_seconds)

    def write_behind_status(self) -> WriteBehindStatus | None:
        """Return how much waits for the object store and why, or None if the journal lies in the store."""
        return None if self.write_behind is None else self.write_behind.status()

    def close(self, *, flush_seconds: float = CLOSE_SECONDS) -> None:
        """Close the store, after some time for draining; whatever is unfinished then stays in the journal."""
        if self.write_behind is not None:
            self.write_behind.close(flush_seconds)
        self.journal.close()
        self.objects.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def utc_now() -> str:
    """Return the current time in the format of reports."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@known_options()
def open_store(
    uri: str | PathLike[str],
    *,
    journal: str | Path | None = None,
    keys: Keys | None = None,
    queue_bytes: int = QUEUE_BYTES,
    now: Callable[[], str] = utc_now,
) -> Store:
    """Open ``file:PATH`` or a `Path` (made if missing), ``s3://BUCKET/PREFIX`` (see `s3_location`),
    ``postgresql://USER@HOST/DATABASE`` (see `postgres_database`; it needs `keys`) or ``memory:``.

    `journal` is the folder of the local journal (default: inside a ``file:`` store, else ``.ctxsteward/journal``). A
    journal outside the store is drained into it in the background, and a message is refused with `Backpressure` while
    `queue_bytes` wait. `keys` supplies the tenants' keys (default: files in the store's folder, or in the journal's if
    the store is no folder). `now` dates compaction reports if the builder has no clock of its own.

    Raises `InputError`, `StoreError`.
    """
    parts = open_location(uri, journal=journal, keys=keys, queue_bytes=queue_bytes)
    return Store(
        parts.journal,
        parts.objects,
        parts.keys,
        uri=parts.uri,
        folder=parts.folder,
        write_behind=parts.drains is not None,
        behind=parts.drains,
        derived=parts.derived,
        now=now,
    )


def _counter(given: Counter | None) -> Counter:
    if given is not None:
        return given
    from .tokens.tokenizer import DEFAULT_TOKENIZER, load_tokenizer

    return Counter(load_tokenizer(DEFAULT_TOKENIZER))
