"""The write-behind of a store: drainer, breaker, ownership and opening, as `Store` uses them.

A session's turns are durable in the local journal when they are acknowledged; here they are carried to the object store
in the background. Nothing of this is on the path of an append or a build. Sizes in bytes, times in seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ctxsteward.schemas import Finding, StoreUnavailable

from ..commit import Patience
from ..erasers import Reached
from ..keyring import Keys
from ..objects.port import ObjectStore
from ..stores.port import Journal, SessionKey
from ..vault import Vault
from .breaker import Breaker, BreakerState, Pauses
from .drain import Drainer, Pace
from .opening import Deadlines, Opening
from .ownership import Ownership
from .tenants import check_keys

T = TypeVar("T")

DRAIN_PATIENCE_SECONDS = 6.0
"""A link whose outcome is not known is asked about for so long, then by the next pass."""
_LOOK_SECONDS = 0.02


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
    """See the module. The thread starts with the first session that is opened."""

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
        pace: Pace | None = None,
        pauses: Pauses | None = None,
        deadlines: Deadlines | None = None,
        clock: Callable[[], float] = time.monotonic,
        background: bool = True,
    ) -> None:
        """Without `background` there are no threads: opening asks in the caller's, and `drainer.run_once` drains."""
        patience = patience or Patience(total_seconds=DRAIN_PATIENCE_SECONDS)
        self._journal, self._objects, self._keys, self._probe = journal, objects, keys, probe
        self._patience, self._clock, self._background = patience, clock, background
        self._checked: set[str] = set()
        self.breaker = Breaker(pauses)
        self.ownership = Ownership(journal, objects, keys, vault, patience=patience)
        self.drainer = Drainer(
            journal, self.ownership, self.breaker, self.prepare, erased=erased, lock_path=lock_path, pace=pace
        )  # fmt: skip
        self.opening = Opening(
            journal, objects, vault, self.ownership, self.breaker, self.prepare, deadlines, background=background
        )

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

    def opened(self, key: SessionKey) -> list[Finding]:
        """A session is about to be written to here."""
        self.start()
        return self.opening.for_writing(key)

    def readable(self, key: SessionKey, length: int | None = None) -> None:
        """A session is about to be read, up to `length` records. Where the store does not answer, what is here has to
        do; `StoreUnavailable` where that is nothing."""
        try:
            self._reach(lambda: self.opening.for_reading(key, length))
        except StoreUnavailable:
            if self._journal.length(key) < (length or 1):
                raise

    def all_readable(self, tenant: str) -> tuple[Finding, ...]:
        """All sessions of a tenant are about to be searched; which ones cannot be. Raises `StoreUnavailable`."""
        return self._reach(lambda: self.opening.everything(tenant))

    def stored_sessions(self, tenant: str) -> Reached:
        """Ids of the sessions in the object store; none where it does not answer."""
        try:
            return self._reach(lambda: self.opening.stored_sessions(tenant))
        except StoreUnavailable as error:
            return Reached((), (Finding(kind="store_unreachable", text=f"sessions there are not named: {error}"),))

    def is_stored(self, key: SessionKey) -> bool:
        """Whether the object store holds the session. Raises `StoreUnavailable`."""
        return self._reach(lambda: self.opening.is_stored(key))

    def flush(self, timeout_seconds: float, *, patient: bool = True) -> bool:
        """Wait until nothing waits any more; False where something still does. Without `patient`, a store that does
        not answer is not waited for."""
        until = self._clock() + timeout_seconds
        try:
            while self._journal.waiting(1):
                if self._clock() >= until or not (patient or self.breaker.last_error is None):
                    return False
                self.drainer.hurry = True
                self._look_again()
            return True
        finally:
            self.drainer.hurry = False

    def _look_again(self) -> None:
        if self._background:
            self.drainer.start()
            self.drainer.wake()
            time.sleep(_LOOK_SECONDS)
        else:
            self.drainer.run_once()

    def start(self) -> None:
        """Have what waits drained, in a process that is a child of the one that began with it, too."""
        if self._background:
            self.drainer.start()

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

    # -- for erasure: `erasure.Elsewhere` -----------------------------------------------------------------------

    def sessions(self, tenant: str) -> Reached:
        """Ids of the sessions in the object store that are not forgotten."""
        return self.opening.stored_sessions(tenant)

    def holds(self, key: SessionKey) -> bool:
        """Whether the object store holds the session."""
        return self.opening.is_stored(key)

    def subjects(self, key: SessionKey) -> Reached:
        """Addresses of the subjects under whose keys a session's records are encrypted."""
        return self.ownership.log(key).subjects()

    def claim(self, key: SessionKey) -> None:
        """Take a session over, and bring the local journal up to date."""
        self.ownership.catch_up(key, claim="always")
        self.opening.for_reading(key)

    def rewritten(self, key: SessionKey, positions: Iterable[int]) -> None:
        """Records at these positions were replaced, or have lost their key: drain them again."""
        self.ownership.rewrite(key, positions)

    def close(self, timeout_seconds: float) -> bool:
        """Drain what waits, as far as the time goes, and end the thread."""
        drained = self.flush(timeout_seconds, patient=False)
        return self.drainer.stop(timeout_seconds) and drained

    def _reach(self, read: Callable[[], T]) -> T:
        if self.breaker.pause_seconds() > 0:
            raise StoreUnavailable(f"the object store did not answer a moment ago: {self.breaker.last_error}")
        try:
            return read()
        except StoreUnavailable as error:
            self.breaker.failed(error)
            raise
