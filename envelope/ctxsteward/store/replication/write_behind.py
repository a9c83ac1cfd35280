"""The write-behind of a store whose journal lies outside the object store: draining, and opening sessions.

A session's turns are durable in the local journal when they are acknowledged; from there they are carried to the object
store in the background. Nothing of this is on the path of an append or a build.

Opening a session asks the store in a thread of its own and waits for it for a moment only (`Timing`): `check_seconds`
for the chain's tail; where that shows that the session has to move here, `move_seconds` for reading it and taking it
over. A store that does not answer in time opens the breaker, and the session goes on locally with a finding: ownership
does not move while the store is dead. Reading needs no ownership: what is not here is read in and stays somebody
else's.

Sizes in bytes, times in seconds. Raises `Erased`, `Damaged`, and `StoreError` for a tenant that was written with other
keys.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ctxsteward.schemas import Erased, Finding, StoreError, StoreUnavailable
from ctxsteward.schemas.errors import Damaged, ObjectMissing, OutcomeUnknown, UnsupportedVersion
from ctxsteward.schemas.message import Wire

from ..crypto.keyring import Keys, check_keys
from ..crypto.vault import Vault
from ..journal.erasures import ReachedSessions
from ..journal.events import fork_point
from ..journal.port import DrainMark, Journal, JournalRecord, SessionKey
from ..names import part_of, report_name
from ..objects.port import ObjectStore, Patience, list_twice
from .drain import Asker, Breaker, BreakerState, Drainer, StoreQuestion, Timing
from .ownership import Ownership, forks_of
from .report_objects import read_report
from .segment_log import unreached

MAX_ASKING = 16
"""Threads that may wait for a store that does not answer."""


T = TypeVar("T")

DRAIN_PATIENCE_SECONDS = 6.0
"""A link whose outcome is not known is asked about for so long, then by the next pass."""
_LOOK_SECONDS = 0.02
_LATE = "the object store did not answer in time when a session was opened"
_UNCHECKED = (
    "the object store did not answer, so whether another machine has taken this session over is not known: what is "
    "written here is kept, and becomes a fork if it has"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBehindStatus:
    """What waits for the object store, and why."""

    waiting_records: int
    waiting_manifests: int
    waiting_sessions: int
    waiting_bytes: int
    oldest_seconds: float
    """How long the oldest of it has been waiting, as this process has seen it."""
    last_error: str | None
    breaker: BreakerState


class WriteBehind:
    """Draining and opening sessions of one store. The drainer's thread starts with the first session that is opened."""

    def __init__(
        self,
        journal: Journal,
        objects: ObjectStore,
        keys: Keys,
        vault: Callable[[str], Vault],
        *,
        erased: Callable[[str], object] = lambda tenant: None,
        lock_path: Path | None = None,
        probe: Callable[[], None] | None = None,
        patience: Patience | None = None,
        timing: Timing | None = None,
        background: bool = True,
    ) -> None:
        """Without `background` there are no threads: opening asks in the caller's, and `drainer.run_once` drains."""
        self._timing = timing = timing or Timing()
        self._patience = patience = patience or Patience(total_seconds=DRAIN_PATIENCE_SECONDS)
        self._journal, self._objects, self._keys, self._vault, self._probe = journal, objects, keys, vault, probe
        self._background = background
        self._checked: set[str] = set()
        self._copy: tuple[SessionKey, tuple[JournalRecord, ...]] | None = None
        """The session that was asked for last, to mend its journal."""
        self.breaker: Breaker = Breaker(timing)
        self.ownership: Ownership = Ownership(journal, objects, keys, vault, patience=patience)
        self.drainer: Drainer = Drainer(
            journal, self.ownership, self.breaker, self.prepare, erased=erased, lock_path=lock_path, timing=timing
        )
        self._asker = Asker("sessions", MAX_ASKING, late=_LATE, breaker=self.breaker, background=background)

    def prepare(self, tenant: str, *, write: bool = True) -> None:
        """Before a tenant's objects are touched for the first time: is the endpoint fit, are these its keys?"""
        if tenant in self._checked:
            return
        if write and self._probe is not None:
            self._probe()
            self._probe = None
        check_keys(self._objects, self._keys, tenant, write=write, patience=self._patience)
        if write:
            self._checked.add(tenant)

    # -- opening sessions -----------------------------------------------------------------------------------------

    def opened(self, key: SessionKey) -> list[Finding]:
        """Become the owner of a session that is about to be written to, if the store can be asked; findings to show."""
        self.start()
        findings = []
        if not self._asked(lambda asked: self._move_here(key, asked)):
            drained = self._journal.drained(key)
            if drained.epoch < 0:  # the first segment decides whose the session is
                self._journal.set_drained(key, DrainMark(drained.position, drained.number, 0))
            findings.append(Finding(kind="ownership_unchecked", text=_UNCHECKED))
        for fork in forks_of(self._journal, key) if self.ownership.was_fenced(key) else ():
            text = (
                "another machine took this session over; what had been written here and nowhere else is in session "
                f"{fork!r}: open it, or append it again"
            )
            findings.append(Finding(kind="fenced", field="session", text=text))
        return findings

    def readable(self, key: SessionKey, length: int | None = None) -> None:
        """Read a session in, up to at least `length` records. Where the store does not answer, what is here has to
        do; `StoreUnavailable` where that is nothing."""
        try:
            self._reach(lambda: self._read_in(key, length))
        except StoreUnavailable:
            if self._journal.length(key) < (length or 1):
                raise

    def all_readable(self, tenant: str) -> tuple[Finding, ...]:
        """Read all sessions of a tenant in; which ones cannot be, and why. Raises `StoreUnavailable`."""

        def read_all() -> tuple[Finding, ...]:
            stored = self.sessions(tenant)
            findings = list(stored.findings)
            for session in stored.names:
                try:
                    self._read_in(SessionKey(tenant, session))
                except (Damaged, ObjectMissing, UnsupportedVersion) as error:
                    findings.append(unreached(session, error))
                except Erased:
                    continue  # there is nothing of it to read
            return tuple(findings)

        return self._reach(read_all)

    def stored_sessions(self, tenant: str) -> ReachedSessions:
        """Ids of the sessions in the object store; none where it does not answer."""
        try:
            return self._reach(lambda: self.sessions(tenant))
        except StoreUnavailable as error:
            return ReachedSessions(
                (), (Finding(kind="store_unreachable", text=f"sessions there are not named: {error}"),)
            )

    def is_stored(self, key: SessionKey) -> bool:
        """Whether the object store holds the session. Raises `StoreUnavailable`."""
        return self._reach(lambda: self.holds(key))

    def stored_record(self, key: SessionKey, position: int) -> JournalRecord | None:
        """A record as the object store has it; None where it has none, or does not answer in a moment."""
        copy = self._copy
        if copy is None or copy[0] != key or position >= len(copy[1]):

            def read(asked: StoreQuestion) -> None:
                self._copy = (key, self.ownership.log(key).behind(DrainMark()).records)

            try:
                if not self._asked(read) or self._copy is None:
                    return None
            except StoreError:
                return None
            copy = self._copy
        return copy[1][position] if copy[0] == key and 0 <= position < len(copy[1]) else None

    def stored_report(self, tenant: str, address: str) -> Wire | None:
        """The compression report that this address names in the object store; None where it has none, or does not
        answer.

        Raises `Erased` where its session was forgotten, `Damaged`.
        """

        def read() -> Wire | None:
            self.prepare(tenant, write=False)
            vault = Vault(self._objects, self._keys, tenant)
            try:
                return read_report(self._objects, vault, address)
            except ObjectMissing:
                return None

        try:
            return self._reach(read)
        except StoreUnavailable:
            return None

    def stored_report_addresses(self, tenant: str, digits: str) -> list[str]:
        """Addresses of reports in the object store that begin with these digits; none where it does not answer."""
        prefix = report_name(tenant, digits)
        try:
            return self._reach(lambda: [info.key.rpartition("/")[2] for info in self._objects.list(prefix)])
        except StoreUnavailable:
            return []

    def flush(self, timeout_seconds: float, *, patient: bool = True) -> bool:
        """Wait until nothing waits any more; False where something still does. Without `patient`, a store that does
        not answer is not waited for."""
        until = self._timing.clock() + timeout_seconds
        try:
            while self._journal.waiting(1):
                if self._timing.clock() >= until or not (patient or self.breaker.last_error is None):
                    return False
                self.drainer.hurry = True
                if self._background:
                    self.drainer.start()
                    self.drainer.wake()
                    time.sleep(_LOOK_SECONDS)
                else:
                    self.drainer.run_once()
            return True
        finally:
            self.drainer.hurry = False

    def start(self) -> None:
        """Have what waits drained, in a process that is a child of the one that began with it, too."""
        if self._background:
            self.drainer.start()

    def grown(self, key: SessionKey) -> None:
        """A session was appended to here."""
        self.start()

    def status(self) -> WriteBehindStatus:
        waiting = self._journal.waiting(1 << 30)
        return WriteBehindStatus(
            waiting_records=sum(max(0, log.length - log.drained.position) for log in waiting),
            waiting_manifests=sum(log.manifests for log in waiting),
            waiting_sessions=len(waiting),
            waiting_bytes=self._journal.waiting_bytes(),
            oldest_seconds=self.drainer.oldest_seconds(waiting),
            last_error=self.breaker.last_error or self.drainer.last_error,
            breaker=self.breaker.state,
        )

    def close(self, timeout_seconds: float) -> bool:
        """Drain what waits, as far as the time goes, and end the thread."""
        drained = self.flush(timeout_seconds, patient=False)
        return self.drainer.stop(timeout_seconds) and drained

    # -- for erasure: `RemoteSessions` -----------------------------------------------------------------------

    def sessions(self, tenant: str) -> ReachedSessions:
        """Ids of the sessions in the object store that are not forgotten; findings are chains of which that cannot be
        told, and what was there once and is not listed.
        """
        self.prepare(tenant, write=False)
        vault = self._vault(tenant)
        known = {vault.subject_address(session): session for session in self._journal.sessions(tenant)}
        folder = f"sessions/{part_of(tenant)}/"
        listed = dict.fromkeys(key.removeprefix(folder).partition("/")[0] for key in list_twice(self._objects, folder))
        names, findings = [], []
        for address in dict.fromkeys((*listed, *self._seen(folder))):
            chain = f"{folder}{address}/log"
            try:
                name = known.get(address) or self.ownership.stored_id(tenant, address)
            except (Damaged, ObjectMissing, UnsupportedVersion) as error:
                missing = f"{error.key} is missing" if isinstance(error, ObjectMissing) else ""
                findings.append(unreached(chain, missing or error))
                continue
            if address not in listed:
                text = "it is there, and the store's listing leaves it out: there may be more"
                findings.append(Finding(kind="listing_incomplete", field=chain, text=text))
            if name is not None:
                names.append(name)
                if address not in known:
                    self._journal.see(chain, 1)
        return ReachedSessions(tuple(sorted(names)), tuple(findings))

    def holds(self, key: SessionKey) -> bool:
        """Whether the object store holds the session; asked for by its name."""
        self.prepare(key.tenant, write=False)
        return self.ownership.log(key).is_there()

    def parent(self, key: SessionKey) -> str | None:
        """Of which session it is a fork."""
        first = self.ownership.log(key).first()
        origin = fork_point([] if first is None else [first])
        return None if origin is None else origin.session

    def subjects(self, key: SessionKey) -> ReachedSessions:
        """Addresses of the subjects under whose keys a session's records are encrypted."""
        return self.ownership.log(key).subjects()

    def claim(self, key: SessionKey) -> None:
        """Take a session over, and bring the local journal up to date."""
        self.ownership.catch_up(key, claim="always")
        self._read_in(key)

    def rewritten(self, key: SessionKey, positions: Iterable[int]) -> None:
        """Records at these positions were replaced, or have lost their key: drain them again."""
        self.ownership.rewrite(key, positions)

    # -- inside ---------------------------------------------------------------------------------------------------

    def _read_in(self, key: SessionKey, length: int | None = None) -> None:
        """Read the session in, up to at least `length` records (default: all of it), without taking it over."""
        if not (length is not None and self._journal.length(key) >= length > 0):
            self.prepare(key.tenant, write=False)
            log, drained = self.ownership.log(key), self._journal.drained(key)
            if log.tail(drained.number) > drained.number or (not drained.number and log.is_there()):
                self.ownership.catch_up(key, claim="if_unchanged" if drained.epoch > 0 else "never")
        self._read_parents(key)

    def _move_here(self, key: SessionKey, asked: StoreQuestion) -> None:
        self.prepare(key.tenant)
        drained, log = self._journal.drained(key), self.ownership.log(key)
        tail = log.tail(drained.number)
        log.check_not_erased()
        if tail and (tail > drained.number or drained.epoch <= 0):
            asked.takes_long.set()
            self.ownership.catch_up(key, claim="always", wanted=asked.wanted)
        self._read_parents(key, asked)

    def _read_parents(self, key: SessionKey, asked: StoreQuestion | None = None) -> None:
        """What a fork shares with its parent lies in the parent's log."""
        while (origin := fork_point(self._journal.read(key, 0, 1))) is not None:
            key = SessionKey(key.tenant, origin.session)
            if self._journal.length(key) < origin.position:
                if asked is not None:
                    asked.takes_long.set()
                wanted = (lambda: True) if asked is None else asked.wanted
                self.ownership.catch_up(key, claim="never", wanted=wanted)

    def _seen(self, folder: str) -> Iterator[str]:
        """Addresses of sessions that this journal has ever seen in the object store."""
        for name in self._journal.witnessed():
            if name.startswith(folder) and name.endswith("/log"):
                yield name[len(folder) : -len("/log")]

    def _asked(self, work: Callable[[StoreQuestion], None]) -> bool:
        """Whether the store has answered in time."""
        try:
            self._asker.ask(work, self._timing.check_seconds, self._timing.move_seconds)
        except (StoreUnavailable, OutcomeUnknown):
            return False
        return True

    def _reach(self, read: Callable[[], T]) -> T:
        if self.breaker.pause_seconds() > 0:
            raise StoreUnavailable(f"the object store did not answer a moment ago: {self.breaker.last_error}")
        try:
            return read()
        except StoreUnavailable as error:
            self.breaker.failed(error)
            raise
