"""What recall costs: ranking a question at 600 and at 20,000 turns, and adding one turn to the index.

The turns are drawn from a seeded vocabulary in which a few words are common and most are rare (Zipf), 15 words each,
30 turns a day.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import accumulate

from ctxsteward.envelope import Weights
from ctxsteward.envelope.recall.lexical_index import IndexedTurn, TurnIndex
from ctxsteward.language.terms import terms

from . import BenchmarkRow, row

NAME = "selection"
SIZES = (600, 20_000)
WORDS = 8_000
TURN_WORDS = 15
TURNS_A_DAY = 30
QUESTIONS = 100
ROUNDS = 5
_TAIL = 500
"""The last turns, whose adding is timed."""


def run(data: object = None) -> Iterator[BenchmarkRow]:
    """Yield the figures."""
    made = {size: _index(size) for size in SIZES}
    young, old = SIZES
    queries = {size: [_query_ms(made[size][0]) for _ in range(ROUNDS)] for size in SIZES}
    fresh = [(_index(young)[1], _index(old)[1]) for _ in range(3)]
    for size, most in ((young, 1.0), (old, None)):
        p50 = statistics.median(p50 for p50, _ in queries[size])
        yield row(NAME, f"ranking a question at {size:,} turns, p50", p50, "ms", at_most=most)
        yield row(
            NAME, f"ranking a question at {size:,} turns, p99", statistics.median(p for _, p in queries[size]), "ms"
        )
    yield row(NAME, f"adding a turn at {young:,} turns", statistics.median(a for a, _ in fresh) * 1e3, "µs")
    ratio = statistics.median(b / a for a, b in fresh)
    yield row(NAME, f"adding a turn at {old:,} / {young:,} turns", ratio, "×", at_most=1.5)


def _texts(size: int, seed: int = 7) -> Iterator[str]:
    rng = random.Random(seed)
    words = [f"w{''.join(chr(97 + int(digit)) for digit in str(number))}" for number in range(WORDS)]
    weights = list(accumulate(1 / (rank + 10) for rank in range(WORDS)))
    for number in range(size):
        said = " ".join(rng.choices(words, cum_weights=weights, k=TURN_WORDS))
        yield f"{said}{'?' if number % 4 == 0 else '.'}"


def _index(size: int) -> tuple[TurnIndex, float]:
    """An index of so many turns, and the median milliseconds that one of the last took."""
    index, spent = TurnIndex(), []
    for number, text in enumerate(_texts(size)):
        day = date(2023, 1, 1) + timedelta(days=number // TURNS_A_DAY)
        started = time.process_time_ns()
        asks = text.endswith("?")
        index.add(
            number + 1,
            IndexedTurn(terms(text), asks, asks, ("ann", "bob")[number % 2], str(day), terms(f"{day:%d %B %Y}")),
        )
        if number >= size - _TAIL:
            spent.append((time.process_time_ns() - started) / 1e6)
    return index, statistics.median(spent)


def _query_ms(index: TurnIndex) -> tuple[float, float]:
    """p50 and p99 of a ranking, the question's words cut and stemmed included."""
    weights, spent = Weights(), []
    for text in _texts(QUESTIONS, seed=11):
        question = " ".join(text.split()[:8])
        started = time.process_time_ns()
        index.rank(terms(question), question, weights, limit=250)
        spent.append((time.process_time_ns() - started) / 1e6)
    spent.sort()
    return spent[len(spent) // 2], spent[int(0.99 * (len(spent) - 1))]
