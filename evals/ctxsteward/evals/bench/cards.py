"""What cards cost the chat path, and what they give: appends beside `Store.cards`, catching up, fetching a session.

The store is a `file:` store, the index SQLite beside its journal. Bursts of 100 messages go to four sessions in turn,
one append a message, alone and beside the worker. Then two processes write to one store; then processes are killed
while they append, and what was acknowledged is counted against the cards that the next one makes. Wall time.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import NamedTuple

from ctxsteward.envelope import Store, open_store
from ctxsteward.envelope.cards import card_maker, cards_of, open_cards, rebuild
from ctxsteward.envelope.testing import memory_store

from .benchmark_row import BenchmarkRow, conversation, row

NAME = "cards"
MESSAGES = 10_000
SESSIONS = 4
BURST = 100
ROUNDS = 3
FETCHED = 200
"""Messages of the session that is fetched."""
FETCHES = 50
KILLS = 3
WRITERS = 2
FLUSH_SECONDS = 600.0


def run(data: object = None) -> Iterator[BenchmarkRow]:
    """Yield the figures."""
    rounds = [(_appended(beside=False), _appended(beside=True)) for _ in range(ROUNDS)]
    what = f"{MESSAGES:,} messages in bursts of {BURST}: an append beside the worker / alone, p50"
    yield row(NAME, what, statistics.median(b.p50_ms / a.p50_ms for a, b in rounds), "×", at_most=1.2)
    for name, found in (("alone", [a for a, _ in rounds]), ("beside the worker", [b for _, b in rounds])):
        for label in ("p50_ms", "p99_ms"):
            value = statistics.median(getattr(one, label) for one in found)
            yield row(NAME, f"an append {name}, {label[:3]}", value, "ms")
    beside = [b for _, b in rounds]
    yield row(NAME, "messages without a card after the bursts", statistics.median(b.behind for b in beside))
    yield row(NAME, "seconds until every message has its card", statistics.median(b.catch_up_seconds for b in beside))
    yield row(NAME, f"messages of {MESSAGES:,} that never got one", sum(b.missing for b in beside), at_most=0)
    yield from _fetched()
    errors, missing = _processes(WRITERS, kill=False)
    yield row(NAME, f"{WRITERS} processes on one store: errors", errors, at_most=0)
    yield row(NAME, f"{WRITERS} processes on one store: cards missing", missing, at_most=0)
    _, missing = _processes(KILLS, kill=True)
    yield row(NAME, f"{KILLS} processes killed while they append: cards missing", missing, at_most=0)


class _AppendFigures(NamedTuple):
    p50_ms: float
    p99_ms: float
    behind: int = 0
    catch_up_seconds: float = 0.0
    missing: int = 0


def _appended(*, beside: bool) -> _AppendFigures:
    messages = conversation(MESSAGES // SESSIONS)
    with tempfile.TemporaryDirectory() as folder, open_store(f"file:{folder}/store") as store:
        sessions = [store.session(f"s{n}") for n in range(SESSIONS)]
        cards = store.cards() if beside else None
        sessions[0].append(messages[0])  # the tokenizer is loaded
        spent = []
        for start in range(0, len(messages), BURST):
            for session in sessions:
                for message in messages[start : start + BURST]:
                    began = time.perf_counter()
                    session.append(message)
                    spent.append((time.perf_counter() - began) * 1e3)
        spent.sort()
        p50, p99 = spent[len(spent) // 2], spent[int(0.99 * len(spent))]
        if cards is None:
            return _AppendFigures(p50, p99)
        wanted = sum(map(len, sessions))
        behind = wanted - sum(one.carded for one in cards.index.sessions())
        began = time.perf_counter()
        cards.flush(FLUSH_SECONDS)
        seconds = time.perf_counter() - began
        return _AppendFigures(p50, p99, behind, seconds, wanted - sum(one.cards for one in cards.index.sessions()))


def _fetched() -> Iterator[BenchmarkRow]:
    """A session among others, as a selector fetches it."""
    with memory_store() as store, tempfile.TemporaryDirectory() as folder:
        for n in range(20):
            store.session(f"s{n}").extend(conversation(FETCHED, seed=n))
        index = open_cards(f"sqlite:{folder}/cards.sqlite")
        rebuild(store, index, card_maker())
        session, spent = store.session("s7"), []
        for _ in range(FETCHES):
            began = time.perf_counter()
            found = cards_of(index, session)
            spent.append((time.perf_counter() - began) * 1e3)
            assert len(found) == FETCHED, f"{len(found)} cards of {FETCHED} messages"
        index.close()
    yield row(NAME, f"fetching the cards of a session of {FETCHED}, p50", statistics.median(spent), "ms", at_most=2)


_WRITER = """
import sys
from ctxsteward.envelope import open_store
from ctxsteward.evals.bench.benchmark_row import conversation
uri, me, batches = sys.argv[1], sys.argv[2], int(sys.argv[3])
messages = conversation(10 * batches, seed=int(me))
with open_store(uri) as store:
    cards = store.cards()
    for n in range(batches):
        for name in ("shared", me):
            store.session(name).extend(messages[10 * n : 10 * n + 10])
            print(name, flush=True)
    finished = cards.flush(600)
    sys.exit(bool(cards.findings) or not finished)
"""


def _processes(count: int, *, kill: bool) -> tuple[int, int]:
    """Processes that failed, and cards missing of acknowledged messages once the last one has caught up.

    They run at the same time, or one after the other, each killed after some batches.
    """
    with tempfile.TemporaryDirectory() as folder:
        uri = f"file:{folder}/store"
        if kill:
            said = [_killed(uri, n) for n in range(count)]
            failed = 0
        else:
            writers = [_writer(uri, n, 20) for n in range(count)]
            said = [writer.communicate(timeout=FLUSH_SECONDS)[0].split() for writer in writers]
            failed = sum(writer.returncode != 0 for writer in writers)
        with open_store(uri) as store:
            store.cards().flush(FLUSH_SECONDS)
            return failed, _missing(store, [name for names in said for name in names])


def _writer(uri: str, n: int, batches: int) -> subprocess.Popen[str]:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    command = [sys.executable, "-c", _WRITER, uri, str(n), str(batches)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": path})


def _killed(uri: str, n: int) -> list[str]:
    """Sessions whose batches were acknowledged before the kill, one name a batch."""
    with _writer(uri, n, 1_000) as writer:
        assert writer.stdout is not None
        said = []
        for line in writer.stdout:
            said.append(line.strip())
            if len(said) == 40 + 20 * n:
                writer.send_signal(signal.SIGKILL)
    return said


def _missing(store: Store, acknowledged: list[str]) -> int:
    """Messages without a card, and acknowledged ones that are not even in the log."""
    marks = {one.session: one.cards for one in store.cards().index.sessions()}
    missing = 0
    for name in set(acknowledged):
        length = len(store.session(name))
        missing += max(0, 10 * acknowledged.count(name) - length) + length - marks.get(name, 0)
    return missing
