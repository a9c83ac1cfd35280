"""A circuit breaker: after a few failures in a row nobody asks for a while, then one asks again.

    closed      ask
    open        do not ask until the pause is over; the pause doubles with every failure, up to a bound
    half_open   the pause is over: the next answer decides

Pauses are in seconds and have jitter, so that machines that failed together do not ask together. Safe with threads.
Source: M. Nygard, "Release It!", the circuit breaker; exponential backoff with jitter.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

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
        """How long from now nobody should ask; 0: ask."""
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
