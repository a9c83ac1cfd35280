"""Opening a session whose journal lies outside the object store: is it still ours, and is all of it here?

Opening asks the store in a thread of its own and waits for it for a moment only: for the chain's tail `check_seconds`;
where that shows that the session has to move here, `move_seconds` for reading it and taking it over. A store that does
not answer in time opens the breaker, and the session goes on locally with a finding: ownership does not move while the
store is dead. Reading needs no ownership: what is not here is read in and stays somebody else's.

Raises `Erased`, `Damaged`, and `StoreError` for a tenant that was written with other keys.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from ctxsteward.schemas import (
    Damaged,
    Erased,
    Finding,
    ObjectMissing,
    OutcomeUnknown,
    StoreError,
    StoreUnavailable,
    UnsupportedVersion,
)

from .. import forking
from ..erasers import Reached
from ..events import Opened, from_record
from ..objects.names import part_of
from ..objects.port import ObjectStore, list_twice
from ..stores.port import Drained, Journal, Record, SessionKey, Witness
from ..vault import Vault
from .breaker import Breaker
from .forks import forks_of
from .ownership import Ownership
from .sessionlog import unreached

MAX_ASKING = 16
"""Threads that may wait for a store that does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """How long opening waits for the object store."""

    check_seconds: float = 1.0
    """For the tail of the session's chain."""
    move_seconds: float = 30.0
    """For reading a session in and taking it over, once the store has answered."""


class Prepare(Protocol):
    """Called before a tenant's objects are read or written; raises where they are not ours to touch."""

    def __call__(self, tenant: str, *, write: bool = True) -> None: ...


