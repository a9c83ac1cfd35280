"""An object store that fails as networks and servers do, by a plan or by a seed:

    FaultyObjects(MemoryObjects(), SeededFaults(7))
    FaultyObjects(inner, lambda method, key: StoreFault("lost_reply") if method == "put" else PASS)

    pass             applied and answered
    lost_reply       applied, and the reply lost                              put: unknown
    late             not applied now, but after some later operations         put: unknown
    dropped          never applied, no answer                                 put: unknown
    error_before     refused with a 5xx before it was applied                 put: unknown; get, list: StoreUnavailable
    error_after      applied, then answered with a 5xx                        put: unknown
    conflict_409     refused because another write is in flight               put: unknown
    false_conflict   applied, the reply lost, sent again by a lower client    put: conflicted with itself
    slow             applied and answered after `seconds`
    crash_before, crash_after, crash_late   the writer dies before it is applied, after it, or while it is pending

The inner store applies writes, so a late put whose key is taken does nothing. No clock is read: a simulation provides
time and interleaving as `pause` and `turn`. Safe with threads.
Source: faults of conditional writes as seen between an S3 client and its server; the state design (how it is tested).
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from ctxsteward.schemas import StoreUnavailable
from ctxsteward.store import ObjectStore
from ctxsteward.store.objects.port import ObjectInfo, PutOutcome

FaultKind = Literal[
    "pass",
    "lost_reply",
    "late",
    "dropped",
    "error_before",
    "error_after",
    "conflict_409",
    "false_conflict",
    "slow",
    "crash_before",
    "crash_after",
    "crash_late",
]
Method = Literal["put", "get", "list"]


class StoreFault(NamedTuple):
    """The fault of one operation."""

    kind: FaultKind = "pass"
    operations: int = 0
    """Number of later operations after which a ``late`` one is applied."""
    seconds: float = 0.0
    """Seconds that a ``slow`` operation takes."""


PASS = StoreFault()
Plan = Callable[[Method, str], StoreFault]
"""Chooses the fault of one operation on one key."""


class Crashed(BaseException):
    """Raised when the writer dies; no `Exception`, so that none of its handlers runs."""


PUT_WEIGHTS: dict[FaultKind, float] = {
    "lost_reply": 6,
    "late": 4,
    "dropped": 4,
    "error_before": 4,
    "error_after": 4,
    "conflict_409": 4,
    "false_conflict": 4,
    "slow": 3,
    "crash_before": 0.5,
    "crash_after": 0.5,
    "crash_late": 0.5,
}


READ_FRACTION = 0.1
"""Share of reads that fail."""


class SeededFaults:
    """A plan drawn from a seed, in which a share of puts and of reads fails."""

    def __init__(
        self,
        seed: int | str,
        *,
        put_fraction: float = 0.35,
        put_weights: dict[FaultKind, float] | None = None,
    ) -> None:
        weights = PUT_WEIGHTS if put_weights is None else put_weights
        self._random = random.Random(seed)
        self._put_fraction = put_fraction
        self._kinds, self._weights = list(weights), list(weights.values())

    def __call__(self, method: Method, key: str) -> StoreFault:
        draw = self._random
        if method != "put":
            return StoreFault("error_before") if draw.random() < READ_FRACTION else PASS
        if draw.random() >= self._put_fraction:
            return PASS
        kind = draw.choices(self._kinds, self._weights)[0]
        return StoreFault(kind, operations=draw.randint(1, 40), seconds=draw.uniform(0.2, 8.0))


class FaultyObjects(ObjectStore):
    """An `ObjectStore` that passes operations on to another one, with the faults of a plan."""

    def __init__(
        self,
        inner: ObjectStore,
        plan: Plan,
        *,
        turn: Callable[[], object] = lambda: None,
        pause: Callable[[float], object] = lambda seconds: None,
    ) -> None:
        self.inner: ObjectStore = inner
        self.plan: Plan = plan
        self.counts: Counter[str] = Counter()
        """Number of operations with each fault."""
        self._turn, self._pause = turn, pause
        self._lock = threading.Lock()
        self._operations = 0
        self._late: list[tuple[int, Callable[[], object]]] = []

    @property
    def uri(self) -> str:
        return self.inner.uri

    def put(self, key: str, body: bytes) -> PutOutcome:
        return self.write(key, lambda: self.inner.put(key, body))

    def write(self, key: str, apply: Callable[[], PutOutcome]) -> PutOutcome:
        """Do a write with the fault that the plan chooses; `apply` does it on the inner store."""
        fault = self._deal("put", key)
        match fault.kind:
            case "slow":
                self._pause(fault.seconds)
                return apply()
            case "lost_reply" | "error_after":
                apply()
                return "unknown"
            case "late" | "crash_late":
                self._postpone(fault.operations, apply)
            case "false_conflict":
                apply()
                return "conflicted"
            case "crash_after":
                apply()
            case "pass":
                return apply()
        if fault.kind.startswith("crash"):
            raise Crashed(f"{fault.kind} at {key}")
        return "unknown"

    def get(self, key: str) -> bytes:
        self._read("get", key)
        return self.inner.get(key)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        self._read("list", prefix)
        yield from self.inner.list(prefix, after=after)

    def delete(self, key: str) -> None:
        self.inner.delete(key)

    def make_durable(self, key: str) -> None:
        self.inner.make_durable(key)

    def settle(self) -> None:
        """Apply every write that is still pending."""
        with self._lock:
            due, self._late = self._late, []
        for _, apply in due:
            apply()

    def close(self) -> None:
        self.inner.close()

    def _read(self, method: Method, key: str) -> None:
        fault = self._deal(method, key)
        if fault.kind == "slow":
            self._pause(fault.seconds)
        elif fault.kind.startswith("crash"):
            raise Crashed(f"{fault.kind} at {key}")
        elif fault.kind != "pass":
            raise StoreUnavailable(f"{key}: {fault.kind}")

    def _deal(self, method: Method, key: str) -> StoreFault:
        self._turn()
        with self._lock:
            self._operations += 1
            now = self._operations
            due = [apply for when, apply in self._late if when <= now]
            self._late = [(when, apply) for when, apply in self._late if when > now]
            fault = self.plan(method, key)
            self.counts[fault.kind] += 1
        for apply in due:
            apply()
        return fault

    def _postpone(self, operations: int, apply: Callable[[], object]) -> None:
        with self._lock:
            self._late.append((self._operations + operations, apply))


class SimulatedClock:
    """A clock whose seconds pass only in `sleep`."""

    def __init__(self) -> None:
        self.seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
