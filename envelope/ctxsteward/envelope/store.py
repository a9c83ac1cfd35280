"""The store: where sessions and governed state live.

    open_store("file:./.ctxsteward")            one folder: journal, objects, keys
    open_store("s3://bucket/prefix", journal="/var/lib/app/journal", keys=MasterKeys(…))
    open_store("memory:")
    store.cards()                                  have context cards made beside the chat path

`Store` is a `Backend` (journal, object store, keys) with sessions on top. A turn is acknowledged by the journal;
everything else is in the object store for good. Where the journal lies outside the store, a write-behind drains it into
the object store and never blocks a build.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ctxsteward.schemas import CompressionReport, Erased, Finding, InputError, ReferenceNotFound, StoreError, Wire
from ctxsteward.store import process_forks as forking
from ctxsteward.store.backend import Backend
from ctxsteward.store.crypto.keyring import Keys, file_keys, memory_keys
from ctxsteward.store.facts.lookup import WAIT_SECONDS, FactLookup
from ctxsteward.store.journal.erasures import erasures
from ctxsteward.store.journal.events import WindowCompacted
from ctxsteward.store.journal.port import Journal, JournalRecord, SessionKey
from ctxsteward.store.names import checked_name
from ctxsteward.store.objects.port import ObjectStore, Patience
from ctxsteward.store.profiles.text import Profile

from .address_lookup import AddressLookup
from .history.originals import report_in
from .history.session import Session
from .history.session_head import head_of
from .layout.rows import random_nonce
from .tokens.tokenizer import Counter

if TYPE_CHECKING:
    from ctxsteward.store.facts.fact_store import FactStore
    from ctxsteward.store.journal.erasures import Eraser
    from ctxsteward.store.profiles.versions import ProfileVersions
    from ctxsteward.store.replication.write_behind import WriteBehindStatus

    from .cards import CardIndex, CardMaker, StoreCards


def with_append_hints(journal: Journal, hint: Callable[[SessionKey], None]) -> Journal:
    """The journal, with a hint of the log's key after every append that it has taken."""
    return cast(Journal, _HintingJournal(journal, hint))


class _HintingJournal:
    def __init__(self, journal: Journal, hint: Callable[[SessionKey], None]) -> None:
        self._journal, self._hint = journal, hint

    def append(self, key: SessionKey, position: int, records: Sequence[JournalRecord], *, generation: int = 0) -> None:
        self._journal.append(key, position, records, generation=generation)
        self._hint(key)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)


DEFAULT_TOKENIZER = "o200k_base"
"""Counts stored with each message, unless a session is opened with another."""
JOURNAL_FOLDER = ".ctxsteward/journal"
"""Of a store that is no folder."""
CARDS_FILE = "cards.sqlite"
"""The index of context cards, beside the journal."""
QUEUE_BYTES = 1 << 30
CLOSE_SECONDS = 5.0
PROBE_SECONDS = 3.0

