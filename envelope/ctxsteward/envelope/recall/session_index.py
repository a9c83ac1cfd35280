"""The index of one session (`SessionIndex`): context-indexed BM25 over its messages, for `heuristic`.

A *unit* is a message, or a passage of a long one. It is scored together with its neighbours, because an answer often
shares no word with its question: *wide*, with two units on each side, and *asked*, with the question that it follows. A
*sitting* is a run of units of one day; neighbours end with it. If there are several sittings, each is scored as a
whole, with the words of its date. (One alone would only lift units that share no word with the query above 0.)

BM25 measures how much a text says about a query's terms, given how rare they are and how long the text is:

    idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5))          N texts, n of them with t
    score  = Σ idf(t) · f · (k1 + 1) / (f + k1 · (1 - b + b · length / mean length))      f times in the text

A unit's score is the sum of its signals, each scaled to its weight at its best unit. A unit that brought new words into
the session is worth more. Ties go to the older unit, because the beginning of a sitting says more.

Passages are ranked among themselves: by their own words and by those of the message that they answer, divided by the
root of their size. Much of a long reply repeats the user's words, so a passage would outrank the user's own message.
Words that also occur in the messages shortly before find only the passage itself, and no other unit.

A turn needs memory (`SessionIndex.need`) if the session has used its words, everyday words aside: nearly all of them,
or some of them often. "Thanks, bye" and a new topic need none.

Postings have each unit's own terms as columns of numbers; surroundings are summed at the query. Adding a unit costs its
terms. A query costs its terms' postings, at most `MAX_POSTINGS` unless one term has more, and a few passes over the
units.

Source: S. Robertson, H. Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009); the idf is Lucene's,
which is never negative.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..compaction.losses import stands_in
from .selection import ScoredOriginal, inverse_frequency

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .heuristic import Weights

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

K1, B = 1.2, 0.75
"""BM25's constants: how soon repeats of a term stop to count, and how much length counts against a text."""
NEIGHBOURS = np.arange(-2, 3)
COMMON_FRACTION = 0.4
"""A term in more than this fraction of the units does not distinguish them."""
COMMON_FROM_UNITS = 50
MAX_QUERY_TERMS = 64
"""Most terms of a query; of a longer one the rarest are used."""
MAX_POSTINGS = 1_500
"""Most postings of a query's terms, which are taken rarest first (at least one term). Five conversations put end to end
(2,760 messages, 760 questions) show as much of the evidence with 1,500 as with 8,000; 1,000 lose 0.1-0.3 points."""
MAX_RANKED = 400
MAX_PASSAGES_RANKED = 12
"""Most passages of one message, so that a repetitive message leaves room for others."""
NEEDED, NEEDED_UNASKED, PERHAPS_UNASKED = 1.3, 2.7, 2.0
"""Least familiarity of a question, and of a turn without a question (for all of the room, for a part of it)."""
PERHAPS_MET = 0.7
"""Least summed rarity of a question's words if the session has used all of them."""
OF_ALL = 0.4
"""Familiarity added if the session has used all of a turn's words."""
OFTEN_UNITS = 30
"""Number of units in which a word is as familiar as possible; in a short session a fifteenth of the units."""
QUOTED_FRACTION, QUOTED_SURPLUS = 0.4, 2.0
"""Least share of the idf of a turn's words in one message that counts as quoted, and least surplus over chance."""
PERHAPS = 1 / 5
"""Part of the room for a turn that may need memory: all of its words were said, perhaps once, or one message quoted."""
NOVEL_FRACTION = 1 / 3
"""A unit is as novel as possible if this fraction of its words is new to the session."""
EVEN_TERMS = 40
"""Terms of a unit of ordinary talk. A longer unit takes more room, so its score falls with the root of its length."""


