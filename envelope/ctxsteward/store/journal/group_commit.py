"""Group commit: writers that wait at the same time share one transaction and one fsync.

A thread that finds no other thread writing becomes the leader: it takes all waiting tickets, its own included, and runs
them. The other threads wait until their ticket is settled or they can lead. There is no timer, so a lone writer does
not wait, and no separate thread. If a leader is interrupted (`KeyboardInterrupt`), the next leader runs the tickets
that it had taken and not settled.

Source: the leader and followers of group commit (DeWitt et al., "Implementation techniques for main memory database
systems", 1984).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeVar

from ctxsteward.schemas import StoreError

from .. import process_forks as forking

Transaction = TypeVar("Transaction")

NET_SECONDS = 0.5
"""Longest wait of a follower before it checks again, because an interrupted leader may not have woken it."""


class Commits(NamedTuple):
    """Number of committed transactions, and of the tickets in them."""

    transactions: int
    tickets: int


class Ticket(Generic[Transaction]):
    """One caller's part of a transaction."""

    __slots__ = ("_awake", "error", "result", "settled", "withdrawn", "work")

    def __init__(self, work: Callable[[Transaction], Any]) -> None:
        self.work: Callable[[Transaction], Any] = work
        self.result: Any = None
        self.error: StoreError | None = None
        self.settled: bool = False
        self.withdrawn: bool = False
        self._awake = threading.Lock()
        self._awake.acquire()

    def wake(self) -> None:
        with suppress(RuntimeError):  # another thread has woken it already
            self._awake.release()

    def wait(self) -> None:
        self._awake.acquire(timeout=NET_SECONDS)


class GroupCommit(Generic[Transaction]):
    """A queue that runs the tickets of many threads, one group at a time.

    `run` settles each ticket of a group with a result or an error. If it raises instead, it has undone the work of
    every unsettled ticket.
    """

    def __init__(
        self, run: Callable[[Sequence[Ticket[Transaction]]], None], writing: threading.RLock | None = None
    ) -> None:
        self._run = run
        self._writing = writing or forking.rlock()
        """Lock of the leader. Its owner can be checked, so that an interrupted leader does not leave it locked."""
        self._pending: deque[Ticket[Transaction]] = deque()
        self._taken: dict[Ticket[Transaction], None] = {}
        forking.renew_in_child(self)

    def forked(self) -> None:
        """Drop the parent's tickets: its own threads run them."""
        self._pending, self._taken = deque(), {}

    def submit(self, work: Callable[[Transaction], Any]) -> Any:
        """Run `work` in a transaction and return its result once that is durable. Raises its error or the commit's.

        After an interrupt of the waiting caller it is unknown whether the work was done.
        """
        ticket = Ticket(work)
        self._pending.append(ticket)
        try:
            while not ticket.settled:
                if self._writing.acquire(blocking=False):
                    self._lead(ticket)
                else:
                    ticket.wait()
        except BaseException:
            ticket.withdrawn = True
            with suppress(RuntimeError):  # normally this thread does not have the lock
                self._writing.release()
            raise
        if ticket.error is not None:
            raise ticket.error
        return ticket.result

    def alone(self, work: Callable[[], None]) -> None:
        """Run `work` between two groups, outside a transaction."""
        with self._writing:
            try:
                work()
            finally:
                self.call_next()

    def _lead(self, own: Ticket[Transaction]) -> None:
        group: Sequence[Ticket[Transaction]] = ()
        try:
            if not own.settled:
                group = self._take()
                self._run(group)
                self._taken = {}
        except BaseException:
            own.withdrawn = True
            raise
        finally:
            self._writing.release()
            self.call_next()
            for ticket in group:
                if ticket.settled and ticket is not own:
                    ticket.wake()

    def _take(self) -> list[Ticket[Transaction]]:
        """Take all waiting tickets. Each is always in `_pending` or `_taken`, so that no interrupt loses it."""
        while self._pending:
            self._taken[self._pending[0]] = None
            self._pending.popleft()
        return [ticket for ticket in self._taken if not ticket.settled and not ticket.withdrawn]

    def call_next(self) -> None:
        """Wake a waiting thread to lead. A new thread may lead before it, and then runs its ticket, too."""
        for ticket in (*self._taken, *tuple(self._pending)):  # each copied atomically, because other threads change it
            if not ticket.settled and not ticket.withdrawn:
                ticket.wake()
                return
