"""Selectors for the recall eval, to measure the default ranking against: whole rankings, and variants of the default.

Each is a `Selector`. `RANKINGS` are whole rankings by name, with their room; `VARIANTS` change one thing of the default
ranking: a signal, the order, how the room is filled, a second question.
"""

from __future__ import annotations

import collections
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Literal, NamedTuple

from ctxsteward.envelope.compaction import text_of
from ctxsteward.envelope.recall import (
    Heuristic,
    Hybrid,
    Multilingual,
    Postings,
    ScoredOriginal,
    SelectionRequest,
    Selector,
    Semantic,
    Weights,
)
from ctxsteward.envelope.tokens import Counter, load_tokenizer
from ctxsteward.language import terms
from ctxsteward.schemas import InputError, Message, TextPart

SIGNALS = ("wide", "asked", "sitting", "date", "speaker")
LINE_TOKENS = 4
"""Reference and role of a recalled line."""
_UNIT_TOKENS = 8
"""The knapsack counts in these."""
_KNAPSACK_CANDIDATES = 150
_NAME = re.compile(r"(?<![.?!:]\s)(?<!^)\b[A-Z][a-z]{2,}\b")


def recency(request: SelectionRequest) -> Sequence[ScoredOriginal]:
    """The newest first: a sliding window."""
    return [ScoredOriginal(ordinal, float(ordinal)) for ordinal in range(request.last, 0, -1)]


def at_random(request: SelectionRequest) -> Sequence[ScoredOriginal]:
    """In an order that the question decides and nothing else."""
    rng = random.Random(request.query.text)
    ordinals = rng.sample(range(1, request.last + 1), request.last)
    return [ScoredOriginal(ordinal, float(len(ordinals) - at)) for at, ordinal in enumerate(ordinals)]


class PlainBm25:
    """BM25 of each message alone, by tokens ** -`exponent`; `users_only`: what the assistant said is not looked at."""

    def __init__(self, exponent: float = 0.0, *, users_only: bool = False, asked: bool = True) -> None:
        """`asked` False: of every word, whatever the question: rare words per token."""
        self._exponent, self._users_only, self._asked = exponent, users_only, asked
        self._counter = Counter(load_tokenizer("o200k_base"))
        self._read: list[tuple[int, list[str], int]] = []
        self._postings = Postings()

    def __call__(self, request: SelectionRequest) -> Sequence[ScoredOriginal]:
        for ordinal in range(len(self._read) + 1, request.last + 1):
            entry = request.entry(ordinal)
            said = [] if self._users_only and entry.message.role != "user" else terms(text_of(entry.message))
            self._postings.add(ordinal - 1, said)
            self._read.append((ordinal, said, entry.tokens(self._counter) + LINE_TOKENS))
        if self._asked:
            scores = self._postings.scores(collections.Counter(terms(request.query.text)), Weights())
        else:
            spread = self._postings.spread
            scores = {ordinal - 1: sum(1 / spread(term) for term in set(said)) for ordinal, said, _ in self._read}
        found = [
            ScoredOriginal(at + 1, score / self._read[at][2] ** self._exponent)
            for at, score in scores.items()
            if score > 0 and at < request.last
        ]
        return sorted(found, key=lambda scored: (-scored.score, scored.ordinal))


class BestThatFits:
    """An oracle: it is told the evidence of each question, and takes as many of its messages as fit, shortest first."""

    def __init__(self) -> None:
        self._evidence: Sequence[int] = ()
        self._counter = Counter(load_tokenizer("o200k_base"))

    def told(self, evidence: Sequence[int]) -> None:
        """The ordinals that answer the next question."""
        self._evidence = evidence

    def __call__(self, request: SelectionRequest) -> Sequence[ScoredOriginal]:
        known = [ordinal for ordinal in self._evidence if ordinal <= request.last]
        known.sort(key=lambda ordinal: request.entry(ordinal).tokens(self._counter))
        return [ScoredOriginal(ordinal, float(-at)) for at, ordinal in enumerate(known)]


class PerToken:
    """The default ranking by score / tokens ** exponent."""

    def __init__(self, exponent: float) -> None:
        self._inner, self._exponent = Heuristic(), exponent
        self._counter = Counter(load_tokenizer("o200k_base"))

    def __call__(self, request: SelectionRequest) -> Sequence[ScoredOriginal]:
        weighed = [
            scored._replace(score=scored.score / self._tokens(request, scored) ** self._exponent)
            for scored in self._inner(request)
        ]
        return sorted(weighed, key=lambda scored: -scored.score)

    def _tokens(self, request: SelectionRequest, scored: ScoredOriginal) -> int:
        return request.entry(scored.ordinal).tokens(self._counter) + LINE_TOKENS


