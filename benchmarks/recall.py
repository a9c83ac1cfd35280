"""The tables of ``docs/selection.md``: recall by ranking, what each signal of ours is worth, and chats of long replies.

    python -m benchmarks.recall locomo.json [--write docs/selection.md]   # talk between people: LoCoMo
    python -m benchmarks.recall FOLDER [--write docs/selection.md]        # chats with an assistant: BEAM, both halves

Beside ours stand rankings that take no judgement, the most that fits, and variants of ours without one signal.
"""

from __future__ import annotations

import collections
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ctxsteward.envelope import (
    Counter,
    ScoredOriginal,
    SelectionRequest,
    Selector,
    load_tokenizer,
)
from ctxsteward.envelope.compaction.losses import text_of
from ctxsteward.envelope.recall.heuristic import Heuristic, Weights
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

from .report import progress, publish, script

SIGNALS = ("wide", "asked", "sitting", "date", "speaker")
LINE_TOKENS = 4
"""Reference and role of a recalled line."""


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
        self._read: list[tuple[collections.Counter[str], int]] = []
        self._spread: collections.Counter[str] = collections.Counter()

    def __call__(self, request: SelectionRequest) -> Sequence[ScoredOriginal]:
        for ordinal in range(len(self._read) + 1, request.last + 1):
            entry = request.entry(ordinal)
            said = [] if self._users_only and entry.message.role != "user" else terms(text_of(entry.message))
            self._spread.update(set(said))
            self._read.append((collections.Counter(said), entry.tokens(self._counter) + LINE_TOKENS))
        number, asked = len(self._read), collections.Counter(terms(request.query.text))
        worth = {
            term: times * math.log(1 + (number - self._spread[term] + 0.5) / (self._spread[term] + 0.5))
            for term, times in asked.items()
        }
        mean = sum(said.total() for said, _ in self._read) / max(1, number)

        def score(said: collections.Counter[str]) -> float:
            if not self._asked:
                return sum(1 / self._spread[term] for term in said)
            flat = 1.2 * (0.25 + 0.75 * said.total() / max(1.0, mean))
            return sum(value * said[term] * 2.2 / (said[term] + flat) for term, value in worth.items() if term in said)

        found = [
            ScoredOriginal(ordinal, score(said) / tokens**self._exponent)
            for ordinal, (said, tokens) in enumerate(self._read[: request.last], 1)
        ]
        return sorted((one for one in found if one.score > 0), key=lambda scored: (-scored.score, scored.ordinal))


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
