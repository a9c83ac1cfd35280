"""Postings: which texts hold a term, how often, and BM25 over them.

Texts are numbered from 0 in the order of their adding; the last one may be lengthened. What was added is settled into
columns from time to time (`PostingColumns`): runs of numbers, a run a term, that take little memory and are written and
read as they are. The newest stay in a table that grows.

Source: S. Robertson, H. Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009).
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

MAX_WEIGHT = 100.0


class Weights(BaseModel):
    """Weights of the signals; 0 turns one off."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    wide: float = Field(default=0.5, ge=0, le=MAX_WEIGHT)
    """BM25 of a turn together with two on each side."""
    asked: float = Field(default=0.6, ge=0, le=MAX_WEIGHT)
    """BM25 of a turn together with the question it answers."""
    sitting: float = Field(default=0.5, ge=0, le=MAX_WEIGHT)
    """BM25 of the whole sitting (one day's talk) it belongs to, its date included."""
    date: float = Field(default=0.5, ge=0, le=MAX_WEIGHT)
    """BM25 of the sitting's date alone."""
    speaker: float = Field(default=0.6, ge=0, le=MAX_WEIGHT)
    """Added where the question names exactly the one who said it."""
    passage: float = Field(default=0.3, ge=0, le=1)
    """What the score of a passage of a long message is multiplied with: much of it explains what others said."""
    recency: float = Field(default=0.0, ge=0, le=MAX_WEIGHT)
    """Newest turn 1, oldest 0, by turns and not by the clock."""
    callout: float = Field(default=0.3, ge=0, le=MAX_WEIGHT)
    """Added to pinned messages."""
    k1: float = Field(default=1.2, ge=0, le=MAX_WEIGHT)
    """BM25: how soon repeats of a term stop to count."""
    b: float = Field(default=0.75, ge=0, le=1)
    """BM25: how much length counts against a text."""


class Lengths:
    """Terms of each text, and of all."""

    __slots__ = ("of", "total")

    def __init__(self, of: array[int] | None = None) -> None:
        self.of: array[int] = array("I") if of is None else of
        self.total: int = sum(self.of)

    def add(self, text: int, terms: int) -> None:
        """Lengthen a text; a new one has the next number."""
        if text == len(self.of):
            self.of.append(0)
        self.of[text] += terms
        self.total += terms


_TIMES = 1 << 12


class PostingColumns(NamedTuple):
    """Postings that change no more: of each term a run of texts, ascending, and how often each holds it."""

    rows: dict[str, int]
    """By term, the number of its run."""
    starts: array[int]
    """Of each run, and behind the last one its end."""
    texts: array[int]
    times: array[int]

    @classmethod
    def empty(cls) -> PostingColumns:
        """Of no text."""
        return cls({}, array("I", (0,)), array("I"), array("I"))

    def run(self, term: str) -> tuple[int, int]:
        """Where a term's run begins and ends."""
        row = self.rows.get(term)
        return (0, 0) if row is None else (self.starts[row], self.starts[row + 1])

    def with_later(self, later: Mapping[str, int | dict[int, int]]) -> PostingColumns:
        """These and later ones; a run's last text may go on there."""
        made = PostingColumns.empty()
        for term in dict.fromkeys((*self.rows, *later)):
            start, stop = self.run(term)
            made.texts.extend(self.texts[start:stop])
            made.times.extend(self.times[start:stop])
            for text, times in _counts(later.get(term)).items():
                if stop > start and made.texts[-1] == text:
                    made.times[-1] += times
                else:
                    made.texts.append(text)
                    made.times.append(times)
            made.rows[term] = len(made.rows)
            made.starts.append(len(made.texts))
        return made


