"""The index of one session: each turn's own terms, and rankings of it that see its surroundings.

A turn is scored together with its neighbours (context-indexed BM25): what answers a question often shares no word with
it, but its neighbours do. Postings hold each turn's own terms only; surroundings are summed at the query, so adding a
turn costs its own terms, and a query the postings it touches, at most about `MAX_POSTINGS`. A *sitting* is a run of
turns of one day: neighbours do not reach across it, and it is scored as a whole, with the words of its date, where
there are several: one alone would only lift what shares no word with the query above 0.

A score is the sum of its signals, each scaled to its weight at its best turn. Ties go to the older turn: what a sitting
began with says more.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from ..accounting import stands_in
from ..selection import Scored
from .bm25 import Lengths, Postings, add_bm25
from .found import Found, Signals
from .weights import Weights

NEAR_TURNS = 1
WIDE_TURNS = 2
COMMON_FRACTION = 0.4
"""A term in more of the turns than this tells none of them apart."""
COMMON_FROM_TURNS = 50
MAX_QUERY_TERMS = 64
"""Of a query; the rarest stay where there are more."""
MAX_POSTINGS = 2_000
"""Touched by a query: its terms are taken rarest first while they hold no more than this, one term at least."""
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
        self._asks: list[bool] = []
        self._is_question: list[bool] = []
        self._speaker_of: list[str | None] = []
        self._starts: list[int] = []
        """First turn of each turn's sitting."""
        self._own = Postings()
        self._near, self._wide, self._asked = Lengths(), Lengths(), Lengths()
        self._sittings, self._dates = Postings(), Postings()
        self._sitting_of: list[int] = []
        self._sitting_starts: list[int] = []
        self._sitting: str | None = None
        self._speakers: set[str] = set()

    def __len__(self) -> int:
        return len(self.ordinals)

    def add(self, ordinal: int, turn: Turn) -> None:
        """Take the next turn."""
        here, length = len(self.ordinals), len(turn.terms)
        if not here or turn.sitting not in (None, self._sitting):
            self._sitting = turn.sitting
            self._sitting_starts.append(here)
            for postings in (self._sittings, self._dates):
                postings.add(len(self._sitting_starts) - 1, turn.date_terms)
        start = self._sitting_starts[-1]
        self.ordinals.append(ordinal)
        self._starts.append(start)
        self._sitting_of.append(len(self._sitting_starts) - 1)
        self._own.add(here, turn.terms)
        self._sittings.add(self._sitting_of[-1], turn.terms)
        own = self._own.lengths.of
        for reach, lengths in ((NEAR_TURNS, self._near), (WIDE_TURNS, self._wide)):
            before = range(max(start, here - reach), here)
            lengths.add(here, length + sum(own[earlier] for earlier in before))
            for earlier in before:
                lengths.add(earlier, length)
        answers = here > start and self._asks[here - 1]
        self._asked.add(here, length + (own[here - 1] if answers else 0))
        self._asks.append(turn.asks)
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
        near, wide, asked = self._surroundings(query, weights)
        several = len(self._sitting_starts) > 1  # one alone tells no turns apart
        found = Found(
            weights=weights,
            near=_scaled(near, weights.near),
            wide=_scaled(wide, weights.wide),
            asked=_scaled(asked, weights.asked),
            sittings=_scaled(self._sittings.scores(dated, weights), weights.sitting) if several else {},
            dates=_scaled(self._dates.scores(dated, weights), weights.date) if several else {},
            speaker=self._named(query_text),
            pinned=pinned,
            recency=weights.recency / max(1, len(self) - 1),
        )
        scores = self._scores(found)
        shown = sorted(turn for turn, score in scores.items() if score > 0 and self.ordinals[turn] not in skip)
        if len(shown) > 4 * limit:
            best = heapq.nlargest(limit, shown, key=scores.__getitem__)  # the same, and cheaper then
        else:
            best = sorted(shown, key=scores.__getitem__, reverse=True)[:limit]
        return [Scored(self.ordinals[turn], scores[turn], Signals(self.signals, found, turn)) for turn in best]

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
        kept: dict[str, int] = {}
        postings = 0
        for term in rare:
            postings += held[term]
            if postings > MAX_POSTINGS and kept:
                break
            if held[term]:
                kept[term] = query[term]
        return kept, {term: query[term] for term in rare}

    def _surroundings(self, query: Mapping[str, int], weights: Weights) -> tuple[dict[int, float], ...]:
        """BM25 of each turn with its neighbours, with more of them, and under the question it answers."""
        near: dict[int, float] = {}
        wide: dict[int, float] = {}
        asked: dict[int, float] = {}
        for term, times in query.items():
            in_near, in_wide, in_asked = self._spread(self._own.counts[term])
            add_bm25(near, in_near, self._near, times, weights)
            add_bm25(wide, in_wide, self._wide, times, weights)
            add_bm25(asked, in_asked, self._asked, times, weights)
        return near, wide, asked

    def _spread(self, own: Mapping[int, int]) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
        """A term's counts per turn, summed over each turn's surroundings."""
        starts, asks, turns = self._starts, self._asks, len(self.ordinals)
        near: dict[int, int] = {}
        wide: dict[int, int] = {}
        asked = dict(own)
        for turn, count in own.items():
            start = starts[turn]
            for other in range(max(start, turn - WIDE_TURNS), min(turns, turn + WIDE_TURNS + 1)):
                if starts[other] != start:
                    break
                wide[other] = wide.get(other, 0) + count
                if turn - NEAR_TURNS <= other <= turn + NEAR_TURNS:
                    near[other] = near.get(other, 0) + count
            after = turn + 1
            if asks[turn] and after < turns and starts[after] == start:
                asked[after] = asked.get(after, 0) + count
        return near, wide, asked

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
        sitting_of, is_question, speaker_of = self._sitting_of, self._is_question, self._speaker_of
        weights, speaker, pinned, recency = found.weights, found.speaker, found.pinned, found.recency
        for turn in scores:
            score = of_sitting.get(sitting_of[turn], 0.0) + recency * turn
            if is_question[turn]:
                score -= weights.question
            if speaker is not None and speaker_of[turn] == speaker:
                score += weights.speaker
            if pinned and self.ordinals[turn] in pinned:
                score += weights.callout
            scores[turn] = score
        for surroundings in (found.near, found.wide, found.asked):
            for turn, value in surroundings.items():
                scores[turn] += value
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


def _scaled(scores: dict[int, float], weight: float) -> dict[int, float]:
    """The best one has `weight`."""
    scale = weight / (max(scores.values(), default=0.0) or 1.0)
    return {key: scale * value for key, value in scores.items()}
