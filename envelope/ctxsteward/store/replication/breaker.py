"""Calling an object store that may not answer: a circuit breaker (`Breaker`), and calls with a time limit (`Asker`).

After a few failures in a row the breaker opens and the store is left alone for a while; then one call tries again.

    closed      ask
    open        do not ask until the pause is over; the pause doubles with every failure, up to a bound
    half_open   the pause is over: the next answer decides

Pauses are in seconds and have jitter, so that machines that failed together do not ask together. An `Asker` runs each
call in a thread of its own, so that no caller waits longer than the time it gave. Drainer, write-behind and the look-up
of facts use them. Safe with threads.
Source: M. Nygard, "Release It!", the circuit breaker; exponential backoff with jitter.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ctxsteward.schemas import OutcomeUnknown, StoreUnavailable

from .. import process_forks as forking

BreakerState = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """When a breaker opens, and for how long."""

    failures: int = 2
    """In a row, until it opens."""
    first_seconds: float = 0.5
    longest_seconds: float = 8.0
    clock: Callable[[], float] = time.monotonic
    jitter: Callable[[], float] = random.SystemRandom().random
    """0 to 1; the application's own `random` is left alone."""


class Breaker:
    """Knows whether asking the object store is worth while."""

    def __init__(self, pauses: Pauses | None = None) -> None:
        self._pauses = pauses or Pauses()
        self._lock = forking.lock()
        self._failed = 0
        self._until = 0.0
        self.last_error: str | None = None
        """Of the newest failure; None since the newest success."""

    @property
    def state(self) -> BreakerState:
        with self._lock:
            if self._failed < self._pauses.failures:
                return "closed"
            return "open" if self._pauses.clock() < self._until else "half_open"

    def pause_seconds(self) -> float:
        """How long the store is still to be left alone; 0: it may be called."""
        with self._lock:
            return max(0.0, self._until - self._pauses.clock()) if self._failed else 0.0

    def succeeded(self) -> None:
        with self._lock:
            self._failed, self._until, self.last_error = 0, 0.0, None

    def failed(self, error: BaseException | str) -> None:
        pauses = self._pauses
        with self._lock:
            pause = min(pauses.first_seconds * 2.0 ** min(self._failed, 30), pauses.longest_seconds)
            self._failed += 1
            self._until = pauses.clock() + pause * (0.5 + 0.5 * pauses.jitter())
            self.last_error = error if isinstance(error, str) else f"{type(error).__name__}: {error}"


class StoreQuestion:
    """A call to the store under way; its caller may have stopped waiting."""

    def __init__(self) -> None:
        self.takes_long: threading.Event = threading.Event()
        """Set by what works on it, once the store has answered and there is more to do."""
        self.done: threading.Event = threading.Event()
        self._given_up = threading.Event()
        self.error: BaseException | None = None

    def wanted(self) -> bool:
        return not self._given_up.is_set()

    def wait(self, seconds: float, long_seconds: float) -> bool:
        """Whether it was answered in time."""
        answered = self.done.wait(seconds)
        if not answered and self.takes_long.is_set():
            answered = self.done.wait(long_seconds)
        if not answered:
            self._given_up.set()
        return answered


class Asker:
    """Runs calls to the store in threads of their own, and reports to the breaker how they went."""

    def __init__(
        self, about: str, most: int, *, late: str, breaker: Breaker | None = None, background: bool = True
    ) -> None:
        """At most so many questions are under way; `late` says that one was not answered in time. Without
        `background` the caller's own thread asks."""
        self._about, self._most, self._late, self._background = about, most, late, background
        self._breaker = breaker or Breaker()
        self.forked()
        forking.renew_in_child(self)

    def forked(self) -> None:
        """The parent's threads that ask are not here."""
        self._asking, self._lock = 0, threading.Lock()

    def ask(self, work: Callable[[StoreQuestion], object], seconds: float, long_seconds: float = 0.0) -> None:
        """Run `work` in time; raises what it raises, and `StoreUnavailable` where the breaker is open or it is late."""
        with self._lock:
            if self._breaker.pause_seconds() > 0 or self._asking >= self._most:
                why = self._breaker.last_error or self._late
                raise StoreUnavailable(f"the object store is not asked for {self._about} now: {why}")
            self._asking += 1
        question = StoreQuestion()
        if self._background:
            name = f"ctxsteward {self._about}"
            threading.Thread(target=self._run, args=(work, question), name=name, daemon=True).start()
        else:
            self._run(work, question)
        if not question.wait(seconds, long_seconds):
            self._breaker.failed(self._late)
            raise StoreUnavailable(f"{self._late} for {self._about} ({seconds} s)")
        if isinstance(question.error, (StoreUnavailable, OutcomeUnknown)):
            self._breaker.failed(question.error)
        if question.error is not None:
            raise question.error
        self._breaker.succeeded()

    def _run(self, work: Callable[[StoreQuestion], object], question: StoreQuestion) -> None:
        try:
            work(question)
        except BaseException as error:  # handed to whoever waits, if anybody still does
            question.error = error
        finally:
            with self._lock:
                self._asking -= 1
            question.done.set()
