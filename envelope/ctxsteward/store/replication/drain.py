"""The drainer: one thread per store that copies the journal into the object store in the background.

Each pass takes the waiting logs, the longest waiting first, and writes their records as segments: first data keys, then
the link, then the journal's drain mark. A crash between the last two does no harm: the next commit finds its number
taken and reads the link. The shared part of a fork's parent is drained before the fork. If the store fails, the breaker
stops all calls for a while. No append or build ever waits for this thread.

Processes that share a journal take turns, pass by pass, with a lock on a file beside it. The kernel releases the lock
of a killed process. The lock only saves work: two processes that drain at once do no harm. Times in seconds.
"""

from __future__ import annotations

import fcntl
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ctxsteward.schemas import Erased, StoreError, StoreUnavailable
from ctxsteward.schemas.errors import OutcomeUnknown, VersionTaken

from .. import process_forks as forking
from ..crypto.hash_chain import Link
from ..journal.erasures import hearing
from ..journal.events import fork_point
from ..journal.port import DrainMark, Journal, SessionKey, WaitingLog
from .breaker import Breaker, Timing
from .ownership import Ownership
from .segment_log import SEGMENT_RECORDS, Segment, SessionLog, span_of

LOGS_A_PASS = 1000
LINKS_A_TURN = 100
"""Most links of one session in a turn, so that a busy session does not block the others."""
LINKS_KEPT = 10_000
"""Most sessions whose newest link is in memory, so that the next commit need not read it."""


def _run(reference: weakref.ref[Drainer], stopping: threading.Event, wake: threading.Event) -> None:
    """Run the thread. Between two passes it has no reference to the drainer, and it ends with the drainer."""
    while not stopping.is_set():
        wake.clear()
        drainer = reference()
        if drainer is None:
            return
        pause = drainer._pass_and_pause()
        del drainer
        wake.wait(pause)


def _end(stopping: threading.Event, wake: threading.Event) -> None:
    stopping.set()
    wake.set()