def _counts(held: int | dict[int, int] | None) -> dict[int, int]:
    if held is None:
        return {}
    return {held // _TIMES: held % _TIMES} if isinstance(held, int) else held


LEAST_SETTLED = 2_000
"""Postings that are settled together at least."""


class Postings:
    """Which texts hold a term, how often: settled ones in columns, the newest in a table that grows.

    In columns a posting takes 8 bytes instead of 60 or more, and all are read back in one go.
    """

    __slots__ = ("_held", "_settled", "_unsettled", "lengths")

    def __init__(self) -> None:
        self._settled = PostingColumns.empty()
        self._held: dict[str, int | dict[int, int]] = {}
        """By term: text → times, in the order of texts. A term of one text, as most are, takes a number alone:
        text × `_TIMES` + times."""
        self._unsettled = 0
        self.lengths: Lengths = Lengths()

    def add(self, text: int, terms: Sequence[str]) -> None:
        """Add terms to a text, the last one or a new one with the next number."""
        self.lengths.add(text, len(terms))
        held = self._held
        for term in terms:
            found = held.get(term)
            if found is None:
                held[term] = text * _TIMES + 1
            elif not isinstance(found, int):
                found[text] = found.get(text, 0) + 1
            elif found // _TIMES == text and found % _TIMES < _TIMES - 1:
                held[term] = found + 1
            else:
                several = held[term] = {found // _TIMES: found % _TIMES}
                several[text] = several.get(text, 0) + 1
        self._unsettled += len(terms)
        if self._unsettled > LEAST_SETTLED and self._unsettled > len(self._settled.texts) // 4:
            self.settle()

    def settle(self) -> PostingColumns:
        """Put all of them into columns."""
        if self._held:
            self._settled = self._settled.with_later(self._held)
            self._held, self._unsettled = {}, 0
        return self._settled

    def as_one_text(self, other: Postings) -> Postings:
        """All texts of these and others as one."""
        times: Counter[str] = Counter()
        for postings in (self, other):
            for term in {**postings._settled.rows, **postings._held}:
                times[term] += sum(postings.of(term).values())
        made = Postings()
        made._held = {term: {0: count} for term, count in times.items()}
        made.lengths.add(0, self.lengths.total + other.lengths.total)
        made.settle()
        return made

    def state(self) -> list[Any]:
        """All of them, for `resumed`."""
        terms, *columns = self.settle()
        return ["\n".join(terms), *columns, self.lengths.of]

    @classmethod
    def resumed(cls, state: list[Any]) -> Postings:
        """As they were."""
        terms, *columns, lengths = state
        made = cls()
        rows = {term: row for row, term in enumerate(terms.split("\n"))} if terms else {}
        made._settled, made.lengths = PostingColumns(rows, *columns), Lengths(lengths)
        return made

    def of(self, term: str) -> dict[int, int]:
        """The texts that hold a term → times, in the order of texts."""
        start, stop = self._settled.run(term)
        newest = _counts(self._held.get(term))
        if start == stop:
            return newest
        found = dict(zip(self._settled.texts[start:stop], self._settled.times[start:stop], strict=True))
        for text, times in newest.items():
            found[text] = found.get(text, 0) + times
        return found

    def spread(self, term: str) -> int:
        """How many texts hold a term."""
        start, stop = self._settled.run(term)
        newest = self._held.get(term)
        if newest is None:
            return stop - start
        counts = _counts(newest)
        both = stop > start and self._settled.texts[stop - 1] in counts
        return stop - start + len(counts) - both

    def scores(self, query: Mapping[str, int], weights: Weights) -> dict[int, float]:
        """BM25 of the texts that hold a term of the query (term → times)."""
        scores: dict[int, float] = {}
        for term, times in query.items():
            if found := self.of(term):
                add_bm25(scores, found, self.lengths, times, weights, len(found))
        return scores


def add_bm25(
    scores: dict[int, float], counts: Mapping[int, int], lengths: Lengths, times: int, weights: Weights, held: float
) -> None:
    """Add what one term of a query (asked for `times` times) is worth to these texts; `held`: texts that hold it."""
    k1, b, texts = weights.k1, weights.b, len(lengths.of)
    gain = times * math.log(1 + (texts - held + 0.5) / (held + 0.5)) * (k1 + 1)
    flat, slope = k1 * (1 - b), k1 * b * texts / max(1, lengths.total)
    of, get = lengths.of, scores.get
    for text, count in counts.items():
        scores[text] = get(text, 0.0) + gain * count / (count + flat + slope * of[text])
