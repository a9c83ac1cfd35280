"""The index of one session: each turn's own terms, and rankings of it that see its surroundings.

A turn is scored together with its neighbours (context-indexed BM25): what answers a question often shares no word with
it, but its neighbours do (`surroundings`). Postings hold each turn's own terms only; surroundings are summed at the
query, so adding a turn costs its own terms, and a query the postings it touches: at most `MAX_POSTINGS` of turns and
about as many of sittings, however long the session. A *sitting* is a run of turns of one day: neighbours do not reach
across it, and it is scored as a whole, with the words of its date, where there are several: one alone would only lift
what shares no word with the query above 0.

A score is the sum of its signals, each scaled to its weight at its best turn. Ties go to the older turn: what a sitting
began with says more.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import NamedTuple

from ..accounting import stands_in
from ..selection import Scored
from .bm25 import MAX_POSTINGS, Postings
from .found import Found, Signals
from .surroundings import Surroundings
from .weights import Weights

COMMON_FRACTION = 0.4
"""A term in more of the turns than this tells none of them apart."""
COMMON_FROM_TURNS = 50
MAX_QUERY_TERMS = 64
"""Of a query; the rarest stay where there are more."""
MIN_CANDIDATES = 1_000
"""Turns that are ranked at least: beside those that share a term with the query, the best sittings', then the newest.
"""
MAX_RANKED = 400
"""Turns of a ranking; what stands further down is left out."""


class Turn(NamedTuple):
    """A message as the index sees it."""

    terms: Sequence[str]
    asks: bool = False
    """It holds a question: what follows may be the answer."""
    is_question: bool = False
    """It ends in one: it asks more than it says."""
    speaker: str | None = None
    """A name, in lower case; None where nothing says it."""
    sitting: str | None = None
    """The same for turns of one day; None: that of the turn before."""
    date_terms: Sequence[str] = ()


class TurnIndex:
    """Turns of one session in order; ordinals ascend."""

    def __init__(self) -> None:
        self.ordinals: list[int] = []
        self._is_question: list[bool] = []
        self._speaker_of: list[str | None] = []
        self._own = Postings()
        self._around = Surroundings()
        self._sittings, self._dates = Postings(), Postings()
        self._sitting_of: list[int] = []
        self._sitting_starts: list[int] = []
        self._sitting: str | None = None
        self._speakers: set[str] = set()

    def __len__(self) -> int:
        return len(self.ordinals)

    def add(self, ordinal: int, turn: Turn) -> None:
        """Take the next turn."""
        here = len(self.ordinals)
        if not here or turn.sitting not in (None, self._sitting):
            self._sitting = turn.sitting
            self._sitting_starts.append(here)
            for postings in (self._sittings, self._dates):
                postings.add(len(self._sitting_starts) - 1, turn.date_terms)
        self.ordinals.append(ordinal)
        self._sitting_of.append(len(self._sitting_starts) - 1)
        self._own.add(here, turn.terms)
        self._sittings.add(self._sitting_of[-1], turn.terms)
        self._around.add(self._sitting_starts[-1], turn.asks, self._own.lengths.of)
        self._is_question.append(turn.is_question)
        self._speaker_of.append(turn.speaker)
        if turn.speaker:
            self._speakers.add(turn.speaker)

    def rank(
        self,
        query_terms: Iterable[str],
        query_text: str,
        weights: Weights,
        *,
        pinned: Set[int] = frozenset(),
        skip: Set[int] = frozenset(),
        limit: int = MAX_RANKED,
    ) -> list[Scored]:
        """The best `limit` turns with a score above 0, best first, without the ordinals to `skip`."""
        query, dated = self._telling(Counter(query_terms))
        if not (dated or weights.recency):
            return []
        around = self._around.scores(self._own, query, weights)
        several = len(self._sitting_starts) > 1  # one alone tells no turns apart
        found = Found(
            weights=weights,
            near=_scaled(around.near, weights.near),
            wide=_scaled(around.wide, weights.wide),
            asked=_scaled(around.asked, weights.asked),
            sittings=_scaled(self._sittings.scores(dated, weights), weights.sitting) if several else {},
            dates=_scaled(self._dates.scores(dated, weights), weights.date) if several else {},
            speaker=self._named(query_text),
            pinned=pinned,
            recency=weights.recency / max(1, len(self) - 1),
        )
        scores = self._scores(found)
        shown = ((-score, turn) for turn, score in scores.items() if score > 0 and self.ordinals[turn] not in skip)
        best = heapq.nsmallest(limit, shown)  # of equals the older one
        return [Scored(self.ordinals[turn], -score, Signals(self.signals, found, turn)) for score, turn in best]

    # -- the query ----------------------------------------------------------------------------------------------

    def _telling(self, query: Counter[str]) -> tuple[dict[str, int], dict[str, int]]:
        """The terms that tell turns apart, rarest first; and those for sittings, words of dates included."""
        held = {term: len(self._own.counts.get(term, ())) for term in query}
        known = [term for term, turns in held.items() if turns or term in self._dates.counts]
        known = sorted(known, key=lambda term: (held[term], term))[:MAX_QUERY_TERMS]
        most = COMMON_FRACTION * len(self) if len(self) >= COMMON_FROM_TURNS else len(self)
        rare = [term for term in known if held[term] <= most]
        if not any(held[term] for term in rare):
            rare = known
        told = _within(rare, lambda term: held[term])
        dated = sorted(rare, key=lambda term: len(self._sittings.counts.get(term, ())))
        told_dated = _within(dated, lambda term: len(self._sittings.counts.get(term, ())))
        return {term: query[term] for term in told if held[term]}, {term: query[term] for term in told_dated}

    def _named(self, query_text: str) -> str | None:
        """The one speaker that the query names; None for none or several."""
        text = query_text.lower()
        named = [name for name in self._speakers if name in text and stands_in(name, text)]
        return named[0] if len(named) == 1 else None

    # -- the score ----------------------------------------------------------------------------------------------

    def _scores(self, found: Found) -> dict[int, float]:
        """Every candidate's score."""
        scores = dict.fromkeys(self._candidates(found), 0.0)
        of_sitting = {sitting: score + found.dates.get(sitting, 0.0) for sitting, score in found.sittings.items()}
        near, wide, asked, day = found.near.get, found.wide.get, found.asked.get, of_sitting.get
        sitting_of, is_question, recency = self._sitting_of, self._is_question, found.recency
        for turn in scores:
            score = near(turn, 0.0) + wide(turn, 0.0) + asked(turn, 0.0) + day(sitting_of[turn], 0.0) + recency * turn
            scores[turn] = score - found.weights.question if is_question[turn] else score
        if found.speaker is not None:
            for turn in scores:
                if self._speaker_of[turn] == found.speaker:
                    scores[turn] += found.weights.speaker
        if found.pinned:
            for turn in scores:
                if self.ordinals[turn] in found.pinned:
                    scores[turn] += found.weights.callout
        return scores

    def _candidates(self, found: Found) -> Iterator[int]:
        """Turns to rank; some more than once."""
        yield from found.wide
        left = MIN_CANDIDATES - len(found.wide)
        for sitting in sorted(found.sittings, key=lambda key: (-found.sittings[key], key)):
            if left <= 0:
                return
            stop = self._sitting_starts[sitting + 1] if sitting + 1 < len(self._sitting_starts) else len(self)
            turns = range(self._sitting_starts[sitting], stop)
            yield from turns
            left -= len(turns)
        yield from range(max(0, len(self) - max(0, left)), len(self))

    def signals(self, found: Found, turn: int) -> dict[str, float]:
        """What a turn's score is the sum of, by name, without those that are 0."""
        weights, sitting = found.weights, self._sitting_of[turn]
        signals = {
            "near": found.near.get(turn, 0.0),
            "wide": found.wide.get(turn, 0.0),
            "asked": found.asked.get(turn, 0.0),
            "sitting": found.sittings.get(sitting, 0.0),
            "date": found.dates.get(sitting, 0.0),
            "speaker": weights.speaker if found.speaker and self._speaker_of[turn] == found.speaker else 0.0,
            "question": -weights.question if self._is_question[turn] else 0.0,
            "recency": found.recency * turn,
            "callout": weights.callout if self.ordinals[turn] in found.pinned else 0.0,
        }
        return {name: value for name, value in signals.items() if value}


def _within(terms: Iterable[str], postings: Callable[[str], int]) -> Iterator[str]:
    """The first of these terms while they hold no more than `MAX_POSTINGS` together; one that holds any at least."""
    total = 0
    for term in terms:
        before, total = total, total + postings(term)
        if total > MAX_POSTINGS and before:
            return
        yield term


def _scaled(scores: dict[int, float], weight: float) -> dict[int, float]:
    """The best one has `weight`."""
    scale = weight / (max(scores.values(), default=0.0) or 1.0)
    return {key: scale * value for key, value in scores.items()}
