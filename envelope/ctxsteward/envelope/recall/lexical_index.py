"""The lexical index of one session (`TurnIndex`): context-indexed BM25 over its turns, for `heuristic`.

A turn is a message, or a passage of a long one. It is scored together with its neighbours: what answers a question
often shares no word with it, but its neighbours do. There are two ways to see a turn: *wide*, with two on each side;
*asked*, with the question it answers (`NeighbourBoost`). A *sitting* is a run of turns of one day: neighbours do not
reach across it, and it is scored as a whole, with the words of its date, where there are several sittings. (With one
alone, this would only lift what shares no word with the query above 0.)

BM25 is how much a text says about a query's terms, for how rare they are and how long it is:

    idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5))          N texts, n of them hold t
    score  = Σ idf(t) · f · (k1 + 1) / (f + k1 · (1 - b + b · length / mean length))      f times in the text

A turn's score is the sum of its signals, each scaled to its weight at its best turn. Ties go to the older turn: what a
sitting began with says more. Texts are numbered from 0 in the order of their adding; a text may be lengthened later.

Postings hold each turn's own terms only; surroundings are summed at the query. So adding a turn costs its own terms,
and a query costs the postings it touches: at most `MAX_POSTINGS` of turns and about as many of sittings, however long
the session. Only the neighbourhoods of a query's best `MAX_HITS` turns are summed; how many neighbourhoods hold a term
is then scaled up from those. A turn is as good a hit as its own BM25 and that of the turns beside it. Five
conversations put end to end (2,760 turns, 760 questions) lose nothing of the evidence shown with 700 hits; with 500,
0.4 points, with 300, 0.6.

Source: S. Robertson, H. Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009); the idf is Lucene's,
which is never negative.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from ..compaction.losses import stands_in
from .postings import Lengths, Postings, Weights, add_bm25
from .selection import ScoredOriginal


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexHits:
    """What a query found: scaled scores by turn (wide, asked) and by sitting, and what it says of turns."""

    weights: Weights
    wide: dict[int, float]
    asked: dict[int, float]
    sittings: dict[int, float]
    dates: dict[int, float]
    speaker: str | None
    pinned: Set[int]
    recency: float
    """Added for each turn before."""


class Signals(Mapping[str, float]):
    """A turn's signals, computed at their first use: of a ranking's hundreds a few dozen are logged."""

    __slots__ = ("_draw_up", "_found", "_made", "_turn")

    def __init__(self, draw_up: Callable[[IndexHits, int], dict[str, float]], found: IndexHits, turn: int) -> None:
        self._draw_up, self._found, self._turn = draw_up, found, turn
        self._made: dict[str, float] | None = None

    def _signals(self) -> dict[str, float]:
        if self._made is None:
            self._made = self._draw_up(self._found, self._turn)
        return self._made

    def __getitem__(self, name: str) -> float:
        return self._signals()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._signals())

    def __len__(self) -> int:
        return len(self._signals())

    def __repr__(self) -> str:
        return repr(self._signals())


MAX_POSTINGS = 1_500
"""Touched by a query: its terms are taken rarest first while they hold no more than this, one term at least, and of
one that holds more alone the newest texts. Five conversations put end to end (2,760 turns, 760 questions) show as much
of the evidence with 1,500 as with 8,000; with 1,000 they lose 0.1-0.3 points."""


MAX_HITS = 700
WIDE_TURNS = 2
"""On each side; `NeighbourBoost` sums just these."""


class NeighbourBoost:
    """Of the turns of one session, in order; turns are numbered from 0."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        """First turn of each turn's sitting."""
        self._asks: list[bool] = []
        self._wide, self._asked = Lengths(), Lengths()

    def add(self, start: int, asks: bool, own: Sequence[int]) -> None:
        """Take the next turn, of the sitting that starts at `start`; `own` are the terms of each turn up to it."""
        number = len(self._starts)
        length = own[number]
        before = range(max(start, number - WIDE_TURNS), number)
        self._wide.add(number, length + sum(own[earlier] for earlier in before))
        for earlier in before:
            self._wide.add(earlier, length)
        answers = number > start and self._asks[number - 1]
        self._asked.add(number, length + (own[number - 1] if answers else 0))
        self._starts.append(start)
        self._asks.append(asks)

    def state(self) -> list[Any]:
        """All of it, for `resume`."""
        return [array("I", self._starts), array("B", self._asks), self._wide.of, self._asked.of]

    def resume(self, state: list[Any]) -> None:
        """Take up a state."""
        starts, asks, wide, asked = state
        self._starts, self._asks = starts.tolist(), [*map(bool, asks)]
        self._wide, self._asked = Lengths(wide), Lengths(asked)

    def scores(self, own: Postings, query: Mapping[str, int], weights: Weights) -> tuple[dict[int, float], ...]:
        """BM25 of the neighbourhoods of the query's best hits (term → times; each term is held by some turn).

        By turn: what is found in it together with its neighbours, and with its question.
        """
        around: tuple[dict[int, float], ...] = ({}, {})
        hits = best_hits(own, query, weights)
        for term, times in query.items():
            held = own.of(term)
            counts = held if hits is None else {turn: held[turn] for turn in held.keys() & hits}
            if not counts:
                continue
            scale = len(held) / len(counts)
            for scores, spread, lengths in zip(around, self._spread(counts), (self._wide, self._asked), strict=True):
                add_bm25(scores, spread, lengths, times, weights, min(len(lengths.of), len(spread) * scale))
        return around

    def _spread(self, counts: Mapping[int, int]) -> tuple[dict[int, int], ...]:
        """A term's counts per turn, summed over each turn's surroundings."""
        starts, turns = self._starts, len(self._starts)
        wide = dict(counts)
        get = wide.get
        for turn, count in counts.items():
            start = starts[turn]
            if turn > start:
                wide[turn - 1] = get(turn - 1, 0) + count
                if turn - 1 > start:
                    wide[turn - 2] = get(turn - 2, 0) + count
            if turn + 1 < turns and starts[turn + 1] == start:
                wide[turn + 1] = get(turn + 1, 0) + count
                if turn + 2 < turns and starts[turn + 2] == start:
                    wide[turn + 2] = get(turn + 2, 0) + count
        return wide, self._under_question(counts)

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
    if sum(map(own.spread, query)) <= MAX_HITS:
        return None
    scores: dict[int, float] = {}
    for term, times in query.items():
        held = own.of(term)
        newest = dict(islice(reversed(held.items()), MAX_POSTINGS)) if len(held) > MAX_POSTINGS else held
        add_bm25(scores, newest, own.lengths, times, weights, len(held))
    get = scores.get
    beside = {turn: score + get(turn - 1, 0.0) + get(turn + 1, 0.0) for turn, score in scores.items()}
    return set(best_first(beside)[:MAX_HITS])


