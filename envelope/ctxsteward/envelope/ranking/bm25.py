"""Postings and BM25: how much a text says about a query's terms, for how rare they are and how long the text is.

    idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5))          N texts, n of them hold t
    score  = Σ idf(t) · f · (k1 + 1) / (f + k1 · (1 - b + b · length / mean length))      f times in the text

Texts are numbered from 0 in the order of their adding; a text may be lengthened later.
Source: S. Robertson, H. Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009); the idf is Lucene's,
which is never negative.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from .weights import Weights

MAX_POSTINGS = 1_500
"""Touched by a query: its terms are taken rarest first while they hold no more than this, one term at least, and of
one that holds more alone the newest texts. Five conversations put end to end (2,760 turns, 760 questions) show as much
of the evidence with 1,500 as with 8,000; with 1,000 they lose 0.1-0.3 points."""


class Lengths:
    """Terms of each text, and of all."""

    __slots__ = ("of", "total")

    def __init__(self) -> None:
        self.of: list[int] = []
        self.total = 0

    def add(self, text: int, terms: int) -> None:
        """Lengthen a text; a new one has the next number."""
        if text == len(self.of):
            self.of.append(0)
        self.of[text] += terms
        self.total += terms


class Postings:
    """Which texts hold a term, how often."""

    __slots__ = ("counts", "lengths")

    def __init__(self) -> None:
        self.counts: dict[str, dict[int, int]] = defaultdict(dict)
        """By term: text → times, in the order of texts."""
        self.lengths = Lengths()

    def add(self, text: int, terms: Sequence[str]) -> None:
        """Add terms to a text; a new one has the next number."""
        self.lengths.add(text, len(terms))
        for term in terms:
            found = self.counts[term]
            found[text] = found.get(text, 0) + 1

    def scores(self, query: Mapping[str, int], weights: Weights) -> dict[int, float]:
        """BM25 of the texts that hold a term of the query (term → times)."""
        scores: dict[int, float] = {}
        for term, times in query.items():
            found = self.counts.get(term)
            if found:
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
