"""Group commit: writers that wait at the same time share one transaction and one fsync.

A thread that finds no other one writing leads: it takes every ticket that waits, its own included, and runs them. All
others wait for their ticket to be settled, or for their turn to lead. There is no timer, so a lone writer waits for
nothing, and no thread of its own. A leader that is interrupted (`KeyboardInterrupt`) takes nobody with it: tickets that
it had taken and not settled are run by the next one.

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
"""A follower looks round after this long: what it was to be told may have died with an interrupted leader."""


class Commits(NamedTuple):
    """What has been committed so far."""

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
        with suppress(RuntimeError):  # it has been woken already
            self._awake.release()

    def wait(self) -> None:
        self._awake.acquire(timeout=NET_SECONDS)


class GroupCommit(Generic[Transaction]):
    """Runs the tickets of many threads, one group at a time.

    `run` gives every ticket it is handed a result or an error and settles it; where it raises instead, it has undone
    what it has not settled.
    """

    def __init__(
        self, run: Callable[[Sequence[Ticket[Transaction]]], None], writing: threading.RLock | None = None
    ) -> None:
        self._run = run
        self._writing = writing or forking.rlock()
        """Held by the leader. It knows its owner, so that an interrupted leader cannot leave it locked."""
        self._pending: deque[Ticket[Transaction]] = deque()
        self._taken: dict[Ticket[Transaction], None] = {}
        forking.renew_in_child(self)

    def forked(self) -> None:
        """What the parent's threads wait for is theirs to run."""
        self._pending, self._taken = deque(), {}

    def submit(self, work: Callable[[Transaction], Any]) -> Any:
        """Run `work` in a transaction; returns its result once that is durable. Raises its error, or that of the write.

        A caller that is interrupted while it waits does not know whether its work was done.
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
            with suppress(RuntimeError):  # not ours, as it should be
                self._writing.release()
            raise
        if ticket.error is not None:
            raise ticket.error
        return ticket.result

    def alone(self, work: Callable[[], None]) -> None:
        """Do something between two groups."""
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
        """Whatever waits now. An interruption at any point leaves a ticket in one of the two places at least."""
        while self._pending:
            self._taken[self._pending[0]] = None
            self._pending.popleft()
        return [ticket for ticket in self._taken if not ticket.settled and not ticket.withdrawn]

    def call_next(self) -> None:
        """Wake a waiting thread; it leads, unless a thread that has just come is quicker and takes its ticket along."""
        for ticket in (*self._taken, *tuple(self._pending)):  # each copied in one step: others change them
            if not ticket.settled and not ticket.withdrawn:
                ticket.wake()
                return
