"""How the sessions of one store ask for facts: at once where the store is near, aside and for a bounded time where not.

Where the journal lies in the store, asking is reading a local file. Where it does not, a thread asks and a build waits
`wait_seconds` at most: what comes later is there for the next user turn. After failures nobody asks for a while
(`writebehind.breaker`), so a dead store costs a build nothing but a finding.

`epoch` grows when something was forgotten, in this process or in another one: what sessions hold of facts is void then.
Raises `StoreUnavailable` and what the question raises.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from ctxsteward.schemas import OutcomeUnknown, StoreUnavailable

from .. import forking

if TYPE_CHECKING:
    from ..writebehind.breaker import Breaker
    from .shelf import FactShelves

WAIT_SECONDS = 0.25
"""That a build waits for facts of a store that is not near."""
MAX_ASKING = 8
"""Questions under way at one time."""
MAX_AT_A_TIME = 8
"""Requests of one question."""
_LATE = "the object store did not answer in time"


A = TypeVar("A")
B = TypeVar("B")


class FactLookup:
    """Safe with threads."""

    def __init__(
        self,
        shelves: Callable[[str, str], FactShelves],
        *,
        wait_seconds: float | None = None,
        breaker: Breaker | None = None,
        erasures: Callable[[str], int] = lambda tenant: 0,
    ) -> None:
        """`shelves` are those of a profile and tenant; with `wait_seconds`, questions are asked aside; `erasures` are
        those of a tenant so far, by whichever process."""
        self.shelves = shelves
        self._dropped, self._erasures = 0, erasures
        self._wait_seconds, self._breaker = wait_seconds, breaker
        self.forked()
        forking.renew_in_child(self)

    def forked(self) -> None:
        """The parent's threads that ask are not here."""
        self._asking, self._lock = 0, threading.Lock()

    def drop(self) -> None:
        """Something was forgotten: sessions read their facts anew."""
        with self._lock:
            self._dropped += 1

    def epoch(self, tenant: str) -> int:
        """Of what was read of this tenant's facts."""
        return self._dropped + self._erasures(tenant)

    def ask(self, question: Callable[[], None]) -> None:
        """Have a question answered; it keeps its answer itself, and may do so after this has given up."""
        if self._wait_seconds is None:
            question()
            return
        breaker = self._breaker or self._made_breaker()
        with self._lock:
            if breaker.pause_seconds() > 0 or self._asking >= MAX_ASKING:
                raise StoreUnavailable(f"the object store is not asked for facts now: {breaker.last_error or _LATE}")
            self._asking += 1
        done = threading.Event()
        failed: list[BaseException] = []
        threading.Thread(target=self._run, args=(question, done, failed), name="ctxsteward facts", daemon=True).start()
        if not done.wait(self._wait_seconds):
            breaker.failed(_LATE)
            raise StoreUnavailable(f"{_LATE} for facts ({self._wait_seconds} s)")
        if failed:
            if isinstance(failed[0], (StoreUnavailable, OutcomeUnknown)):
                breaker.failed(failed[0])
            raise failed[0]
        breaker.succeeded()

    def each(self, read: Callable[[A], B], items: Iterable[A]) -> Iterable[B]:
        """`map`; of a store that is not near, several at a time."""
        if self._wait_seconds is None:
            return map(read, items)
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(MAX_AT_A_TIME, thread_name_prefix="ctxsteward facts") as pool:
            return list(pool.map(read, items))

    def _run(self, question: Callable[[], None], done: threading.Event, failed: list[BaseException]) -> None:
        try:
            question()
        except BaseException as error:  # handed to whoever waits, if anybody still does
            failed.append(error)
        finally:
            with self._lock:
                self._asking -= 1
            done.set()

    def _made_breaker(self) -> Breaker:
        from ..writebehind.breaker import Breaker

        self._breaker = Breaker()
        return self._breaker
