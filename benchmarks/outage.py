"""Measure that a dead, black-holed or slow object store does not slow down a chat service.

50 sessions in 50 threads take two steps (append and build) a second each, on a journal in a file, drained into a store
that answers in 10 ms while healthy. Bars: every build succeeds; in trouble the p99 of append + build is at most
1.2 × the healthy one or 50 ms; when the store is back, all is drained within 60 s, nothing lost, nothing twice. The
cost of draining is measured as well: records a second into a store in memory, and per second of CPU. Times are wall
time unless they say CPU.

`acknowledged` is the benchmark ``journal``, without an outage: 64 sessions in 64 threads of one process. A turn is a
user message and an assistant message, each durable before the next call. It is compared with the disk's own limit: how
often 4 KiB at the end of a file can be fsynced, in the same folder before and after. Group commit lets several appends
share one fsync. If the disk is so slow that even full groups stay under the bar, the product of the two is the bar.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from ctxsteward.envelope import Budgets, EnvelopeBuilder, Session, Store, open_store
from ctxsteward.schemas import StoreUnavailable
from ctxsteward.store import MasterKeys
from ctxsteward.store.journal.memory import MemoryJournal
from ctxsteward.store.journal.port import SessionKey
from ctxsteward.store.journal.sqlite import FileJournal
from ctxsteward.store.objects.memory import MemoryObjects
from ctxsteward.store.objects.port import ObjectInfo, ObjectStore, PutOutcome

from .conversations import conversation
from .rows import BenchmarkRow, row

NAME = "outage"
SESSIONS = 50
STEP_SECONDS = 0.5
MODE_SECONDS = 12.0
ROUNDS = 3
LATENCY_SECONDS = 0.01
GIVE_UP_SECONDS = 5.0
"""Time that a client waits for a silent store."""
SLOW_SECONDS = 3.0
RECOVERY_SECONDS = 60.0
DRAINED_RECORDS = 10_000
_KEYS = MasterKeys(b"outage bench key" * 2)

Mode = Literal["healthy", "dead", "black-holed", "slow"]


class OutageFigures(NamedTuple):
    """One run of the load through all modes."""

    p99_ms: dict[Mode, float]
    steps: int
    failed: int
    recovery_seconds: float
    lost: int
    doubled: int


class BreakableObjects(ObjectStore):
    """Objects in memory behind a network that can be broken."""

    uri = "memory:"

    def __init__(self) -> None:
        self.inner = MemoryObjects()
        self.mode: Mode = "healthy"
        self._well = threading.Event()

    def put(self, key: str, body: bytes) -> PutOutcome:
        return self.inner.put(key, body) if self._arrives() else "unknown"

    def get(self, key: str) -> bytes:
        self._must_arrive(key)
        return self.inner.get(key)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        self._must_arrive(prefix)
        yield from self.inner.list(prefix, after=after)

    def delete(self, key: str) -> None:
        self._must_arrive(key)
        self.inner.delete(key)

    def close(self) -> None:
        """Release all callers that wait for an answer."""
        self._well.set()

    def _arrives(self) -> bool:
        mode = self.mode
        if mode == "black-holed":
            self._well.wait(GIVE_UP_SECONDS)
        else:
            self._well.wait(SLOW_SECONDS if mode == "slow" else LATENCY_SECONDS)
        return mode in ("healthy", "slow")

    def _must_arrive(self, key: str) -> None:
        if not self._arrives():
            raise StoreUnavailable(f"{key}: no answer")


def run(data: object = None) -> Iterator[BenchmarkRow]:
    """Yield the figures."""
    found = measure()
    yield row(NAME, f"append + build, p99, {SESSIONS} sessions, store healthy", found.p99_ms["healthy"], "ms")
    bar = max(1.2 * found.p99_ms["healthy"], 50.0)
    for mode in get_args(Mode)[1:]:
        yield row(NAME, f"append + build, p99, store {mode}", found.p99_ms[mode], "ms", at_most=round(bar, 1))
    yield row(NAME, f"steps that failed, of {found.steps:,}", found.failed, at_most=0)
    yield row(NAME, "drained after the store is back", found.recovery_seconds, "s", at_most=RECOVERY_SECONDS)
    yield row(NAME, "acknowledged messages lost", found.lost, at_most=0)
    yield row(NAME, "acknowledged messages stored twice", found.doubled, at_most=0)
    per_second, per_cpu_second = draining()
    yield row(NAME, "records drained into memory", per_second, "/s")
    yield row(NAME, "records drained, a second of CPU", per_cpu_second, "/s")


def measure(mode_seconds: float = MODE_SECONDS, *, sessions: int = SESSIONS) -> OutageFigures:
    """Run the load with the store in each mode for `mode_seconds`, then let it recover."""
    objects = BreakableObjects()
    with tempfile.TemporaryDirectory() as folder:
        journal = FileJournal(Path(folder), drains=True)
        with Store(journal, objects, _KEYS, uri="memory:", write_behind=True) as store:
            load = _Load(store, sessions)
            load.drive("healthy", 1.0)  # sessions are opened, tokenizers loaded, keys made
            load.seconds.clear()
            for mode in get_args(Mode) * ROUNDS:  # interleaved, so that a drifting machine affects all equally
                objects.mode = mode
                load.drive(mode, mode_seconds / ROUNDS)
            objects.mode = "healthy"
            started = time.perf_counter()
            drained = store.flush(RECOVERY_SECONDS)
            recovery = time.perf_counter() - started if drained else float("inf")
        lost, doubled = _stored(objects, load.acknowledged)
    p99 = {mode: statistics.quantiles(load.seconds[mode], n=100)[98] * 1e3 for mode in get_args(Mode)}
    steps = sum(map(len, load.seconds.values()))
    return OutageFigures(p99, steps, load.failed, recovery, lost, doubled)


class _Load:
    """Sessions that append and build at fixed times."""

    def __init__(self, store: Store, sessions: int) -> None:
        self._messages = conversation(400, seed=1)
        self._sessions = [store.session(f"s{number}") for number in range(sessions)]
        self.seconds: dict[Mode, list[float]] = {}
        self.acknowledged: Counter[str] = Counter()
        self.failed = 0
        self._lock = threading.Lock()

    def drive(self, mode: Mode, seconds: float) -> None:
        until = time.perf_counter() + seconds
        threads = [threading.Thread(target=self._chat, args=(n, mode, until)) for n in range(len(self._sessions))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _chat(self, number: int, mode: Mode, until: float) -> None:
        session, builder = self._sessions[number], EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets())
        due = time.perf_counter() + STEP_SECONDS * number / len(self._sessions)
        while due < until:
            time.sleep(max(0.0, due - time.perf_counter()))
            message = self._messages[len(session) % len(self._messages)]
            text = f"{session.id} {len(session)}"
            started = time.perf_counter()
            try:
                session.append(message, id=text)
                builder.build(session)
            except Exception:  # the bar counts every kind of failure
                with self._lock:
                    self.failed += 1
            else:
                taken = time.perf_counter() - started
                with self._lock:
                    self.seconds.setdefault(mode, []).append(taken)
                    self.acknowledged[text] += 1
            due += STEP_SECONDS


def _stored(objects: BreakableObjects, acknowledged: Counter[str]) -> tuple[int, int]:
    """Return the numbers of messages that another machine does not find, and that it finds more than once."""
    reader = Store(MemoryJournal(drains=True), objects.inner, _KEYS, uri="memory:", write_behind=True)
    assert reader.write_behind is not None
    reader.write_behind.all_readable("default")
    stored: Counter[str] = Counter()
    for session in reader.journal.sessions("default"):
        records = reader.journal.read(SessionKey("default", session), 0)
        stored.update(record.id for record in records if record.id is not None)
    return sum(text not in stored for text in acknowledged), sum(count > 1 for count in stored.values())


def draining() -> tuple[float, float]:
    """Return the records drained per second, and per second of CPU."""
    journal, objects = MemoryJournal(drains=True), MemoryObjects()
    store = Store(journal, objects, _KEYS, uri="memory:", write_behind=True, behind={"background": False})
    messages = conversation(DRAINED_RECORDS // 10, seed=2)
    for number in range(10):
        store.session(f"s{number}").extend(messages)
    assert store.write_behind is not None
    started, cpu = time.perf_counter(), time.process_time()
    store.write_behind.drainer.run_once()
    taken, cpu = time.perf_counter() - started, time.process_time() - cpu
    assert not journal.waiting()
    return DRAINED_RECORDS / taken, DRAINED_RECORDS / cpu


# -- the journal, without any outage -----------------------------------------------------------------------------------

_JOURNAL = "journal"
WRITERS = 64
TURNS = 80
"""Turns of each session."""
BAR_TURNS_PER_SECOND = 2_000
PROBE_SECONDS = 0.5
PROBE_BYTES = 4_096


class _JournalRound(NamedTuple):
    turns_per_second: float
    fsyncs_per_second: float
    group: float
    """Appends per transaction."""


def acknowledged(data: object = None) -> Iterator[BenchmarkRow]:
    """Yield the figures of the round with the median throughput."""
    rounds = sorted(_journal_round(seed) for seed in range(ROUNDS))
    found = rounds[len(rounds) // 2]
    limit = found.fsyncs_per_second * found.group / 2
    what = f"acknowledged turns, {WRITERS} sessions in {WRITERS} threads"
    yield row(_JOURNAL, what, found.turns_per_second, "/s", at_least=round(min(BAR_TURNS_PER_SECOND, limit)))
    yield row(_JOURNAL, "fsyncs of a 4 KiB append on this disk", found.fsyncs_per_second, "/s")
    yield row(_JOURNAL, "appends a transaction (group commit)", found.group)


def _journal_round(seed: int) -> _JournalRound:
    with tempfile.TemporaryDirectory() as folder:
        before = fsyncs_per_second(Path(folder))
        with open_store(f"file:{folder}/store") as store:
            assert isinstance(store.journal, FileJournal)
            sessions = [store.session(f"s{n}") for n in range(WRITERS)]
            messages = conversation(2 * TURNS, seed=seed)
            sessions[0].append(messages[0])  # the tokenizer is loaded
            start = store.journal.commits
            seconds = _drive(sessions, messages)
            stop = store.journal.commits
        after = fsyncs_per_second(Path(folder))
    group = (stop.tickets - start.tickets) / (stop.transactions - start.transactions)
    return _JournalRound(WRITERS * TURNS / seconds, (before + after) / 2, group)


def _drive(sessions: list[Session], messages: list[dict[str, str]]) -> float:
    """Return the seconds until every session has all turns."""
    ready = threading.Barrier(len(sessions) + 1)

    def write(session: Session) -> None:
        ready.wait()
        for message in messages:
            session.append(message)

    threads = [threading.Thread(target=write, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    ready.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    missing = sum(len(session) < len(messages) for session in sessions)
    assert not missing, f"{missing} sessions did not get all of their turns"
    return seconds


def fsyncs_per_second(folder: Path) -> float:
    """Measure how often the disk can append and fsync in a second."""
    block, done = os.urandom(PROBE_BYTES), 0
    descriptor = os.open(folder / "probe", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        start = time.perf_counter()
        while time.perf_counter() - start < PROBE_SECONDS:
            os.write(descriptor, block)
            os.fsync(descriptor)
            done += 1
        return done / (time.perf_counter() - start)
    finally:
        os.close(descriptor)