class IndexedUnit(NamedTuple):
    """A message, or a passage of one, in the form that is indexed."""

    terms: Sequence[str]
    size_tokens: int = 0
    """Estimated tokens of its row."""
    asks: bool = False
    """Whether it has a question, so that the next unit may be the answer."""
    speaker: str | None = None
    """Name in lower case, or None if unknown."""
    sitting: str | None = None
    """Value shared by the units of one day, or None for that of the unit before."""
    date_terms: Sequence[str] = ()
    passage: int = 0
    """Number of the passage in its message, from 1; 0 for a whole message."""
    repeated: Sequence[str] = ()
    """Terms of a passage that messages shortly before also have: they find the passage and no unit near it."""


_UNIT = np.dtype(
    [
        ("ordinal", np.uint32),
        ("passage", np.uint16),
        ("size", np.uint32),
        ("asks", np.bool_),
        ("length", np.uint32),
        ("repeated_length", np.uint32),
        ("wide_length", np.uint32),
        ("asked_length", np.uint32),
        ("novelty", np.float32),
        ("sitting", np.uint32),
        ("speaker", np.int32),
    ]
)
"""Lengths are in terms. Novelty is from 0 to 1. The speaker is a number, -1 if unknown."""


class SessionIndex:
    """Units of one session in ascending order of ordinals and passages."""

    def __init__(self) -> None:
        self._units = np.zeros(0, _UNIT)
        self._count = 0
        self._postings, self._repeated = Postings(), Postings()
        self._speakers: dict[str, int] = {}
        self._sitting: str | None = None
        self._sitting_starts, self._sitting_lengths, self._date_lengths = array("I"), array("I"), array("I")
        self._dated: dict[str, list[int]] = {}
        """By term, the sittings whose date has it."""

    def __len__(self) -> int:
        return self._count

    def add(self, ordinal: int, unit: IndexedUnit) -> None:
        """Add the next unit."""
        number, length = self._count, len(unit.terms)
        if not number or unit.sitting not in (None, self._sitting):
            self._sitting = unit.sitting
            for term in unit.date_terms:
                self._dated.setdefault(term, []).append(len(self._sitting_starts))
            self._sitting_starts.append(number)
            self._sitting_lengths.append(len(unit.date_terms))
            self._date_lengths.append(len(unit.date_terms))
        if number == len(self._units):
            self._units = np.concatenate((self._units, np.zeros(max(64, number), _UNIT)))
        self._count += 1
        self._sitting_lengths[-1] += length
        first = max(self._sitting_starts[-1], number + int(NEIGHBOURS[0]))
        before = self._units[first:number]
        before["wide_length"] += length
        answers = len(before) and before["asks"][-1]
        speaker = unit.speaker
        words = set(unit.terms)
        new = sum(not self._postings.spread(word) for word in words)
        self._units[number] = (
            ordinal,
            unit.passage,
            unit.size_tokens,
            unit.asks,
            length,
            len(unit.repeated),
            length + before["length"].sum(),
            length + (before["length"][-1] if answers else 0),
            min(1.0, new / (NOVEL_FRACTION * len(words))) if words else 0.0,
            len(self._sitting_starts) - 1,
            self._speakers.setdefault(speaker, len(self._speakers)) if speaker else -1,
        )
        self._postings.add(number, unit.terms)
        self._repeated.add(number, unit.repeated)

    def state(self) -> list[Any]:
        """Return all data, for `resume`."""
        units = array("B", self._units[: self._count].tobytes())
        sittings = [self._sitting, self._sitting_starts, self._sitting_lengths, self._date_lengths]
        dated = [[term, array("I", held)] for term, held in self._dated.items()]
        postings = [self._postings.state(), self._repeated.state()]
        return [units, postings, list(self._speakers), sittings, dated]

    def resume(self, state: list[Any]) -> None:
        """Restore a state."""
        units, postings, speakers, sittings, dated = state
        self._units = np.frombuffer(units, _UNIT).copy()
        self._count = len(self._units)
        self._postings, self._repeated = map(Postings.resumed, postings)
        self._speakers = {speaker: number for number, speaker in enumerate(speakers)}
        self._sitting, self._sitting_starts, self._sitting_lengths, self._date_lengths = sittings
        self._dated = {term: held.tolist() for term, held in dated}

    def need(self, rarity: Mapping[str, float], *, asks: bool) -> float:
        """Return the part of recall's room that a turn may use, from 0 to 1.

        `rarity` is by term of the turn, 0 for an everyday word, 1 for a rare one; `asks` says that it has a question.
        """
        often = math.log(1 + min(OFTEN_UNITS, 2 + self._count // 15))
        held = self._spread(rarity)
        familiar = sum(rarity[term] * min(1.0, math.log(1 + units) / often) for term, units in held.items())
        met = self.met(rarity)
        coverage = met / max(sum(rarity.values()), 1e-9)
        familiar += OF_ALL * coverage
        if familiar >= (NEEDED if asks else NEEDED_UNASKED):
            return 1.0
        if (met >= PERHAPS_MET and coverage > 0.95) if asks else familiar >= PERHAPS_UNASKED:
            return PERHAPS
        idf = np.array([inverse_frequency(units, self._count) for units in held.values()])
        rows, units, _ = self._postings.of(held)
        quoted = float(np.bincount(units, idf[rows]).max(initial=0.0))
        is_quote = quoted > QUOTED_FRACTION * idf.sum() and quoted > math.log(max(1, self._count)) + QUOTED_SURPLUS
        return PERHAPS if is_quote else 0.0

    def met(self, rarity: Mapping[str, float]) -> float:
        """Return the summed rarity of the turn's words that the session has used."""
        return sum(rarity[term] for term, units in self._spread(rarity).items() if units)

    def _spread(self, query: Iterable[str]) -> dict[str, int]:
        """Return how many units have each term; for a term of dates alone, how many days have it."""
        held = {term: self._postings.spread(term) for term in query}
        if len(self._sitting_starts) > 1:
            held |= {term: len(self._dated[term]) for term, units in held.items() if not units and term in self._dated}
        return held

    def rank(
        self,
        query_terms: Iterable[str],
        query_text: str,
        weights: Weights,
        *,
        rarity: Mapping[str, float] = MappingProxyType({}),
        pinned: Set[int] = frozenset(),
        skip: Set[int] = frozenset(),
        room_tokens: int | None = None,
        rooms: int = 1,
        passages_tokens: int = 0,
        limit: int = MAX_RANKED,
    ) -> list[ScoredOriginal]:
        """Return the best `limit` units with a score above 0, best first, without the ordinals to `skip`.

        `rarity` is by term, from 0 for an everyday word to 1 for a rare one (default). `room_tokens` limits the units
        to about those that fill `rooms` of this size, and at least one; `passages_tokens` of a room are for passages.
        """
        everyday = weights.everyday
        query = {
            term: times * (everyday + (1 - everyday) * rarity.get(term, 1.0))
            for term, times in self._telling(Counter(query_terms)).items()
        }
        if not self._count or not (query or weights.recency):
            return []
        units = self._units[: self._count]
        is_passage = units["passage"] > 0
        times = np.array(list(query.values()), np.float64)
        found = self._postings.of(query)
        signals = self._signals(query, times, found, weights)
        total = sum(signals.values(), np.zeros(self._count))
        signals["novel"] = weights.novel * units["novelty"] * total
        total = total + signals["novel"]
        signals["length"] = (np.sqrt(EVEN_TERMS / np.maximum(units["length"], EVEN_TERMS)) - 1) * total
        text = query_text.lower()
        named = [number for name, number in self._speakers.items() if name in text and stands_in(name, text)]
        if len(named) == 1:
            signals["speaker"] = np.where(units["speaker"] == named[0], weights.speaker, 0.0)
        if pinned:
            signals["callout"] = np.where(_among(units["ordinal"], pinned), weights.callout, 0.0)
        if is_passage.any():
            for signal in signals.values():
                signal[is_passage] = 0.0
            signals |= self._passage_signals(query, times, found, weights.passage)
        total = sum(signals.values(), np.zeros(self._count))
        ranked = np.where(_among(units["ordinal"], skip), 0.0, total) if skip else total
        order = _best(ranked, 2 * limit)  # because `_varied` may drop passages
        if is_passage.any():
            order = self._varied(order)
            order = _shared_out(order, is_passage, units["size"], room_tokens, passages_tokens)
        order = order[:limit]
        if room_tokens is not None:
            fitting = np.searchsorted(np.cumsum(units["size"][order]), rooms * room_tokens, side="right")
            order = order[: max(1, int(fitting))]
        columns = np.array([total, *signals.values()])[:, order]
        return [
            ScoredOriginal(
                ordinal, score, {name: value for name, value in zip(signals, row, strict=True) if value}, passage
            )
            for (ordinal, passage), (score, *row) in zip(
                units[["ordinal", "passage"]][order].tolist(), columns.T.tolist(), strict=True
            )
        ]

    def _varied(self, order: Integers) -> Integers:
        """Return the order with at most `MAX_PASSAGES_RANKED` passages of a message."""
        taken: Counter[int] = Counter()
        kept = []
        for unit, (ordinal, passage) in zip(
            order.tolist(), self._units[["ordinal", "passage"]][order].tolist(), strict=True
        ):
            taken[ordinal] += 1
            if not passage or taken[ordinal] <= MAX_PASSAGES_RANKED:
                kept.append(unit)
        return np.array(kept, np.int64)

    def _passage_signals(
        self, query: Mapping[str, float], times: Floats, found: tuple[Integers, Integers, Floats], weight: float
    ) -> dict[str, Floats]:
        """Return the signals of passages: `passage` by their own words, `answers` by those of the message before."""
        units = self._units[: self._count]
        rows, held, counts = (
            np.append(own, repeated) for own, repeated in zip(found, self._repeated.of(query), strict=True)
        )
        own = Texts(rows, held, counts, units["length"] + units["repeated_length"]).scores(times)
        best = np.zeros(int(units["ordinal"][-1]) + 1)
        np.maximum.at(best, units["ordinal"], own)
        per_size = np.where(units["passage"] > 0, 1 / np.sqrt(np.maximum(units["size"], 1)), 0.0)
        worth = np.array([own, best[np.maximum(units["ordinal"], 1) - 1]]) * per_size
        worth *= weight / (float(worth.sum(axis=0).max()) or 1.0)
        return {"passage": worth[0], "answers": worth[1]}

    def _telling(self, query: Counter[str]) -> dict[str, int]:
        """Return the terms of a query that distinguish units, with their counts, rarest first."""
        held = {term: self._postings.spread(term) for term in query}
        known = [term for term, units in held.items() if units or term in self._dated]
        known = sorted(known, key=lambda term: (held[term], term))[:MAX_QUERY_TERMS]
        most = COMMON_FRACTION * self._count if self._count >= COMMON_FROM_UNITS else self._count
        rare = [term for term in known if held[term] <= most]
        if not any(held[term] for term in rare):
            rare = known
        telling, postings = {}, 0
        for term in rare:
            if postings and postings + held[term] > MAX_POSTINGS:
                break
            postings += held[term]
            telling[term] = query[term]
        return telling

    def _signals(
        self, query: Mapping[str, float], times: Floats, found: tuple[Integers, Integers, Floats], weights: Weights
    ) -> dict[str, Floats]:
        """Return the signals of the query's terms by unit."""
        units = self._units[: self._count]
        rows, held, counts = found
        starts = np.append(self._sitting_starts, self._count)
        sitting = units["sitting"][held]
        stops = starts[sitting + 1]
        around = held[:, None] + NEIGHBOURS
        inside = (around >= starts[sitting][:, None]) & (around < stops[:, None])
        sizes = inside.sum(axis=1)
        wide = Texts(np.repeat(rows, sizes), around[inside], np.repeat(counts, sizes), units["wide_length"])
        asks = units["asks"][held] & (held + 1 < stops)
        asked = Texts(
            np.append(rows, rows[asks]),
            np.append(held, held[asks] + 1),
            np.append(counts, counts[asks]),
            units["asked_length"],
        )
        signals = {
            "wide": _scaled(wide.scores(times), weights.wide),
            "asked": _scaled(asked.scores(times), weights.asked),
        }
        if len(self._sitting_starts) > 1:  # one alone does not distinguish units
            dates = [(row, day) for row, term in enumerate(query) for day in self._dated.get(term, ())]
            date_rows, days = np.array(dates, np.int64).reshape(-1, 2).T
            ones = np.ones(len(days))
            talk = Texts(
                np.append(rows, date_rows),
                np.append(sitting, days),
                np.append(counts, ones),
                np.array(self._sitting_lengths),
            )
            date = Texts(date_rows, days, ones, np.array(self._date_lengths))
            of_unit = units["sitting"]
            signals["sitting"] = _scaled(talk.scores(times), weights.sitting)[of_unit]
            signals["date"] = _scaled(date.scores(times), weights.date)[of_unit]
        if weights.recency:
            signals["recency"] = weights.recency * np.arange(self._count) / max(1, self._count - 1)
        return signals


class Texts(NamedTuple):
    """Texts with terms of a query, for BM25: text `texts[i]` has term `rows[i]` `counts[i]` times."""

    rows: Integers
    texts: Integers
    counts: Floats
    lengths: NDArray[Any]
    """Lengths in terms of all texts, including those without any of the query's terms."""

    def scores(self, times: Floats) -> Floats:
        """Return the score of each text; `times` are the weights of the query's terms."""
        number = len(self.lengths)
        scores = np.zeros(number)
        if not len(self.texts):
            return scores
        is_hit = np.zeros(number, np.bool_)
        is_hit[self.texts] = True
        hits = np.flatnonzero(is_hit)
        place = np.zeros(number, np.int64)
        place[hits] = np.arange(len(hits))
        cells = self.rows * len(hits) + place[self.texts]
        held = np.bincount(cells, self.counts, len(times) * len(hits)).reshape(len(times), len(hits))
        idf = [inverse_frequency(count, number) for count in np.count_nonzero(held, axis=1).tolist()]
        damping: Floats = K1 * (1 - B) + self.lengths[hits] * (K1 * B * number / max(1, int(self.lengths.sum())))
        gain = times * (K1 + 1) * np.array(idf)
        scores[hits] = (gain[:, None] * held / (held + damping)).sum(axis=0)
        return scores


def _best(scores: Floats, limit: int) -> Integers:
    """Return the best units with a score above 0, best first; of equals the older first."""
    least = np.partition(scores, -limit)[-limit] if len(scores) > limit else 0.0
    found = np.flatnonzero((scores > 0) & (scores >= least))
    return found[np.argsort(-scores[found], kind="stable")][:limit]


def _shared_out(
    order: Integers, is_passage: NDArray[np.bool_], sizes: NDArray[Any], room_tokens: int | None, passages_tokens: int
) -> Integers:
    """Reorder: first units that fit without `passages_tokens`, then passages that fit in those, then the others."""
    if room_tokens is None:
        return order
    first = _fitting(sizes[order], room_tokens - passages_tokens)
    others = order[~first]
    second = is_passage[others]
    second[second] = _fitting(sizes[others[second]], passages_tokens)
    return np.concatenate((order[first], others[second], others[~second]))


def _fitting(sizes: NDArray[Any], room_tokens: int) -> NDArray[np.bool_]:
    """Return which of these fit, taken in order."""
    fits = np.zeros(len(sizes), np.bool_)
    for place, size in enumerate(sizes.tolist()):
        if size <= room_tokens:
            room_tokens -= size
            fits[place] = True
    return fits


def _scaled(scores: Floats, weight: float) -> Floats:
    """Scale the scores so that the best equals `weight`."""
    best = float(scores.max(initial=0.0))
    return scores * (weight / (best or 1.0))


def _among(ordinals: NDArray[Any], chosen: Set[int]) -> NDArray[np.bool_]:
    """Return which of these ascending ordinals are chosen."""
    is_chosen = np.zeros(int(ordinals[-1]) + 1, np.bool_)
    is_chosen[[ordinal for ordinal in chosen if ordinal < len(is_chosen)]] = True
    among: NDArray[np.bool_] = is_chosen[ordinals]
    return among


# -- postings -----------------------------------------------------------------------------------------------------

LEAST_SETTLED = 2_000
"""Least number of postings that are settled together."""


class Postings:
    """The units that have each term, and how often: settled postings in columns by term, the newest ones unsorted."""

    __slots__ = ("_newest", "_spread", "_starts", "_terms", "_times", "_units")

    def __init__(self) -> None:
        self._terms: dict[str, int] = {}
        """Number of each term."""
        self._spread = array("I")
        """By term, the number of units that have it."""
        self._starts = np.zeros(1, np.int32)
        """First index of each settled term's run, and the end of the last run."""
        self._units, self._times = np.zeros(0, np.int32), np.zeros(0, np.float32)
        self._newest = array("I"), array("I"), array("f")
        """Term, unit and count of each posting that is not settled."""

    def add(self, unit: int, terms: Iterable[str]) -> None:
        """Add the terms of the next unit."""
        numbers, units, all_times = self._newest
        for term, times in Counter(terms).items():
            number = self._terms.setdefault(term, len(self._terms))
            if number == len(self._spread):
                self._spread.append(0)
            self._spread[number] += 1
            numbers.append(number)
            units.append(unit)
            all_times.append(times)
        if len(numbers) > max(LEAST_SETTLED, len(self._units) // 16):
            self._settle()

    def _settle(self) -> None:
        numbers, units, times = self._newest
        settled = np.repeat(np.arange(len(self._starts) - 1), np.diff(self._starts))
        order = np.argsort(np.append(settled, numbers), kind="stable")
        self._units = np.append(self._units, np.array(units, np.int32))[order]
        self._times = np.append(self._times, np.array(times, np.float32))[order]
        self._starts = np.append(0, np.cumsum(self._spread)).astype(np.int32)
        self._newest = array("I"), array("I"), array("f")

    def spread(self, term: str) -> int:
        """Return how many units have a term."""
        number = self._terms.get(term)
        return 0 if number is None else self._spread[number]

    def of(self, query: Iterable[str]) -> tuple[Integers, Integers, Floats]:
        """Return the postings of some terms: the term's index in the query, the unit, the count."""
        place = np.full(len(self._terms), -1)
        rows, units, times = [], [], []
        for row, term in enumerate(query):
            number = self._terms.get(term, len(self._terms))
            if number < len(place):
                place[number] = row
            if number < len(self._starts) - 1:
                run = slice(*self._starts[number : number + 2].tolist())
                units.append(self._units[run])
                times.append(self._times[run])
                rows.append(np.full(len(units[-1]), row))
        newest, newest_units, newest_times = map(np.array, self._newest)
        found = place[newest]
        late = np.flatnonzero(found >= 0)
        return (
            np.concatenate((*rows, found[late])),
            np.concatenate((*units, newest_units[late])).astype(np.int64),
            np.concatenate((*times, newest_times[late])).astype(np.float64),
        )

    def state(self) -> list[Any]:
        """Return all postings, for `resumed`."""
        self._settle()
        units, times = (array("B", column.tobytes()) for column in (self._units, self._times))
        return ["\n".join(self._terms), self._spread, units, times]

    @classmethod
    def resumed(cls, state: list[Any]) -> Postings:
        """Return postings with a saved state."""
        terms, spread, units, times = state
        made = cls()
        made._terms = {term: number for number, term in enumerate(terms.split("\n"))} if terms else {}
        made._spread = spread
        made._starts = np.append(0, np.cumsum(spread)).astype(np.int32)
        made._units, made._times = np.frombuffer(units, np.int32), np.frombuffer(times, np.float32)
        return made
