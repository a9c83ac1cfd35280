"""What single things cost: an import, first sessions, an audit, a ranking, cards.

Cards are those of one session in a `file:` store, made and read again. Wall time.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import accumulate
from pathlib import Path

from ctxsteward.envelope import PROVIDERS, Budgets, EnvelopeBuilder, Store, open_store
from ctxsteward.envelope.audit import audit, sealed_request
from ctxsteward.envelope.cards import cards_of
from ctxsteward.envelope.recall.heuristic import Weights
from ctxsteward.envelope.recall.session_index import IndexedUnit, SessionIndex
from ctxsteward.envelope.testing import memory_store
from ctxsteward.evals.suites.kit.suite import Draw
from ctxsteward.evals.suites.verbatim import make
from ctxsteward.language.words import terms

from .conversations import conversation
from .rows import BenchmarkRow, row

HEAVY = ("boto3", "prefect", "numpy", "openai", "tiktoken", "ruamel.yaml", "click", "rich")
_IMPORT = f"""
import json, sys, time
start = time.process_time()
import ctxsteward.envelope
heavy = [m for m in {HEAVY!r} if m in sys.modules]
from ctxsteward.envelope import EnvelopeBuilder, open_store
print(json.dumps([time.process_time() - start, heavy]))
"""


def import_cost(data: object = None) -> Iterator[BenchmarkRow]:
    """Measure importing the builder in a fresh process, and check which modules the package alone does not load."""
    results = [json.loads(subprocess.check_output([sys.executable, "-c", _IMPORT])) for _ in range(5)]
    seconds = statistics.median(seconds for seconds, _ in results)
    yield row("import", "import of EnvelopeBuilder and open_store", seconds, "s", at_most=0.25)
    loaded = sorted({module for _, modules in results for module in modules})
    yield row("import", f"of {', '.join(HEAVY)} imported by the package alone", len(loaded), at_most=0)


THREADS = 200
FIRST_ROUNDS = 3
_FIRST_SESSIONS = f"""
import json, re, resource, sys, tempfile, threading, time
from pathlib import Path
from ctxsteward.envelope import open_store

