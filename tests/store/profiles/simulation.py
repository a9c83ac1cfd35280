"""Writers that take turns by a seed, over a store that fails by the same seed; and what came of their commits.

`Turns` lets one thread run at a time and draws who goes on at every operation on the store, so a seed is one history.
In one seed of a hundred the store is gone for longer than anybody's patience, applying some of what it is sent.
Time is simulated: an operation takes 5 ms, a pause as long as it says, and only who sleeps waits.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ctxsteward.evals.suites.kit.faulty_objects import Crashed, FaultyObjects, Method, SeededFaults, StoreFault
from ctxsteward.schemas.errors import ObjectMissing
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.objects.port import PutOutcome

OPERATION_SECONDS = 0.005
OUTAGE_SEEDS = 100
OUTAGE_SECONDS = (1.0, 41.0)
Outcome = Literal["acked", "failed", "unknown", "crashed"]


class Turns:
    """A clock, and the right to run."""

    def __init__(self, seed: str, writers: int) -> None:
        self._random = random.Random(seed)
        self._awake_at = dict.fromkeys(range(writers), 0.0)
        self._gates = [threading.Lock() for _ in range(writers)]
        for gate in self._gates:
            gate.acquire()
        self._current = -1
        self.seconds = 0.0
        self.ticks = 0

    def turn(self) -> None:
        """One operation: somebody may go first."""
        self.ticks += 1
        self.seconds += OPERATION_SECONDS
        self._hand_over()

    def sleep(self, seconds: float) -> None:
        self._awake_at[self._current] = self.seconds + seconds
        self._hand_over()

    def clock(self) -> float:
        return self.seconds

    def run(self, writer: Callable[[int], None]) -> None:
        """Run `writer(0)`, `writer(1)`, … to their ends; raises what one of them raised."""
        errors: list[BaseException] = []

        def life(number: int) -> None:
            self._gates[number].acquire()
            try:
                writer(number)
            except BaseException as error:
                errors.append(error)
            finally:
                del self._awake_at[number]
                if self._awake_at:
                    self._wake(self._choose())

        threads = [threading.Thread(target=life, args=(number,)) for number in self._awake_at]
        for thread in threads:
            thread.start()
        self._wake(self._choose())
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def _hand_over(self) -> None:
        me, chosen = self._current, self._choose()
        if chosen != me:
            self._wake(chosen)
            self._gates[me].acquire()

    def _choose(self) -> int:
        self.seconds = max(self.seconds, min(self._awake_at.values()))
        return self._random.choice([number for number, at in self._awake_at.items() if at <= self.seconds])

    def _wake(self, number: int) -> None:
        self._current = number
        self._gates[number].release()


class Bucket(MemoryObjects):
    """What the naive protocols want: objects that can be overwritten, blindly or if they still have this content."""

    deleted = 0
    """How often somebody cleaned up."""

    def overwrite(self, key: str, body: bytes) -> PutOutcome:
        super().delete(key)
        return self.put(key, body)

    def delete(self, key: str) -> None:
        self.deleted += 1
        super().delete(key)

    def replace(self, key: str, body: bytes, before: bytes | None) -> PutOutcome:
        try:
            found = self.get(key)
        except ObjectMissing:
            found = None
        return self.overwrite(key, body) if found == before else "conflicted"


@dataclass
class Attempt:
    """One commit as its writer saw it."""

    commit_id: str
    began: int
    ended: int = 0
    outcome: Outcome = "crashed"


class Simulation:
    """One seed."""

    def __init__(self, seed: int, writers: int) -> None:
        self.seed, self.writers = seed, writers
        self.turns = Turns(f"turns {seed}", writers)
        self.bucket = Bucket(now=lambda: 0.0)
        self.objects = FaultyObjects(self.bucket, self._plan, turn=self.turns.turn, pause=self.turns.sleep)
        self._faults = SeededFaults(f"faults {seed}")
        self.attempts: list[Attempt] = []
        self.mixed = 0

    def run(self, commit: Callable[[Simulation, str], Outcome], commits: int) -> None:
        """Every writer makes so many commits; one that crashed starts anew with its next."""

        def writer(number: int) -> None:
            for n in range(commits):
                attempt = Attempt(f"w{number}-{n}", began=self.turns.ticks)
                self.attempts.append(attempt)
                with suppress(Crashed):
                    attempt.outcome = commit(self, attempt.commit_id)
                attempt.ended = self.turns.ticks

        self.turns.run(writer)
        self.objects.settle()

    def _plan(self, method: Method, key: str) -> StoreFault:
        start, stop = OUTAGE_SECONDS
        if self.seed % OUTAGE_SEEDS == 0 and start < self.turns.seconds < stop:
            return StoreFault("lost_reply" if self.turns.ticks % 3 == 0 else "dropped")
        return self._faults(method, key)

    def read_slices(self, *slices: object) -> None:
        self.mixed += len(set(slices)) > 1


class Verdict(NamedTuple):
    """What must not be, counted."""

    commits: int
    acked: int
    acked_lost: int
    failed_but_landed: int
    double: int
    mixed: int
    unknown: int
    out_of_order: int
    """Pairs where one was acknowledged before the other began and yet stands after it."""

    def __add__(self, other: object) -> Verdict:
        assert isinstance(other, Verdict)
        return Verdict(*map(sum, zip(self, other, strict=True)))


NOTHING = Verdict(0, 0, 0, 0, 0, 0, 0, 0)


def judge(simulation: Simulation, landed: list[str]) -> Verdict:
    """`landed`: commit ids in the order in which they stand at the end."""
    times = Counter(landed)
    outcomes = Counter(attempt.outcome for attempt in simulation.attempts)
    acked = [attempt for attempt in simulation.attempts if attempt.outcome == "acked"]
    failed = [attempt for attempt in simulation.attempts if attempt.outcome == "failed"]
    return Verdict(
        commits=len(simulation.attempts),
        acked=len(acked),
        acked_lost=sum(times[attempt.commit_id] == 0 for attempt in acked),
        failed_but_landed=sum(times[attempt.commit_id] > 0 for attempt in failed),
        double=sum(count > 1 for count in times.values()),
        mixed=simulation.mixed,
        unknown=outcomes["unknown"],
        out_of_order=_out_of_order(acked, landed),
    )


def _out_of_order(acked: list[Attempt], landed: list[str]) -> int:
    place = {commit_id: number for number, commit_id in enumerate(landed)}
    standing = sorted((a for a in acked if a.commit_id in place), key=lambda a: place[a.commit_id], reverse=True)
    earliest_end, wrong = float("inf"), 0
    for attempt in standing:  # newest first: none that stands later may have ended before this one began
        wrong += earliest_end < attempt.began
        earliest_end = min(earliest_end, attempt.ended)
    return wrong