__all__ = ["Journal", "JournalRecord", "SessionKey", "Store", "open_store"]


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
        cards: str | None = None,
    ) -> None:
        """`write_behind`: the journal lies outside the store and is drained into it; `behind` are arguments of
        `writebehind.behind.WriteBehind`. `folder` is the journal's, `cards` as in `open_store`."""
        super().__init__(journal, objects, keys, patience=patience, folder=folder)
        self.uri = uri
        self.unreached: list[Finding] = []
        """What the last call of `sessions`, `address`, `manifest` or `compaction` could not reach."""
        self._own_cards = "memory:" if folder is None else f"sqlite:{folder / CARDS_FILE}"
        self.cards_uri = self._own_cards if cards is None else cards
        """Where this store's context cards are, whether anybody keeps them up or not."""
        self._cards: StoreCards | None = None
        self._keeping = forking.lock()
        self._draw_nonce = draw_nonce
        self._checked: set[str] = set()
        self.fact_lookup = FactLookup(
            lambda profile, tenant: self.facts(profile, tenant=tenant),
            wait_seconds=WAIT_SECONDS if write_behind else None,
            erasures=partial(erasures, journal),
        )
        """How sessions of this store learn what is known about their users."""
        if write_behind:
            from ctxsteward.store.replication.write_behind import WriteBehind

            self.write_behind = WriteBehind(
                journal, objects, keys, self.vault, erased=self._apply_tombstones, **(behind or {})
            )
        self._addressed = AddressLookup(journal, keys, self.write_behind, self.unreached)

    def profiles(self, name: str, *, tenant: str = "default") -> ProfileVersions:
        """The committed versions of a profile."""
        from ctxsteward.store.profiles.versions import ProfileVersions

        return ProfileVersions(self, name, checked_name("tenant", tenant))

    def facts(self, profile: str, *, tenant: str = "default") -> FactStore:
        """What is known about single users, projects and sessions of this profile."""
        from ctxsteward.store.facts.fact_store import FactStore

        return FactStore(self, profile, checked_name("tenant", tenant))

    def session(
        self,
        id: str,
        *,
        tenant: str = "default",
        profile: Profile | None = None,
        tools: Sequence[Wire] | None = (),
        system: str | Sequence[str | Wire] | None = (),
        counter: Counter | None = None,
        project: str | None = None,
    ) -> Session:
        """Open a session for writing, or create it. `system` and `tools` are the application's own, and trusted.

        With a `project` it is shown what is known about that, too; a session keeps the one it was last opened for.

        A session keeps the profile it was created with. Where the journal lies outside the store, this machine becomes
        the session's owner; a store that does not answer is a finding. Raises `StoreError`, `InvalidMessage`.
        """
        key = SessionKey(checked_name("tenant", tenant), checked_name("session", id))
        head = head_of(profile, system, tools, project)
        findings = self._claim(key)
        session = self._session(key, counter)
        session.open(head)
        session.findings.extend((*self.findings, *findings))
        self._hint(key)  # others may have written to it meanwhile
        return session

    def at(self, tenant: str, id: str, position: int | None = None) -> Session:
        """A session as it was at a log position (default: as it is now), for reading only: it moves to no machine."""
        key = SessionKey(tenant, id)
        self._readable(key, position)
        session = self._session(key, None)
        session.load(upto=position)
        return session

    def _claim(self, key: SessionKey) -> list[Finding]:
        """Before a session is written to: are the keys the right ones, is it ours?"""
        if self.write_behind is None:
            self._check_keys(key.tenant, write=True)
            return []
        try:
            return self.write_behind.opened(key)
        except Erased:
            self._apply_tombstones(key.tenant)
            raise

    def _readable(self, key: SessionKey, length: int | None = None) -> None:
        if self.write_behind is None:
            self._check_keys(key.tenant, write=False)
        else:
            self.write_behind.readable(key, length)

    def _check_keys(self, tenant: str, *, write: bool) -> None:
        """Raise `StoreError` where the tenant was written with other keys; asked once."""
        if tenant not in self._checked:
            from ctxsteward.store.crypto.keyring import check_keys

            check_keys(self.objects, self.keys, tenant, write=write, patience=self.patience)
            if write:
                self._checked.add(tenant)

    def _apply_tombstones(self, tenant: str) -> None:
        from ctxsteward.store.erasure.forget import apply_tombstones

        apply_tombstones(self, tenant, thorough=True)

    def replay(self, key: SessionKey, length: int) -> None:
        """Read this much of a log into a session, with what is here alone."""
        Session(self.journal, key, _no_counter, lambda: "", self.keys).load(upto=length)

    def _session(self, key: SessionKey, counter: Counter | None) -> Session:
        repair = None if self.write_behind is None else self.write_behind.opening.stored_record
        journal = with_append_hints(self.journal, self._hint)
        return Session(journal, key, partial(_counter, counter), self._draw_nonce, self.keys, repair, self.fact_lookup)

    def exists(self, id: str, *, tenant: str = "default") -> bool:
        key = SessionKey(tenant, id)
        if self.journal.length(key) > 0:
            return True
        return self.write_behind is not None and self.write_behind.is_stored(key)

    def sessions(self, *, tenant: str = "default") -> list[str]:
        """Ids of the tenant's sessions, here and in the object store; `unreached` says which could not be named."""
        here = self.journal.sessions(tenant)
        if self.write_behind is None:
            return here
        stored = self.write_behind.stored_sessions(tenant)
        self.unreached[:] = stored.findings
        return sorted({*here, *stored.names})

    def address(self, text: str, *, tenant: str = "default", session: str | None = None) -> str:
        """The whole address that these leading digits (8 and more) name; the text itself where they name none.

        What is not known here is looked for in the object store: in all sessions of the tenant, or in `session` alone.
        Raises `InputError` where they name several.
        """
        return self._addressed.whole(text, tenant, session)

    def manifest(self, address: str, *, tenant: str = "default", session: str | None = None) -> dict[str, Any]:
        """The manifest of a built envelope, looked for as in `address`; raises `ReferenceNotFound`, `Damaged`."""
        return self._addressed.manifest(address, tenant, session)

    def compaction(self, address: str, *, tenant: str = "default", session: str | None = None) -> WindowCompacted:
        """The compaction with this address, looked for as in `address`; raises `ReferenceNotFound`, `Damaged`."""
        return self._addressed.compaction(address, tenant, session)

    def report(self, address: str, *, tenant: str = "default", session: str | None = None) -> CompressionReport:
        """The report with this address, of dynamic or of meta, looked for as in `address`.

        Raises `ReferenceNotFound`, `Damaged`.
        """
        try:
            return self._addressed.compaction(address, tenant, session).report
        except ReferenceNotFound:
            report = report_in(self._addressed.manifest(address, tenant, session))
            if report is None:
                raise
            return report

    # -- context cards ------------------------------------------------------------------------------------------

    def cards(
        self,
        index: CardIndex | str | None = None,
        *,
        maker: CardMaker | None = None,
        tenants: Sequence[str] | None = None,
    ) -> StoreCards:
        """Keep an index of context cards up with the sessions, in threads of their own; an append never waits for it.

        `index` is where they go, a URI as `cards.open_cards` takes it or an index of yours (default: `cards_uri`);
        `maker` how they are made (default: `cards.card_maker()`); `tenants` whose (default: all). What was appended
        before is caught up with, also after a kill. Ends with the store, as what is forgotten leaves the index; called
        again without arguments it is the same. Raises `InputError`, `StoreError`.
        """
        with self._keeping:
            if self._cards is None or self._cards.closed:
                from .cards.worker import StoreCards

                self._cards = StoreCards(self, index, maker, tenants)
            elif index is not None or maker is not None or tenants is not None:
                raise InputError("this store keeps its cards already; `store.cards()` gives them, or close those first")
            return self._cards

    def card_uris(self) -> tuple[str, ...]:
        """Where this store has cards, or may have: `cards_uri`, and what lies beside the journal in any case."""
        return tuple(dict.fromkeys((self.cards_uri, self._own_cards)))

    def derived_text_erasers(self) -> tuple[Eraser, ...]:
        """Its erasers, and those of its indexes of context cards that nobody here has open."""
        from .cards.erasure import lazy_card_eraser

        return (*self.erasers, *lazy_card_eraser(self))

    def _hint(self, key: SessionKey) -> None:
        if self.write_behind is not None:
            self.write_behind.start()
        kept = self._cards
        if kept is not None:
            kept.hint(key)

    # -- the write-behind ---------------------------------------------------------------------------------------

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until all that was acknowledged is in the object store; False where something still waits."""
        return self.write_behind is None or self.write_behind.flush(timeout_seconds)

    def write_behind_status(self) -> WriteBehindStatus | None:
        """What waits for the object store, and why; None where the journal lies in the store."""
        return None if self.write_behind is None else self.write_behind.status()

    def close(self, *, flush_seconds: float = CLOSE_SECONDS) -> None:
        """Give what waits some time to be carded and to reach the object store; what does not waits in the journal."""
        if self._cards is not None:
            self._cards.close(flush_seconds)
        if self.write_behind is not None:
            self.write_behind.close(flush_seconds)
        self.journal.close()
        self.objects.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_store(
    uri: str | PathLike[str],
    *,
    journal: str | Path | None = None,
    keys: Keys | None = None,
    cards: str | None = None,
    queue_bytes: int = QUEUE_BYTES,
) -> Store:
    """Open ``file:PATH`` or a `Path` (made if missing), ``s3://BUCKET/PREFIX`` (see `objects.s3_uri`) or ``memory:``.

    `journal` is the folder of the local journal (default: inside a ``file:`` store, else ``.ctxsteward/journal``);
    outside the store it is drained into it in the background, and a message is refused with `Backpressure` while
    `queue_bytes` wait. `keys` is where tenants' keys come from: by default files in the store's folder, or in the
    journal's where the store is no folder. `cards` names the index of context cards, ``sqlite:PATH`` or
    ``postgresql://…`` (default: ``cards.sqlite`` beside the journal); `Store.cards` keeps it up. Raises `InputError`,
    `StoreError`.
    """
    if isinstance(uri, PathLike):
        uri = f"file:{fspath(uri)}"
    if not isinstance(uri, str):
        raise InputError(f"a store is opened by a URI or a path, not {type(uri).__name__}; write file:PATH")
    scheme, separator, rest = uri.partition(":")
    if scheme == "memory" and separator and not rest and journal is None:
        from ctxsteward.store.journal.memory import MemoryJournal
        from ctxsteward.store.objects.memory import MemoryObjects

        return Store(MemoryJournal(), MemoryObjects(), keys or memory_keys(), uri=uri, cards=cards)
    if scheme == "file" and rest:
        from ctxsteward.store.journal.sqlite import FileJournal
        from ctxsteward.store.objects.file import FileObjects

        root = Path(rest)
        objects, keys = FileObjects(root / "objects"), keys or file_keys(root / "keys")
        if journal is not None and Path(journal).resolve() != root.resolve():
            return _drained(uri, objects, Path(journal), keys, cards, queue_bytes)
        around = (root / "objects", root / "keys")
        own = FileJournal(root, address_key=keys.address_key, inhabited=lambda: any(map(_has_files, around)))
        return Store(own, objects, keys, uri=uri, folder=root, cards=cards)
    if scheme == "s3" and rest.startswith("//"):
        from ctxsteward.store.objects.s3 import S3Objects

        folder = Path(JOURNAL_FOLDER if journal is None else journal)
        bucket = S3Objects.open(uri)
        try:
            probe = None if _answers(bucket.probe) else bucket.probe
            return _drained(uri, bucket, folder, keys or file_keys(folder / "keys"), cards, queue_bytes, probe)
        except BaseException:
            bucket.close()
            raise
    raise InputError(f"store {uri!r} is none; write file:PATH, s3://BUCKET/PREFIX or memory: (which has no journal)")


def _drained(
    uri: str,
    objects: ObjectStore,
    folder: Path,
    keys: Keys,
    cards: str | None,
    queue_bytes: int,
    probe: Callable[[], None] | None = None,
) -> Store:
    from ctxsteward.store.journal.sqlite import FileJournal

    journal = FileJournal(folder, drains=True, queue_bytes=queue_bytes, address_key=keys.address_key)
    behind = {"lock_path": folder / "drain.lock", "probe": probe}
    return Store(journal, objects, keys, uri=uri, write_behind=True, behind=behind, folder=folder, cards=cards)


def _has_files(folder: Path) -> bool:
    return any(files for _, _, files in os.walk(folder))


def _answers(probe: Callable[[], None]) -> bool:
    """Whether the endpoint was found fit in the time there is; raises `InputError` where it is not.

    Where it does not answer the store opens all the same, and the write-behind asks before it writes anything.
    """
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            probe()
        except BaseException as error:  # handed to whoever waits
            failed.append(error)

    asking = threading.Thread(target=ask, name="ctxsteward probe", daemon=True)
    asking.start()
    asking.join(PROBE_SECONDS)
    if asking.is_alive() or (failed and isinstance(failed[0], StoreError)):
        return False
    if failed:
        raise failed[0]
    return True


def _no_counter() -> Counter:
    raise AssertionError("reading counts no tokens")


def _counter(given: Counter | None) -> Counter:
    if given is not None:
        return given
    from .tokens.tokenizer import load_tokenizer

    return Counter(load_tokenizer(DEFAULT_TOKENIZER))