class Opening:
    """Brings sessions to this machine. Safe with threads."""

    def __init__(
        self,
        journal: Journal,
        objects: ObjectStore,
        vault: Callable[[str], Vault],
        ownership: Ownership,
        breaker: Breaker,
        prepare: Prepare,
        deadlines: Deadlines | None = None,
        *,
        background: bool = True,
    ) -> None:
        self._journal, self._objects, self._vault = journal, objects, vault
        self._ownership, self._breaker, self._prepare = ownership, breaker, prepare
        self._deadlines, self._background = deadlines or Deadlines(), background
        self._copy: tuple[SessionKey, tuple[Record, ...]] | None = None
        """The session that was asked for last, to mend its journal."""
        self.forked()
        forking.renew_in_child(self)

    def forked(self) -> None:
        """The parent's threads that wait for the store are not here."""
        self._asking, self._count = 0, threading.Lock()

    def for_writing(self, key: SessionKey) -> list[Finding]:
        """Become the session's owner, if the store can be asked; what the caller should know."""
        findings = []
        if not self._asked(lambda asked: self._move_here(key, asked)):
            self._go_on_unchecked(key)
            findings.append(Finding(kind="ownership_unchecked", text=_UNCHECKED))
        if self._ownership.was_fenced(key):
            findings += [_fenced(name) for name in forks_of(self._journal, key)]
        return findings

    def for_reading(self, key: SessionKey, length: int | None = None) -> None:
        """Read the session in, up to at least `length` records (default: all of it), without taking it over."""
        if length is not None and self._journal.length(key) >= length > 0:
            self._parents(key, lambda: True)
            return
        self._prepare(key.tenant, write=False)
        log, number = self._ownership.log(key), self._journal.drained(key).number
        if log.tail(number) > number or (not number and log.is_there()):
            self._ownership.catch_up(key, claim="if_unchanged" if self._is_ours(key) else "never")
        self._parents(key, lambda: True)

    def everything(self, tenant: str) -> tuple[Finding, ...]:
        """Read all sessions of a tenant in; which ones cannot be, and why."""
        stored = self.stored_sessions(tenant)
        findings = list(stored.findings)
        for session in stored.names:
            try:
                self.for_reading(SessionKey(tenant, session))
            except (Damaged, ObjectMissing, UnsupportedVersion) as error:
                findings.append(unreached(session, error))
            except Erased:
                continue  # there is nothing of it to read
        return tuple(findings)

    def is_stored(self, key: SessionKey) -> bool:
        """Whether the object store has the session; asked for by its name."""
        self._prepare(key.tenant, write=False)
        return self._ownership.log(key).is_there()

    def stored_sessions(self, tenant: str) -> Reached:
        """Ids of the sessions in the object store that are not forgotten; findings are chains of which that cannot be
        told, and what was there once and is not listed.
        """
        self._prepare(tenant, write=False)
        vault = self._vault(tenant)
        known = {vault.subject_address(session): session for session in self._journal.sessions(tenant)}
        folder = f"sessions/{part_of(tenant)}/"
        listed = dict.fromkeys(key.removeprefix(folder).partition("/")[0] for key in list_twice(self._objects, folder))
        names, findings = [], []
        for address in dict.fromkeys((*listed, *self._seen(folder))):
            chain = f"{folder}{address}/log"
            try:
                name = known.get(address) or self._ownership.stored_id(tenant, address)
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
        return Reached(tuple(sorted(names)), tuple(findings))

    def _seen(self, folder: str) -> Iterator[str]:
        """Addresses of sessions that this journal has ever seen in the object store."""
        if isinstance(self._journal, Witness):
            for name in self._journal.witnessed():
                if name.startswith(folder) and name.endswith("/log"):
                    yield name[len(folder) : -len("/log")]

    def stored_record(self, key: SessionKey, position: int) -> Record | None:
        """A record as the object store has it; None where it has none, or does not answer in a moment."""
        copy = self._copy
        if copy is None or copy[0] != key or position >= len(copy[1]):

            def read(asked: _Asked) -> None:
                self._copy = (key, self._ownership.log(key).behind(Drained()).records)

            try:
                if not self._asked(read) or self._copy is None:
                    return None
            except StoreError:
                return None
            copy = self._copy
        return copy[1][position] if copy[0] == key and 0 <= position < len(copy[1]) else None

    # -- inside -------------------------------------------------------------------------------------------------

    def _move_here(self, key: SessionKey, asked: _Asked) -> None:
        self._prepare(key.tenant)
        drained, log = self._journal.drained(key), self._ownership.log(key)
        tail = log.tail(drained.number)
        log.check_not_erased()
        if tail and (tail > drained.number or drained.epoch <= 0):
            asked.moving.set()
            self._ownership.catch_up(key, claim="always", wanted=asked.wanted)
        self._parents(key, asked.wanted, asked)

    def _parents(self, key: SessionKey, wanted: Callable[[], bool], asked: _Asked | None = None) -> None:
        """What a fork shares with its parent lies in the parent's log."""
        while True:
            first = self._journal.read(key, 0, 1)
            opened = from_record(first[0]) if first and first[0].kind == "opened" else None
            if not isinstance(opened, Opened) or opened.parent is None:
                return
            key = SessionKey(key.tenant, opened.parent.session)
            if self._journal.length(key) < opened.parent.position:
                if asked is not None:
                    asked.moving.set()
                self._ownership.catch_up(key, claim="never", wanted=wanted)

    def _is_ours(self, key: SessionKey) -> bool:
        return self._journal.drained(key).epoch > 0

    def _go_on_unchecked(self, key: SessionKey) -> None:
        """Let the first segment decide whose the session is, as it was opened to be written to."""
        drained = self._journal.drained(key)
        if drained.epoch < 0:
            self._journal.set_drained(key, Drained(drained.position, drained.number, 0))

    def _asked(self, ask: Callable[[_Asked], None]) -> bool:
        """Whether the store has answered in time."""
        with self._count:
            if self._breaker.pause_seconds() > 0 or self._asking >= MAX_ASKING:
                return False
            self._asking += 1
        asked = _Asked()
        if self._background:
            threading.Thread(target=self._ask, args=(ask, asked), name="ctxsteward opening", daemon=True).start()
        else:
            self._ask(ask, asked)
        if not asked.wait(self._deadlines):
            self._breaker.failed("the object store did not answer in time when a session was opened")
            return False
        if isinstance(asked.error, (StoreUnavailable, OutcomeUnknown)):
            self._breaker.failed(asked.error)
            return False
        if asked.error is not None:
            raise asked.error
        self._breaker.succeeded()
        return True

    def _ask(self, ask: Callable[[_Asked], None], asked: _Asked) -> None:
        try:
            ask(asked)
        except BaseException as error:  # handed to whoever waits, if anybody still does
            asked.error = error
        finally:
            with self._count:
                self._asking -= 1
            asked.done.set()


class _Asked:
    """A question to the store that somebody may have stopped waiting for."""

    def __init__(self) -> None:
        self.done, self.moving, self._given_up = threading.Event(), threading.Event(), threading.Event()
        self.error: BaseException | None = None

    def wanted(self) -> bool:
        return not self._given_up.is_set()

    def wait(self, deadlines: Deadlines) -> bool:
        answered = self.done.wait(deadlines.check_seconds)
        if not answered and self.moving.is_set():
            answered = self.done.wait(deadlines.move_seconds)
        if not answered:
            self._given_up.set()
        return answered


_UNCHECKED = (
    "the object store did not answer, so whether another machine has taken this session over is not known: what is "
    "written here is kept, and becomes a fork if it has"
)


def _fenced(fork: str) -> Finding:
    text = (
        f"another machine took this session over; what had been written here and nowhere else is in session {fork!r}: "
        "open it, or append it again"
    )
    return Finding(kind="fenced", field="session", text=text)
