"""What stands around a turn: BM25 of turns together with their neighbours, out of postings of each turn's own terms.

Three ways to see a turn: *near*, with the one before and the one after; *wide*, with two on each side; *asked*, with
the question it answers. Neighbours do not reach across a sitting (a day's talk), which is a run of turns.

Only the neighbourhoods of a query's best `MAX_HITS` turns are summed, so a query costs no more in a long session than
in one of a few hundred turns. A turn is as good a hit as its own BM25 and that of the turns beside it. How many
neighbourhoods hold a term is then scaled up from those that were summed. Five conversations put end to end (2,760
turns, 760 questions) lose nothing of the evidence shown with 700 hits; with 500, 0.4 points, with 300, 0.6.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

from .bm25 import MAX_POSTINGS, Lengths, Postings, add_bm25
from .weights import Weights

MAX_HITS = 700
NEAR_TURNS = 1
WIDE_TURNS = 2


class Around(NamedTuple):
    """By turn: what the query finds in it together with its neighbours, with more of them, with its question."""

    near: dict[int, float]
    wide: dict[int, float]
    asked: dict[int, float]


class _Counts(NamedTuple):
    """A term's counts per turn, summed over each turn's surroundings."""

    near: dict[int, int]
    wide: dict[int, int]
    asked: dict[int, int]


class Surroundings:
    """Of the turns of one session, in order; turns are numbered from 0."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        """First turn of each turn's sitting."""
        self._asks: list[bool] = []
        self._near, self._wide, self._asked = Lengths(), Lengths(), Lengths()

    def add(self, start: int, asks: bool, own: list[int]) -> None:
        """Take the next turn, of the sitting that starts at `start`; `own` are the terms of each turn up to it."""
        here = len(self._starts)
        length = own[here]
        for reach, lengths in ((NEAR_TURNS, self._near), (WIDE_TURNS, self._wide)):
            before = range(max(start, here - reach), here)
            lengths.add(here, length + sum(own[earlier] for earlier in before))
            for earlier in before:
                lengths.add(earlier, length)
        answers = here > start and self._asks[here - 1]
        self._asked.add(here, length + (own[here - 1] if answers else 0))
        self._starts.append(start)
        self._asks.append(asks)

    def scores(self, own: Postings, query: Mapping[str, int], weights: Weights) -> Around:
        """BM25 of the neighbourhoods of the query's best hits (term → times; each term is held by some turn)."""
        around = Around({}, {}, {})
        hits = best_hits(own, query, weights)
        for term, times in query.items():
            held = own.counts[term]
            counts = held if hits is None else {turn: held[turn] for turn in held.keys() & hits}
            if not counts:
                continue
            scale = len(held) / len(counts)
            for scores, spread, lengths in zip(
                around, self._spread(counts), (self._near, self._wide, self._asked), strict=True
            ):
                add_bm25(scores, spread, lengths, times, weights, min(len(lengths.of), len(spread) * scale))
        return around

    def _spread(self, counts: Mapping[int, int]) -> _Counts:
        near = dict(counts)
        self._reach(near, counts, NEAR_TURNS)
        wide = dict(near)
        self._reach(wide, counts, WIDE_TURNS)
        return _Counts(near, wide, self._under_question(counts))

    def _reach(self, sums: dict[int, int], counts: Mapping[int, int], away: int) -> None:
        """Add counts to the turns so far away on both sides, within the sitting."""
        starts, turns, get = self._starts, len(self._starts), sums.get
        for turn, count in counts.items():
            start, before, after = starts[turn], turn - away, turn + away
            if before >= start:
                sums[before] = get(before, 0) + count
            if after < turns and starts[after] == start:
                sums[after] = get(after, 0) + count

    def _under_question(self, counts: Mapping[int, int]) -> dict[int, int]:
        starts, asks, turns = self._starts, self._asks, len(self._starts)
        asked = dict(counts)
        for turn, count in counts.items():
            after = turn + 1
            if asks[turn] and after < turns and starts[after] == starts[turn]:
                asked[after] = asked.get(after, 0) + count
        return asked


def best_hits(own: Postings, query: Mapping[str, int], weights: Weights) -> set[int] | None:
    """The turns whose neighbourhoods are worth summing; None where those that hold a term of the query are few."""
    if sum(len(own.counts[term]) for term in query) <= MAX_HITS:
        return None
    scores: dict[int, float] = {}
    for term, times in query.items():
        held = own.counts[term]
        newest = dict(islice(reversed(held.items()), MAX_POSTINGS)) if len(held) > MAX_POSTINGS else held
        add_bm25(scores, newest, own.lengths, times, weights, len(held))
    get = scores.get
    beside = ((score + get(turn - 1, 0.0) + get(turn + 1, 0.0), -turn) for turn, score in scores.items())
    return {-turn for _, turn in heapq.nlargest(MAX_HITS, beside)}
