"""Calls to an object store that may not answer: a circuit breaker, and calls that nobody waits for too long.

After a few failures in a row a `Breaker` opens, and the store is not called for a while; then one call tries again.

    closed      call the store
    open        do not call before the end of the pause, which doubles with every failure up to a bound
    half_open   the pause is over; the result of the next call decides

Pauses have jitter, so that machines that failed together do not call together. An `Asker` runs each call in a thread of
its own, so that no caller waits longer than its limit. Drainer, write-behind and the look-up of facts use them.
Safe with threads. Source: M. Nygard, "Release It!", the circuit breaker; exponential backoff with jitter.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ctxsteward.schemas import StoreUnavailable
from ctxsteward.schemas.errors import OutcomeUnknown

from .. import process_forks as forking


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Times of draining and of opening sessions, and the clock that measures them."""

    poll_seconds: float = 0.2
    """Pause between two passes."""
    stuck_seconds: float = 5.0
    """Pause before a session that could not be drained is tried again."""
    gather_seconds: float = 30.0
    """Time for which turns of a session with another owner are collected, so that they make one fork and not many."""
    failures: int = 2
    """Number of failures in a row that open the breaker."""
    first_pause_seconds: float = 0.5
    longest_pause_seconds: float = 8.0
    check_seconds: float = 1.0
    """Longest wait for the tail of the chain when a session is opened."""
    move_seconds: float = 30.0
    """Longest wait for reading the session and taking it over after the store has answered."""
    clock: Callable[[], float] = time.monotonic
    jitter: Callable[[], float] = random.SystemRandom().random
    """Random number from 0 to 1; does not use the application's own `random`."""


BreakerState = Literal["closed", "open", "half_open"]


class Breaker:
    """A circuit breaker for the object store."""

    def __init__(self, timing: Timing | None = None) -> None:
        self._timing = timing or Timing()
        self._lock = forking.lock()
        self._failed = 0
        self._until = 0.0
        self.last_error: str | None = None
        """Error of the last failure; None after a success."""

    @property
    def state(self) -> BreakerState:
        with self._lock:
            if self._failed < self._timing.failures:
                return "closed"
            return "open" if self._timing.clock() < self._until else "half_open"

    def pause_seconds(self) -> float:
        """Return the remaining pause before the store may be called again; 0 if it may be called now."""
        with self._lock:
            return max(0.0, self._until - self._timing.clock()) if self._failed else 0.0

    def succeeded(self) -> None:
        with self._lock:
            self._failed, self._until, self.last_error = 0, 0.0, None

    def failed(self, error: BaseException | str) -> None:
        timing = self._timing
        with self._lock:
            pause = min(timing.first_pause_seconds * 2.0 ** min(self._failed, 30), timing.longest_pause_seconds)
            self._failed += 1
            self._until = timing.clock() + pause * (0.5 + 0.5 * timing.jitter())
            self.last_error = error if isinstance(error, str) else f"{type(error).__name__}: {error}"


class StoreQuestion:
    """A running call to the store, whose caller may have stopped waiting."""

    def __init__(self) -> None:
        self.takes_long: threading.Event = threading.Event()
        """Set by the call's work when the store has answered and more work follows."""
        self.done: threading.Event = threading.Event()
        self._given_up = threading.Event()
        self.error: BaseException | None = None

    def wanted(self) -> bool:
        return not self._given_up.is_set()

    def wait(self, seconds: float, long_seconds: float) -> bool:
        """Wait for the answer and return whether it came in time."""
        answered = self.done.wait(seconds)
        if not answered and self.takes_long.is_set():
            answered = self.done.wait(long_seconds)
        if not answered:
            self._given_up.set()
        return answered


class Asker:
    """A runner of calls to the store in threads of their own, which reports their results to the breaker."""

    def __init__(
        self, about: str, most: int, *, late: str, breaker: Breaker | None = None, background: bool = True
    ) -> None:
        """At most `most` calls run at the same time. `late` is the error's text for a call without an answer in time.
        Without `background` the caller's thread runs the call."""
        self._about, self._most, self._late, self._background = about, most, late, background
        self._breaker = breaker or Breaker()
        self.forked()
        forking.renew_in_child(self)

    def forked(self) -> None:
        """Reset in a child, which has none of the parent's calls."""
        self._asking, self._lock = 0, threading.Lock()

    def ask(self, work: Callable[[StoreQuestion], object], seconds: float, long_seconds: float = 0.0) -> None:
        """Run `work`. Raises its errors, and `StoreUnavailable` if the breaker is open or the answer is late."""
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
        except BaseException as error:  # raised by the caller if it still waits
            question.error = error
        finally:
            with self._lock:
                self._asking -= 1
            question.done.set()