class Knapsack(PerToken):
    """An exact 0/1 knapsack over gain and tokens; gain = (score / best score) ** power."""

    def __init__(self, power: float) -> None:
        super().__init__(0.0)
        self._power = power

    def __call__(self, request: SelectionRequest) -> Sequence[ScoredOriginal]:
        ranked = list(self._inner(request))
        tried = ranked[:_KNAPSACK_CANDIDATES]
        top = tried[0].score if tried else 1.0
        gains = [max(0.0, scored.score / top) ** self._power for scored in tried]
        sizes = [-(-self._tokens(request, scored) // _UNIT_TOKENS) for scored in tried]
        taken = _packed(gains, sizes, request.budget_tokens // _UNIT_TOKENS)
        return [tried[i] for i in taken] + [scored for i, scored in enumerate(ranked) if i not in taken]


def _packed(gains: Sequence[float], sizes: Sequence[int], room: int) -> list[int]:
    """Indexes of the best set that fits, in order."""
    best = [0.0] * (room + 1)
    taken: list[bytearray] = []
    for gain, size in zip(gains, sizes, strict=True):
        took = bytearray(room + 1)
        for used in range(room, size - 1, -1):
            if best[used - size] + gain > best[used]:
                best[used] = best[used - size] + gain
                took[used] = 1
        taken.append(took)
    chosen: list[int] = []
    for index in range(len(taken) - 1, -1, -1):
        if taken[index][room]:
            chosen.append(index)
            room -= sizes[index]
    return chosen[::-1]


class WithNeighbours:
    """After each of the default ranking's, the messages before and after it."""

    def __init__(self) -> None:
        self._inner = Heuristic()

    def __call__(self, request: SelectionRequest) -> Sequence[ScoredOriginal]:
        ordered: dict[int, ScoredOriginal] = {}
        for scored in self._inner(request):
            for ordinal in (scored.ordinal, scored.ordinal - 1, scored.ordinal + 1):
                ordered.setdefault(ordinal, scored._replace(ordinal=ordinal))
        return list(ordered.values())


class SecondRound:
    """The default ranking, asked again with the names that its first hits mention; their sum."""

    def __init__(self, hits: int, share: float) -> None:
        self._inner, self._hits, self._share = Heuristic(), hits, share

    def __call__(self, request: SelectionRequest) -> Sequence[ScoredOriginal]:
        first = list(self._inner(request))
        asked = request.query.text
        names = {
            name: None
            for scored in first[: self._hits]
            for name in _NAME.findall(request.message(scored.ordinal).text)
            if name not in asked
        }
        if not names:
            return first
        query = Message(role="user", dialect="openai", parts=(TextPart(text=" ".join(names)),), wire={})
        again = {s.ordinal: s.score for s in self._inner(replace(request, query=query))}
        summed = [s._replace(score=s.score + self._share * again.get(s.ordinal, 0.0)) for s in first]
        return sorted(summed, key=lambda scored: -scored.score)


@cache
def _embedder() -> Multilingual:
    """One for all conversations, loaded; raises `InputError` where the extra is not installed."""
    embedder = Multilingual()
    try:
        embedder.load()
    except ImportError as error:
        raise InputError(
            f"semantic and hybrid need the extra `dense`: pip install 'ctxsteward[dense]' ({error})"
        ) from None
    return embedder


Data = Literal["talk", "chats"]
"""Talk between people (`recall`), or chats of long assistant replies (`asked_chats`)."""


class RankingRow(NamedTuple):
    """A row of the tables: ours, what takes no judgement, and the most that fits."""

    make: Callable[[], Selector]
    defaults: bool = False
    """The tokens are of the whole window, of which recall has its share; else they are recall's alone."""
    on: Sequence[Data] = ("talk", "chats")


RANKINGS: Mapping[str, RankingRow] = {
    "heuristic": RankingRow(Heuristic),
    "heuristic, defaults": RankingRow(Heuristic, defaults=True),
    "recency": RankingRow(lambda: recency),
    "random": RankingRow(lambda: at_random),
    "BM25": RankingRow(PlainBm25),
    "BM25 / tokens": RankingRow(lambda: PlainBm25(1.0)),
    "BM25 / tokens, users only": RankingRow(lambda: PlainBm25(1.0, users_only=True), on=("chats",)),
    "rare words / tokens": RankingRow(lambda: PlainBm25(1.0, asked=False), on=("chats",)),
    "oracle": RankingRow(BestThatFits),
    "semantic": RankingRow(lambda: Semantic(_embedder(), fallback=Heuristic()), on=("talk",)),
    "hybrid": RankingRow(lambda: Hybrid(Heuristic(), Semantic(_embedder(), fallback=Heuristic())), on=("talk",)),
}


def rankings_on(data: Data) -> dict[str, RankingRow]:
    """Those that are measured on such data."""
    return {name: ranking for name, ranking in RANKINGS.items() if data in ranking.on}


VARIANTS: Mapping[str, Callable[[], Selector]] = {
    "as shipped": Heuristic,
    **{f"without {name}": partial(Heuristic, Weights.model_validate({name: 0.0})) for name in SIGNALS},
    "by score / tokens^0.1": lambda: PerToken(0.1),
    "by score / tokens^0.5": lambda: PerToken(0.5),
    "by score / tokens": lambda: PerToken(1.0),
    "exact knapsack, gain = score^2": lambda: Knapsack(2.0),
    "exact knapsack, gain = score^4": lambda: Knapsack(4.0),
    "exact knapsack, gain = score^8": lambda: Knapsack(8.0),
    "neighbours of each hit too": WithNeighbours,
    "second round with names of 3 hits": lambda: SecondRound(3, 0.3),
}
