"""The tables of ``docs/selection.md``: recall by ranking, what each signal of ours is worth, and chats of long replies.

    python -m benchmarks.recall locomo.json [--write docs/selection.md]   # talk between people: LoCoMo
    python -m benchmarks.recall FOLDER [--write docs/selection.md]        # chats with an assistant: BEAM, both halves

Beside ours stand rankings that take no judgement, the most that fits, and variants of ours that change one thing: a
signal, the order, how the room is filled, a second question.
"""

from __future__ import annotations

import collections
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ctxsteward.envelope import Counter, ScoredOriginal, SelectionRequest, Selector, load_tokenizer
from ctxsteward.envelope.compaction.losses import text_of
from ctxsteward.envelope.recall.heuristic import Heuristic
from ctxsteward.envelope.recall.postings import Postings, Weights
from ctxsteward.evals.asked_chats import (
    BUDGETS_TOKENS as CHAT_BUDGETS_TOKENS,
    is_chat_folder,
    measure_chats,
    read_chats,
)
from ctxsteward.evals.documents import table
from ctxsteward.evals.rankings import RANKINGS as OURS
from ctxsteward.evals.recall import BUDGETS_TOKENS, CATEGORIES, measure
from ctxsteward.language.words import terms
from ctxsteward.schemas import Message, TextPart

from .report import progress, publish, script

SIGNALS = ("wide", "asked", "sitting", "date", "speaker")
LINE_TOKENS = 4
"""Reference and role of a recalled line."""
_UNIT_TOKENS = 8
"""The knapsack counts in these."""
_KNAPSACK_CANDIDATES = 150
_NAME = re.compile(r"(?<![.?!:]\s)(?<!^)\b[A-Z][a-z]{2,}\b")


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


class Ranking(NamedTuple):
    """A row of the tables."""

    make: Callable[[], Selector]
    defaults: bool = False
    """The tokens are of the whole window, of which recall has its share; else they are recall's alone."""


BOTH: Mapping[str, Ranking] = {
    "heuristic": Ranking(Heuristic),
    "heuristic, defaults": Ranking(Heuristic, defaults=True),
    "recency": Ranking(OURS["recency"]),
    "random": Ranking(lambda: at_random),
    "BM25": Ranking(PlainBm25),
    "BM25 / tokens": Ranking(lambda: PlainBm25(1.0)),
}
TALK: Mapping[str, Ranking] = {**BOTH, **{name: Ranking(OURS[name]) for name in ("oracle", "semantic", "hybrid")}}
CHATS: Mapping[str, Ranking] = {
    **BOTH,
    "BM25 / tokens, users only": Ranking(lambda: PlainBm25(1.0, users_only=True)),
    "rare words / tokens": Ranking(lambda: PlainBm25(1.0, asked=False)),
    "oracle": Ranking(OURS["oracle"]),
}
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

VARIANT_BUDGETS_TOKENS = (900, 2000)


def recall_table(data: Path, budgets_tokens: Sequence[int] = BUDGETS_TOKENS) -> Iterator[str]:
    """Recall by strategy and budget."""
    head = ["strategy", "tokens", "shown", "all", "reachable", *CATEGORIES.values(), "ranking p50, ms"]
    cells = []
    questions = 0
    for name, ranking in TALK.items():
        rows = measure(
            data,
            selector=ranking.make,
            budgets_tokens=budgets_tokens,
            defaults=ranking.defaults,
            tell=partial(progress, name),
        )
        for row in rows:
            questions = row.questions
            figures = (
                f"{figure:.1f}" for figure in (row.mean, row.all_shown, row.reachable, *row.by_category.values())
            )
            cells.append([name, f"{row.budget_tokens:,}", *figures, f"{row.select_ms_p50:.2f}"])
    yield from (f"{questions:,} questions; percent; CPU time.", "", *table(head, cells))


def variants_table(data: Path) -> Iterator[str]:
    """What each signal and each way of filling the room is worth."""
    head = ["ranking", *(f"{what}, {size:,}" for size in VARIANT_BUDGETS_TOKENS for what in ("shown", "multi-hop"))]
    cells = []
    for name, selector in VARIANTS.items():
        rows = measure(data, selector=selector, budgets_tokens=VARIANT_BUDGETS_TOKENS, tell=partial(progress, name))
        cells.append([name, *(f"{value:.1f}" for row in rows for value in (row.mean, row.by_category["multi-hop"]))])
    yield from ("", *table(head, cells))


def chats_table(folder: Path) -> Iterator[str]:
    """A row a ranking: what users said at each budget, then what the assistant said, development / held out.

    First of whole messages, then of the passages that answer.
    """
    halves = (read_chats(folder), read_chats(folder, "held-out"))
    head = [f"{role}, {size:,}" for role in ("user", "assistant") for size in CHAT_BUDGETS_TOKENS]
    shares: dict[str, list[list[str]]] = {"whole": [], "passages": []}
    counted = ""
    for name, ranking in CHATS.items():
        found = [
            measure_chats(chats, ranking.make, defaults=ranking.defaults, tell=partial(progress, name))
            for chats in halves
        ]
        pairs = list(zip(*found, strict=True))
        for what, fields in (("whole", ("user", "assistant")), ("passages", ("user_passages", "assistant_passages"))):
            figures = (" / ".join(f"{getattr(row, field):.1f}" for row in pair) for field in fields for pair in pairs)
            shares[what].append([name, *figures])
        counts = " / ".join(f"{rows[0].user_questions} and {rows[0].assistant_questions}" for rows in found)
        counted = f"{counts} questions about what users and the assistant said; percent; development / held out."
    yield from (counted, "", *table(["ranking", *head], shares["whole"]), "", "By the passage that answers:", "")
    yield from table(["ranking, by passage", *head], shares["passages"])


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables of a file or a folder, or write them into the page."""
    parser = script(__doc__)
    parser.add_argument("data", type=Path)
    options = parser.parse_args(argv)
    data: Path = options.data
    if is_chat_folder(data):
        return publish(parser, options, {"chats": lambda: chats_table(data)})
    return publish(parser, options, {"recall": lambda: recall_table(data), "variants": lambda: variants_table(data)})


if __name__ == "__main__":
    raise SystemExit(main())