def most_kib():
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says includes the parent's memory, as it was before this program began
        return int(re.search("VmHWM:\\s*(\\d+) kB", status.read_text())[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "darwin" else 1)

def first(number):
    gate.wait()
    store.session(f"s{{number}}").append({{"role": "user", "content": "Where is order FH-2044?"}})

with tempfile.TemporaryDirectory() as folder, open_store(f"file:{{folder}}") as store:
    gate = threading.Barrier({THREADS} + 1)
    threads = [threading.Thread(target=first, args=(number,)) for number in range({THREADS})]
    for thread in threads:
        thread.start()
    gate.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    assert len(store.sessions()) == {THREADS}
print(json.dumps([seconds, most_kib() / 1024]))
"""


def first_sessions(data: object = None) -> Iterator[BenchmarkRow]:
    """Measure a service that has just started: threads open their first sessions at once, in a fresh process.

    Figures are the wall time until a journal in a file has acknowledged each thread's first message, and the process's
    peak memory. Nearly all of both is the tokenizer's encoding, which is built once
    (`tests/envelope/tokens/test_tokenizer.py`).
    """
    rounds = [json.loads(subprocess.check_output([sys.executable, "-c", _FIRST_SESSIONS])) for _ in range(FIRST_ROUNDS)]
    seconds, megabytes = (statistics.median(figures) for figures in zip(*rounds, strict=True))
    yield row("first", f"{THREADS} threads open their first session at once", seconds, "s", at_most=3)
    yield row("first", "  the most memory of that process", megabytes, "MB", at_most=250)


STORE_TURNS = 200
BENCH_SCHEMA = "ctxsteward_bench"


def shared_stores(data: object = None) -> Iterator[BenchmarkRow]:
    """Measure a turn in a folder, and in the PostgreSQL of the client library's environment (``PGHOST``, ``PGUSER``).

    Figures are median wall times, on the disks of both; an append is acknowledged when it is on disk. There is no row
    for PostgreSQL if no server answers. The schema used for the turns is dropped afterwards.
    """
    import psycopg

    with tempfile.TemporaryDirectory() as folder:
        with open_store(f"file:{folder}/store") as store:
            yield from _turns(store, "a folder")
        try:
            server = psycopg.connect("", autocommit=True)
        except psycopg.OperationalError:
            return
        with server, open_store(f"postgresql:///?schema={BENCH_SCHEMA}&keys={folder}/keys") as store:
            yield from _turns(store, "PostgreSQL")
            server.execute(f"DROP SCHEMA {BENCH_SCHEMA} CASCADE")


def _turns(store: Store, where: str) -> Iterator[BenchmarkRow]:
    builder = EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=2_000))
    session = store.session("bench")
    appended, built = [], []
    for turn, text in enumerate(_texts(STORE_TURNS)):
        started = time.perf_counter()
        session.append({"role": "user", "content": text})
        waited = time.perf_counter()
        builder.build(session)
        built.append((time.perf_counter() - waited) * 1e3)
        appended.append((waited - started) * 1e3)
        session.append({"role": "assistant", "content": f"Noted {turn}. {text * 6}"})
    yield row("store", f"append in {where}, p50 of {STORE_TURNS} turns", statistics.median(appended), "ms")
    yield row("store", f"build in {where}, p50 of {STORE_TURNS} turns", statistics.median(built), "ms")


AUDIT_TOKENS = 20_000
AUDITS = 100
AUDIT_LIMIT_MS = 10


def audits(data: Path | None = None) -> Iterator[BenchmarkRow]:
    """Measure the audit of a large, sealed request without differences, as it came back from a log."""
    session = memory_store().session("large")
    session.extend(make(Draw("verbatim", "docs", 0)).messages)
    envelope = EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=2 * AUDIT_TOKENS)).build(session)
    for provider in PROVIDERS:
        sent = json.loads(json.dumps(sealed_request(envelope, provider)))
        costs = []
        for _ in range(AUDITS):
            started = time.process_time()
            differences = audit(envelope, sent)
            costs.append((time.process_time() - started) * 1000)
            assert differences == (), differences
        what = f"p99 of auditing a clean request of {envelope.tokens:,} tokens, {provider}"
        yield row("audit", what, sorted(costs)[AUDITS - 2], "ms", at_most=AUDIT_LIMIT_MS)


RANKED_TURNS = (600, 20_000)
VOCABULARY = 8_000
TURN_WORDS = 15
TURNS_A_DAY = 30
QUESTIONS = 100
RANKING_ROUNDS = 5
_TAIL = 500
"""Number of last turns whose adding is timed."""


def rankings(data: object = None) -> Iterator[BenchmarkRow]:
    """Measure the ranking of a question at 600 and at 20,000 turns, and the adding of one turn to the index.

    The turns are drawn from a seeded vocabulary in which a few words are common and most are rare (Zipf), 15 words
    each, 30 turns a day.
    """
    indexes = {size: _index(size) for size in RANKED_TURNS}
    young, old = RANKED_TURNS
    queries = {size: [_query_ms(indexes[size][0]) for _ in range(RANKING_ROUNDS)] for size in RANKED_TURNS}
    fresh = [(_index(young)[1], _index(old)[1]) for _ in range(3)]
    for size, most in ((young, 1.0), (old, None)):
        p50, p99 = map(statistics.median, zip(*queries[size], strict=True))
        yield row("selection", f"ranking a question at {size:,} turns, p50", p50, "ms", at_most=most)
        yield row("selection", f"ranking a question at {size:,} turns, p99", p99, "ms")
    yield row("selection", f"adding a turn at {young:,} turns", statistics.median(a for a, _ in fresh) * 1e3, "µs")
    ratio = statistics.median(b / a for a, b in fresh)
    yield row("selection", f"adding a turn at {old:,} / {young:,} turns", ratio, "×", at_most=1.5)


def _texts(size: int, seed: int = 7) -> Iterator[str]:
    rng = random.Random(seed)
    words = [f"w{''.join(chr(97 + int(digit)) for digit in str(number))}" for number in range(VOCABULARY)]
    weights = list(accumulate(1 / (rank + 10) for rank in range(VOCABULARY)))
    for number in range(size):
        said = " ".join(rng.choices(words, cum_weights=weights, k=TURN_WORDS))
        yield f"{said}{'?' if number % 4 == 0 else '.'}"


def _index(size: int) -> tuple[SessionIndex, float]:
    """Return an index of `size` turns, and the median milliseconds of adding one of the last."""
    index, spent = SessionIndex(), []
    for number, text in enumerate(_texts(size)):
        day = date(2023, 1, 1) + timedelta(days=number // TURNS_A_DAY)
        started = time.process_time_ns()
        asks = text.endswith("?")
        index.add(
            number + 1,
            IndexedUnit(
                terms(text), len(text) // 4, asks, ("ann", "bob")[number % 2], str(day), terms(f"{day:%d %B %Y}")
            ),
        )
        if number >= size - _TAIL:
            spent.append((time.process_time_ns() - started) / 1e6)
    return index, statistics.median(spent)


def _query_ms(index: SessionIndex) -> tuple[float, float]:
    """Return p50 and p99 of a ranking, including cutting and stemming the question's words."""
    weights, spent = Weights(), []
    for text in _texts(QUESTIONS, seed=11):
        question = " ".join(text.split()[:8])
        started = time.process_time_ns()
        index.rank(terms(question), question, weights, limit=250)
        spent.append((time.process_time_ns() - started) / 1e6)
    spent.sort()
    return spent[len(spent) // 2], spent[int(0.99 * (len(spent) - 1))]


FETCHED = 200
"""Messages of the session whose cards are read."""
FETCHES = 50


def cards(data: object = None) -> Iterator[BenchmarkRow]:
    """Yield what the cards of a session cost at first, and again."""
    with tempfile.TemporaryDirectory() as folder, open_store(f"file:{folder}/store") as store:
        session, spent = store.session("s"), []
        session.extend(conversation(FETCHED))
        for _ in range(FETCHES):
            began = time.perf_counter()
            found = cards_of(session).cards
            spent.append((time.perf_counter() - began) * 1e3)
            assert len(found) == FETCHED, f"{len(found)} cards of {FETCHED} messages"
    yield row("cards", f"making the cards of a session of {FETCHED}", spent[0], "ms")
    yield row("cards", "reading them again, p50", statistics.median(spent), "ms", at_most=20)
