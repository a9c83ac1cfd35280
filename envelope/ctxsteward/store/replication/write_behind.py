"""The write-behind of a store whose journal is outside the object store: draining, and opening sessions.

A session's turns are durable in the local journal when they are acknowledged, and are copied to the object store in the
background. No append or build waits for this.

Opening a session calls the store in a thread of its own and waits only for a short time (`Timing`): `check_seconds` for
the chain's tail, and, if the session must move here, `move_seconds` for reading it and taking it over. A store that
does not answer in time opens the breaker, and the session continues locally with a finding: ownership does not move
while the store is dead. Reading needs no ownership: missing records are copied here, and the owner stays the same.

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
from ..journal.log import forks_above
from ..journal.port import DrainMark, Journal, JournalRecord, SessionKey
from ..names import part_of, report_name
from ..objects.port import ObjectStore, Patience, list_twice
from .breaker import Asker, Breaker, BreakerState, StoreQuestion, Timing
from .drain import Drainer
from .ownership import Ownership, forks_of, moved_from
from .report_objects import read_report
from .segment_log import unreached

MAX_ASKING = 16
"""Most threads that may wait for the store at the same time."""


T = TypeVar("T")

DRAIN_PATIENCE_SECONDS = 6.0
"""Longest time in which one pass resolves a link with unknown outcome; the next pass continues."""
_LOOK_SECONDS = 0.02
_LATE = "the object store did not answer in time when a session was opened"
_UNCHECKED = (
    "the object store did not answer, so whether another machine has taken this session over is not known: what is "
    "written here is kept, and becomes a fork if it has"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBehindStatus:
    """The records, manifests and sessions that wait to be drained, and the reason."""

    waiting_records: int
    waiting_manifests: int
    waiting_sessions: int
    waiting_bytes: int
    oldest_seconds: float
    """Longest wait of a session that this process has observed."""
    last_error: str | None
    breaker: BreakerState


class WriteBehind:
    """Draining and opening sessions of one store. The drainer's thread starts when a session is first opened."""

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
        """Without `background` there are no threads: the caller's thread opens, and `drainer.run_once` drains."""
        self._timing = timing = timing or Timing()
        self._patience = patience = patience or Patience(total_seconds=DRAIN_PATIENCE_SECONDS)
        self._journal, self._objects, self._keys, self._vault, self._probe = journal, objects, keys, vault, probe
        self._background = background
        self._checked: set[str] = set()
        self._copy: tuple[SessionKey, tuple[JournalRecord, ...]] | None = None
        """The last session read by `stored_record`, with its records, for repairs of its log."""
        self.breaker: Breaker = Breaker(timing)
        self.ownership: Ownership = Ownership(journal, objects, keys, vault, patience=patience)
        self.drainer: Drainer = Drainer(
            journal, self.ownership, self.breaker, self.prepare, erased=erased, lock_path=lock_path, timing=timing
        )
        self._asker = Asker("sessions", MAX_ASKING, late=_LATE, breaker=self.breaker, background=background)

    def prepare(self, tenant: str, *, write: bool = True) -> None:
        """Check the endpoint and the tenant's keys, before the tenant's objects are first accessed."""
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
        """Make this journal the owner of a session to be written, if the store answers; return findings to show."""
        self.start()
        findings = []
        if not self._asked(lambda asked: self._move_here(key, asked)):
            self._check_parents(key)
            drained = self._journal.drained(key)
            if drained.epoch < 0:  # 0: the session is claimed with the next segment, if nobody has written since
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
        """Copy at least `length` records of a session into the journal. If the store does not answer, keep the
        journal's; raise `StoreUnavailable` if those are fewer than `length`, or none, or if a parent's are missing."""
        try:
            self._reach(lambda: self._read_in(key, length))
        except StoreUnavailable:
            if self._journal.length(key) < (length or 1):
                raise
            self._check_parents(key)

    def all_readable(self, tenant: str) -> tuple[Finding, ...]:
        """Copy all sessions of a tenant into the journal; return a finding per unreadable one. Raises
        `StoreUnavailable`."""

        def read_all() -> tuple[Finding, ...]:
            stored = self.sessions(tenant)
            findings = list(stored.findings)
            for session in stored.names:
                try:
                    self._read_in(SessionKey(tenant, session))
                except (Damaged, ObjectMissing, UnsupportedVersion) as error:
                    findings.append(unreached(session, error))
                except Erased:
                    continue  # it has no readable record
            return tuple(findings)

        return self._reach(read_all)

    def stored_sessions(self, tenant: str) -> ReachedSessions:
        """Return the ids of the sessions in the object store; none if it does not answer."""
        try:
            return self._reach(lambda: self.sessions(tenant))
        except StoreUnavailable as error:
            return ReachedSessions(
                (), (Finding(kind="store_unreachable", text=f"sessions there are not named: {error}"),)
            )

    def is_stored(self, key: SessionKey) -> bool:
        """Return whether the object store has the session. Raises `StoreUnavailable`."""
        return self._reach(lambda: self.holds(key))

    def stored_record(self, key: SessionKey, position: int) -> JournalRecord | None:
        """Return a record from the object store, or None if it has none or does not answer in time."""
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
        """Return the compression report with this address from the object store, or None if it has none or does not
        answer.

        Raises `Damaged`, and `Erased` if its session was forgotten.
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
        """Return the addresses of stored reports that begin with these digits; none if the store does not answer."""
        prefix = report_name(tenant, digits)
        try:
            return self._reach(lambda: [info.key.rpartition("/")[2] for info in self._objects.list(prefix)])
        except StoreUnavailable:
            return []

    def flush(self, timeout_seconds: float, *, patient: bool = True) -> bool:
        """Wait until everything is drained; return False if it is not in time. Without `patient`, do not wait for a
        store that does not answer."""
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
        """Start the drainer's thread if it does not run, also in a child process."""
        if self._background:
            self.drainer.start()

    def grown(self, key: SessionKey) -> None:
        """Start the drainer after an append."""
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
        """Drain as much as the time allows, and end the thread; return whether everything was drained."""
        drained = self.flush(timeout_seconds, patient=False)
        return self.drainer.stop(timeout_seconds) and drained

    # -- for erasure: `RemoteSessions` -----------------------------------------------------------------------

    def sessions(self, tenant: str) -> ReachedSessions:
        """Return the ids of the sessions in the object store that are not forgotten; findings name chains whose id
        cannot be read, and chains that exist but are not listed.
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
        """Return whether the object store has the session, without a listing."""
        self.prepare(key.tenant, write=False)
        return self.ownership.log(key).is_there()

    def parent(self, key: SessionKey) -> str | None:
        """Return the session that this one was forked from, or None."""
        first = self.ownership.log(key).first()
        origin = fork_point([] if first is None else [first])
        return moved_from(key.session) if origin is None else origin.session

    def subjects(self, key: SessionKey) -> ReachedSessions:
        """Return the addresses of the subjects whose keys encrypt a session's records."""
        return self.ownership.log(key).subjects()

    def claim(self, key: SessionKey) -> None:
        """Take a session over, and bring the local journal up to date."""
        self.ownership.catch_up(key, claim="always")
        self._read_in(key)

    def rewritten(self, key: SessionKey, positions: Iterable[int]) -> None:
        """Drain the records at these positions again, because they were replaced or have lost their key."""
        self.ownership.rewrite(key, positions)

    def mend(self, key: SessionKey) -> None:
        """Drain records of this journal's again whose key was destroyed before another machine could read them."""
        self.ownership.mend(key)

    # -- inside ---------------------------------------------------------------------------------------------------

    def _read_in(self, key: SessionKey, length: int | None = None) -> None:
        """Copy at least `length` records (default: all) of a session into the journal, without a change of owner."""
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
        """Copy the parents of a fork, because their logs have the records that it shares."""
        for _, parent in self._missing_parents(key):
            if asked is not None:
                asked.takes_long.set()
            wanted = (lambda: True) if asked is None else asked.wanted
            self.ownership.catch_up(parent, claim="never", wanted=wanted)

    def _check_parents(self, key: SessionKey) -> None:
        """Raise `StoreUnavailable` if the journal lacks records that this fork shares with a parent."""
        for fork, parent in self._missing_parents(key):
            raise StoreUnavailable(
                f"session {fork.session!r} is a fork of {parent.session!r}, whose records are not on this machine, "
                "and the object store does not answer; open it again when it does"
            )

    def _missing_parents(self, key: SessionKey) -> Iterator[tuple[SessionKey, SessionKey]]:
        """Yield each fork, from this session up, and its parent if the journal lacks records that it shares."""
        for fork, origin in forks_above(self._journal, key):
            is_drained = self._journal.drained(fork).number > 0
            parent = SessionKey(fork.tenant, origin.session)
            # A fork that was drained shares what was drained of its parent, not turns that wait here at the same place.
            there = self._journal.drained(parent).position if is_drained else self._journal.length(parent)
            if there < origin.position:
                yield fork, parent

    def _seen(self, folder: str) -> Iterator[str]:
        """Yield the addresses of sessions that this journal has ever seen in the object store."""
        for name in self._journal.witnessed():
            if name.startswith(folder) and name.endswith("/log"):
                yield name[len(folder) : -len("/log")]

    def _asked(self, work: Callable[[StoreQuestion], None]) -> bool:
        """Run `work` and return whether the store answered in time."""
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
