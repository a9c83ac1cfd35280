"""What a busy service gets acknowledged: 64 sessions in 64 threads of one process, on a journal in a file.

A turn is a user message and an assistant message, each durable before the next call. Beside it the disk's own limit:
how often 4 KiB at the end of a file can be fsynced, measured in the same folder before and after. Group commit lets
several appends share one fsync; where the disk is so slow that even full groups stay under the bar, the product of the
two is the bar. Wall time.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ctxsteward.envelope import Session, open_store
from ctxsteward.store import FileJournal

from .benchmark_row import BenchmarkRow, conversation, row

NAME = "journal"
SESSIONS = 64
TURNS = 80
"""Of each session."""
BAR_TURNS_PER_SECOND = 2_000
PROBE_SECONDS = 0.5
PROBE_BYTES = 4_096
ROUNDS = 3


class _JournalRound(NamedTuple):
    turns_per_second: float
    fsyncs_per_second: float
    group: float
    """Appends a transaction."""


def run(data: object = None) -> Iterator[BenchmarkRow]:
    """Yield the figures of the round with the median throughput."""
    rounds = sorted(_measure(seed) for seed in range(ROUNDS))
    found = rounds[len(rounds) // 2]
    limit = found.fsyncs_per_second * found.group / 2
    what = f"acknowledged turns, {SESSIONS} sessions in {SESSIONS} threads"
    yield row(NAME, what, found.turns_per_second, "/s", at_least=round(min(BAR_TURNS_PER_SECOND, limit)))
    yield row(NAME, "fsyncs of a 4 KiB append on this disk", found.fsyncs_per_second, "/s")
    yield row(NAME, "appends a transaction (group commit)", found.group)


def _measure(seed: int) -> _JournalRound:
    with tempfile.TemporaryDirectory() as folder:
        before = fsyncs_per_second(Path(folder))
        with open_store(f"file:{folder}/store") as store:
            assert isinstance(store.journal, FileJournal)
            sessions = [store.session(f"s{n}") for n in range(SESSIONS)]
            messages = conversation(2 * TURNS, seed=seed)
            sessions[0].append(messages[0])  # the tokenizer is loaded
            start = store.journal.commits
            seconds = _drive(sessions, messages)
            stop = store.journal.commits
        after = fsyncs_per_second(Path(folder))
    group = (stop.tickets - start.tickets) / (stop.transactions - start.transactions)
    return _JournalRound(SESSIONS * TURNS / seconds, (before + after) / 2, group)


def _drive(sessions: list[Session], messages: list[dict[str, str]]) -> float:
    """Seconds until every session has all turns."""
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
    """What the disk can do: append, fsync, again."""
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