class Drainer:
    """The thread that copies the journal's records into the object store.

    It calls `prepare(tenant)`, which may raise, before it writes anything of a tenant, and `erased(tenant)` if a
    session cannot be drained because a principal of it was forgotten elsewhere, or if such a call was cut off.
    """

    def __init__(
        self,
        journal: Journal,
        ownership: Ownership,
        breaker: Breaker,
        prepare: Callable[[str], None],
        *,
        erased: Callable[[str], object] = lambda tenant: None,
        lock_path: Path | None = None,
        timing: Timing | None = None,
    ) -> None:
        self._journal, self._ownership, self._breaker, self._prepare = journal, ownership, breaker, prepare
        self._erased = erased
        self._lock_path, self._timing = lock_path, timing or Timing()
        self._links: dict[SessionKey, Link] = {}
        self._stuck: dict[SessionKey, float] = {}
        self._since: dict[SessionKey, float] = {}
        self._look_at = 0.0
        """Time of the next search for an erasure that was cut off."""
        self._locks: set[int] = set()
        """Descriptors of the lock file while this process waits for the lock or holds it."""
        self._stopping, self._wake = threading.Event(), threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self.last_error: str | None = None
        """The error that kept a session from being drained; None after a pass without one."""
        self.hurry = False
        """Set while `flush` waits, to write segments of any size at once."""
        forking.renew_in_child(self)
        weakref.finalize(self, _end, self._stopping, self._wake).atexit = False

    # -- the thread ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread, if it is not running."""
        if self._thread is not None and self._thread.is_alive():
            return
        # Import before the thread starts: a fork during the thread's import would leave it unfinished in the child.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: F401

        with self._starting:
            if (self._thread is None or not self._thread.is_alive()) and not self._stopping.is_set():
                self._thread = threading.Thread(
                    target=_run,
                    args=(weakref.ref(self), self._stopping, self._wake),
                    name="ctxsteward write-behind",
                    daemon=True,
                )
                self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def stop(self, timeout_seconds: float) -> bool:
        """End the thread after its current object; return False if that takes longer than the timeout."""
        self._stopping.set()
        self._wake.set()
        thread = self._thread
        if thread is not None:
            thread.join(timeout_seconds)
        return thread is None or not thread.is_alive()

    def forked(self) -> None:
        """Reset in a child, which has neither the thread nor the parent's turn."""
        was_stopping = self._stopping.is_set()
        self._stopping, self._wake = threading.Event(), threading.Event()
        if was_stopping:
            self._stopping.set()
        self._starting, self._thread = threading.Lock(), None
        for descriptor in self._locks:
            os.close(descriptor)  # the parent's descriptor still holds the lock
        self._locks.clear()
        weakref.finalize(self, _end, self._stopping, self._wake).atexit = False

    def _pass_and_pause(self) -> float:
        """Run a pass unless the breaker pauses; return the seconds until the next one."""
        pause = self._breaker.pause_seconds()
        if pause == 0.0:
            try:
                self.run_once()
                pause = self._timing.poll_seconds
            except Exception as error:  # any error of journal or store: the next pass tries again
                self.last_error = f"{type(error).__name__}: {error}"
                pause = self._timing.stuck_seconds
            pause = max(pause, self._breaker.pause_seconds())
        return pause

    # -- one pass -----------------------------------------------------------------------------------------------

    def run_once(self) -> None:
        """Drain all waiting logs once; stop early if the store fails. Do nothing while another process drains."""
        with self._turn() as ours:
            if ours:
                self._pass()

    def _pass(self) -> None:
        now, failed = self._timing.clock(), None
        if now >= self._look_at:
            self._look_at = now + self._timing.stuck_seconds
            for tenant in self._journal.tenants():
                try:
                    if hearing(self._journal, tenant):
                        self._erased(tenant)
                except (StoreUnavailable, OutcomeUnknown) as error:
                    self._breaker.failed(error)
                    return
                except Exception as error:  # a failed erasure must not stop the draining
                    failed = f"tenant {tenant!r}: {type(error).__name__}: {error}"
        logs = self._journal.waiting(LOGS_A_PASS + len(self._stuck))
        self.oldest_seconds(logs)
        for waiting in logs:
            if self._stopping.is_set():
                return
            if self._stuck.get(waiting.key, now) > now:
                failed = failed or self.last_error
                continue
            try:
                self._prepare(waiting.key.tenant)
                try:
                    self._drain(waiting.key)
                except Erased:
                    self._erased(waiting.key.tenant)
                    self._drain(waiting.key)
                self._stuck.pop(waiting.key, None)
                if self._journal.drained(waiting.key) != waiting.drained:
                    self._since.pop(waiting.key, None)
            except (StoreUnavailable, OutcomeUnknown) as error:
                self._breaker.failed(error)
                return
            except Exception as error:  # an error of one session must not stop the others
                if self._stopping.is_set():
                    return
                failed = f"session {waiting.key.session!r}: {type(error).__name__}: {error}"
                self._stuck[waiting.key] = now + self._timing.stuck_seconds
        self.last_error = failed

    def oldest_seconds(self, logs: Sequence[WaitingLog]) -> float:
        """Return the longest wait of these logs that this process has observed."""
        now = self._timing.clock()
        self._since = {log.key: self._since.get(log.key, now) for log in logs}
        return max((now - since for since in self._since.values()), default=0.0)

    @contextmanager
    def _turn(self) -> Iterator[bool]:
        """Yield whether it is this process's turn."""
        if self._lock_path is None:
            yield True
            return
        descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._locks.add(descriptor)
        try:
            os.fchmod(descriptor, 0o600)  # `open` applied the umask
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True
        finally:
            self._locks.discard(descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing is not enough: a child forked meanwhile has it open, too
            os.close(descriptor)

    # -- one session --------------------------------------------------------------------------------------------

    def _drain(self, key: SessionKey) -> None:
        with self._ownership.alone(key):
            log = self._ownership.log(key)
            for _ in range(LINKS_A_TURN):
                drained = self._journal.drained(key)
                if self._stopping.is_set():
                    break
                if self._journal.length(key) <= drained.position and not self._journal.manifests(
                    key, waiting=True, limit=1
                ):
                    break
                if drained.epoch > 0 or drained.number == 0:
                    self._drain_parent(key, drained)
                    self._write(key, log, drained)
                elif not self._settle(key, drained):
                    return
        self._breaker.succeeded()

    def _write(self, key: SessionKey, log: SessionLog, drained: DrainMark) -> None:
        """Write one segment; if its number is taken, catch up with the chain."""
        generation = log.derived_generation()
        records = self._journal.read(key, drained.position, drained.position + SEGMENT_RECORDS)
        manifests = self._journal.manifests(key, waiting=True, limit=SEGMENT_RECORDS)
        taken, sent = span_of(records, manifests)
        # manifests and records other than messages may be derived from messages that were drained before
        if sent or any(record.kind != "message" for record in records[:taken]):
            self._ownership.check_redacted(key, drained.position + taken)
        first = drained.number == 0
        segment = Segment(
            owner=self._journal.id,
            start=drained.position,
            records=tuple(records[:taken]),
            manifests=tuple(manifests[:sent]),
            session=key.session if first else None,
        )
        epoch = 1 if first else drained.epoch
        try:
            link = log.commit(self._link(key, log, drained), segment, epoch=epoch, generation=generation)
        except VersionTaken:
            self._links.pop(key, None)
            self._ownership.catch_up(key, claim="never")
            return
        self._keep(key, link)
        noted = DrainMark(drained.position + taken, link.number, epoch)
        self._journal.set_drained(key, noted, [manifest.address for manifest in segment.manifests])
        self._breaker.succeeded()

    def _settle(self, key: SessionKey, drained: DrainMark) -> bool:
        """Drain a session that this journal does not own: claim it if its chain has not grown, else move the waiting
        turns into a fork.

        Return False if more turns should be collected first.
        """
        if self._journal.length(key) > drained.position:
            if drained.epoch == 0:
                self._ownership.catch_up(key, claim="if_unchanged")
                return True
            now = self._timing.clock()
            if not self.hurry and now - self._since.get(key, now) < self._timing.gather_seconds:
                return False
            self._ownership.catch_up(key, claim="never")
            return True
        self._ownership.add_manifests(key)
        return True

    def _drain_parent(self, key: SessionKey, drained: DrainMark) -> None:
        """Drain the part of the parent that a fork shares; raise `StoreError` if that is not possible yet."""
        first = self._journal.read(key, 0, 1) if drained.position == 0 else []
        origin = fork_point(first)
        if origin is None:
            return
        parent = SessionKey(key.tenant, origin.session)
        if self._journal.drained(parent).position < origin.position:
            self._drain(parent)
            if self._journal.drained(parent).position < origin.position:
                # if the parent has moved its turns, the fork's first record now names another parent
                if self._journal.read(key, 0, 1) == first:
                    raise StoreError(f"its parent {parent.session!r} is not drained up to {origin.position} yet")
                self._drain_parent(key, drained)

    def _link(self, key: SessionKey, log: SessionLog, drained: DrainMark) -> Link | None:
        if drained.number == 0:
            return None
        known = self._links.get(key)
        if known is None or known.number != drained.number:
            known = log.link(drained.number)
        return known

    def _keep(self, key: SessionKey, link: Link) -> None:
        if len(self._links) >= LINKS_KEPT:
            self._links.clear()
        self._links[key] = replace(link, body={})