def best_first(scores: Mapping[int, float]) -> list[int]:
    """Turns by score, of equals the older."""
    return sorted(sorted(scores), key=scores.__getitem__, reverse=True)


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
EVEN_TERMS = 40
"""A turn of ordinary talk; a longer one is worth less, by the root of its length: so much of the room it takes."""
MAX_PASSAGES_RANKED = 12
"""Of one message, so that one that says the same over and over leaves room for others."""


class IndexedTurn(NamedTuple):
    """A message as the index sees it, or a passage of one."""

    terms: Sequence[str]
    asks: bool = False
    """It holds a question: what follows may be the answer."""
    speaker: str | None = None
    """A name, in lower case; None where nothing says it."""
    sitting: str | None = None
    """The same for turns of one day; None: that of the turn before."""
    date_terms: Sequence[str] = ()
    passage: int = 0
    """Which of its message, from 1; 0: it is the message."""


class TurnIndex:
    """Turns of one session in order; ordinals ascend, and the passages of one."""

    def __init__(self) -> None:
        self.ordinals: list[int] = []
        self._passages = array("H")
        self._speaker_of: list[str | None] = []
        self._own = Postings()
        self._around = NeighbourBoost()
        self._sittings, self._dates = Postings(), Postings()
        self._sitting_of: list[int] = []
        self._sitting_starts: list[int] = []
        self._sitting: str | None = None
        self._speakers: set[str] = set()

    def __len__(self) -> int:
        return len(self.ordinals)

    def add(self, ordinal: int, turn: IndexedTurn) -> None:
        """Take the next turn."""
        number = len(self.ordinals)
        if not number or turn.sitting not in (None, self._sitting):
            self._begin_sitting(number, turn)
        self.ordinals.append(ordinal)
        self._sitting_of.append(len(self._sitting_starts) - 1)
        self._own.add(number, turn.terms)
        if len(self._sitting_starts) > 1:
            self._sittings.add(self._sitting_of[-1], turn.terms)
        self._around.add(self._sitting_starts[-1], turn.asks, self._own.lengths.of)
        self._passages.append(turn.passage)
        self._speaker_of.append(turn.speaker)
        if turn.speaker:
            self._speakers.add(turn.speaker)

    def _begin_sitting(self, number: int, turn: IndexedTurn) -> None:
        """Begin one with this turn; one alone is not indexed before there is a second: it would tell no turns apart."""
        self._sitting = turn.sitting
        self._sitting_starts.append(number)
        sitting = len(self._sitting_starts) - 1
        if sitting == 1:
            self._sittings = self._dates.as_one_text(self._own)
        if sitting:
            self._sittings.add(sitting, turn.date_terms)
        self._dates.add(sitting, turn.date_terms)

    def state(self) -> list[Any]:
        """All of it, for `resume`."""
        speakers = sorted(self._speakers)
        place = {speaker: number for number, speaker in enumerate(speakers)}
        spoken = array("i", (-1 if speaker is None else place[speaker] for speaker in self._speaker_of))
        postings = [held.state() for held in (self._own, self._sittings, self._dates)]
        sittings = [self._sitting, array("I", self._sitting_of), array("I", self._sitting_starts)]
        return [array("I", self.ordinals), self._passages, speakers, spoken, postings, sittings, self._around.state()]

    def resume(self, state: list[Any]) -> None:
        """Take up a state."""
        ordinals, self._passages, speakers, spoken, postings, sittings, around = state
        self.ordinals = ordinals.tolist()
        self._speakers = set(speakers)
        self._speaker_of = [None if place < 0 else speakers[place] for place in spoken]
        self._own, self._sittings, self._dates = map(Postings.resumed, postings)
        self._sitting, sitting_of, sitting_starts = sittings
        self._sitting_of, self._sitting_starts = sitting_of.tolist(), sitting_starts.tolist()
        self._around.resume(around)

    def rank(
        self,
        query_terms: Iterable[str],
        query_text: str,
        weights: Weights,
        *,
        pinned: Set[int] = frozenset(),
        skip: Set[int] = frozenset(),
        limit: int = MAX_RANKED,
    ) -> list[ScoredOriginal]:
        """The best `limit` turns with a score above 0, best first, without the ordinals to `skip`."""
        query, dated = self._telling(Counter(query_terms))
        if not (dated or weights.recency):
            return []
        wide, asked = self._around.scores(self._own, query, weights)
        several = len(self._sitting_starts) > 1  # one alone tells no turns apart
        hits = IndexHits(
            weights=weights,
            wide=_scaled(wide, weights.wide),
            asked=_scaled(asked, weights.asked),
            sittings=_scaled(self._sittings.scores(dated, weights), weights.sitting) if several else {},
            dates=_scaled(self._dates.scores(dated, weights), weights.date) if several else {},
            speaker=self._named(query_text),
            pinned=pinned,
            recency=weights.recency / max(1, len(self) - 1),
        )
        scores = self._scores(hits)
        best = self._shown(best_first(scores), scores, skip)
        return [
            ScoredOriginal(self.ordinals[turn], scores[turn], Signals(self.signals, hits, turn), self._passages[turn])
            for turn in islice(best, limit)
        ]

    def _shown(self, turns: Iterable[int], scores: Mapping[int, float], skip: Set[int]) -> Iterator[int]:
        """Those that score, without the ordinals to `skip`, and of each message its best passages alone."""
        taken: Counter[int] = Counter()
        for turn in turns:
            if scores[turn] <= 0:
                return
            ordinal = self.ordinals[turn]
            if ordinal in skip:
                continue
            if self._passages[turn]:
                taken[ordinal] += 1
                if taken[ordinal] > MAX_PASSAGES_RANKED:
                    continue
            yield turn

    # -- the query ----------------------------------------------------------------------------------------------

    def _telling(self, query: Counter[str]) -> tuple[dict[str, int], dict[str, int]]:
        """The terms that tell turns apart, rarest first; and those for sittings, words of dates included."""
        held = {term: self._own.spread(term) for term in query}
        known = [term for term, turns in held.items() if turns or self._dates.spread(term)]
        known = sorted(known, key=lambda term: (held[term], term))[:MAX_QUERY_TERMS]
        most = COMMON_FRACTION * len(self) if len(self) >= COMMON_FROM_TURNS else len(self)
        rare = [term for term in known if held[term] <= most]
        if not any(held[term] for term in rare):
            rare = known
        rarest = _within(rare, lambda term: held[term])
        dated = sorted(rare, key=self._sittings.spread)
        rarest_dated = _within(dated, self._sittings.spread)
        return {term: query[term] for term in rarest if held[term]}, {term: query[term] for term in rarest_dated}

    def _named(self, query_text: str) -> str | None:
        """The one speaker that the query names; None for none or several."""
        text = query_text.lower()
        named = [name for name in self._speakers if name in text and stands_in(name, text)]
        return named[0] if len(named) == 1 else None

    # -- the score ----------------------------------------------------------------------------------------------

    def _scores(self, hits: IndexHits) -> dict[int, float]:
        """Every candidate's score."""
        scores = dict.fromkeys(self._candidates(hits), 0.0)
        of_sitting = {sitting: score + hits.dates.get(sitting, 0.0) for sitting, score in hits.sittings.items()}
        wide, asked, day = hits.wide.get, hits.asked.get, of_sitting.get
        sitting_of, passages, recency, part = self._sitting_of, self._passages, hits.recency, hits.weights.passage
        lengths = self._own.lengths.of
        for turn in scores:
            score = wide(turn, 0.0) + asked(turn, 0.0) + day(sitting_of[turn], 0.0) + recency * turn
            worth = part if passages[turn] else 1.0
            if lengths[turn] > EVEN_TERMS:
                worth *= math.sqrt(EVEN_TERMS / lengths[turn])
            scores[turn] = score * worth
        if hits.speaker is not None:
            for turn in scores:
                if self._speaker_of[turn] == hits.speaker:
                    scores[turn] += hits.weights.speaker
        if hits.pinned:
            for turn in scores:
                if self.ordinals[turn] in hits.pinned:
                    scores[turn] += hits.weights.callout
        return scores

    def _candidates(self, hits: IndexHits) -> Iterator[int]:
        """Turns to rank; some more than once."""
        yield from hits.wide
        left = MIN_CANDIDATES - len(hits.wide)
        for sitting in sorted(hits.sittings, key=lambda key: (-hits.sittings[key], key)):
            if left <= 0:
                return
            stop = self._sitting_starts[sitting + 1] if sitting + 1 < len(self._sitting_starts) else len(self)
            turns = range(self._sitting_starts[sitting], stop)
            yield from turns
            left -= len(turns)
        yield from range(max(0, len(self) - max(0, left)), len(self))

    def signals(self, hits: IndexHits, turn: int) -> dict[str, float]:
        """What a turn's score is the sum of, by name, without those that are 0."""
        weights, sitting = hits.weights, self._sitting_of[turn]
        signals = {
            "wide": hits.wide.get(turn, 0.0),
            "asked": hits.asked.get(turn, 0.0),
            "sitting": hits.sittings.get(sitting, 0.0),
            "date": hits.dates.get(sitting, 0.0),
            "recency": hits.recency * turn,
        }
        said = sum(signals.values())
        if self._passages[turn]:
            signals["passage"] = (weights.passage - 1) * said
            said *= weights.passage
        if self._own.lengths.of[turn] > EVEN_TERMS:
            signals["length"] = (math.sqrt(EVEN_TERMS / self._own.lengths.of[turn]) - 1) * said
        signals |= {
            "speaker": weights.speaker if hits.speaker and self._speaker_of[turn] == hits.speaker else 0.0,
            "callout": weights.callout if self.ordinals[turn] in hits.pinned else 0.0,
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
