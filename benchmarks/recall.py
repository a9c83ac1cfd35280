"""The tables of ``docs/selection.md``: recall by ranking, what each signal of ours is worth, and chats of long replies.

    python -m benchmarks.recall locomo.json [--write docs/selection.md]   # talk between people: LoCoMo
    python -m benchmarks.recall FOLDER [--write docs/selection.md]        # chats with an assistant: BEAM, both halves

Beside ours stand rankings that take no judgement, the most that fits, and variants of ours without one signal. Turns
that need nothing of the conversation (`turns_without_need.yaml`) show what silence is worth.
"""

from __future__ import annotations

import collections
import math
import random
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ruamel.yaml import YAML

from ctxsteward.envelope import (
    Budgets,
    Counter,
    EnvelopeBuilder,
    ScoredOriginal,
    SelectionRequest,
    Selector,
    Session,
    load_tokenizer,
    open_store,
)
from ctxsteward.envelope.compaction.losses import text_of
from ctxsteward.envelope.layout.rows import rows_of, unfenced
from ctxsteward.envelope.recall.heuristic import Heuristic, Weights
from ctxsteward.envelope.transcripts.files import read_transcripts
from ctxsteward.evals.asked_chats import (
    BUDGETS_TOKENS as CHAT_BUDGETS_TOKENS,
    is_chat_folder,
    measure_chats,
    read_chats,
)
from ctxsteward.evals.documents import table
from ctxsteward.evals.rankings import RANKINGS as OURS
from ctxsteward.evals.recall import BUDGETS_TOKENS, CATEGORIES, measure, read_questions
from ctxsteward.evals.replay import new_message, open_session
from ctxsteward.language.words import terms

from .report import progress, publish, script

SIGNALS = ("wide", "asked", "sitting", "date", "speaker")
LINE_TOKENS = 4
"""Tokens of a recalled line's reference and role."""


def at_random(request: SelectionRequest) -> Sequence[ScoredOriginal]:
    """Rank in an order that depends on the question's text alone, through a seed."""
    rng = random.Random(request.query.text)
    ordinals = rng.sample(range(1, request.last + 1), request.last)
    return [ScoredOriginal(ordinal, float(len(ordinals) - at)) for at, ordinal in enumerate(ordinals)]


class PlainBm25:
    """BM25 of each message alone, times tokens ** -`exponent`; `users_only` ignores the assistant's messages."""

    def __init__(self, exponent: float = 0.0, *, users_only: bool = False, asked: bool = True) -> None:
        """`asked` False ignores the question and scores every word: rare words per token."""
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
    """Whether the tokens are those of the whole window, with recall's default share; else they are recall's alone."""


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
    "never silent": partial(Heuristic, every_turn=True),
}

VARIANT_BUDGETS_TOKENS = (900, 2000)


def recall_table(data: Path, budgets_tokens: Sequence[int] = BUDGETS_TOKENS) -> Iterator[str]:
    """Yield recall by strategy and budget."""
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
    """Yield the effect of each signal and each way to fill the room."""
    head = ["ranking", *(f"{what}, {size:,}" for size in VARIANT_BUDGETS_TOKENS for what in ("shown", "multi-hop"))]
    cells = []
    for name, selector in VARIANTS.items():
        rows = measure(data, selector=selector, budgets_tokens=VARIANT_BUDGETS_TOKENS, tell=partial(progress, name))
        cells.append([name, *(f"{value:.1f}" for row in rows for value in (row.mean, row.by_category["multi-hop"]))])
    yield from ("", *table(head, cells))


def chats_table(folder: Path) -> Iterator[str]:
    """Yield a row per ranking: users' messages at each budget, then the assistant's, development / held out.

    The first table is for whole messages, the second for the passages that answer.
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


# -- turns without need ---------------------------------------------------------------------------------------------

NO_NEED = Path(__file__).with_name("turns_without_need.yaml")
SILENCE_TOKENS = 4_000
SILENT: Mapping[str, Callable[[], Selector]] = {
    "heuristic": Heuristic,
    "never silent": partial(Heuristic, every_turn=True),
    "BM25 / tokens": lambda: PlainBm25(1.0),
}


class AskedSession(NamedTuple):
    """A conversation, and its questions with the ordinals of their evidence."""

    session: Session
    questions: Sequence[tuple[str, frozenset[int]]]


def silence_table(asked: Sequence[AskedSession]) -> Iterator[str]:
    """Yield mean tokens recalled for the questions and for turns without need, development / held out, by ranking.

    *Evidence*: the fraction of the tokens recalled for questions that is in messages with evidence.
    """
    halves = YAML(typ="safe").load(NO_NEED.read_text("utf-8"))
    kinds = list(halves["development"])
    count = load_tokenizer("o200k_base").count
    cells = []
    for name, make in SILENT.items():
        tokens: dict[tuple[str, str], list[int]] = collections.defaultdict(list)
        found_tokens = 0
        for session, questions in asked:
            progress(name, session.id)
            budgets = Budgets(dynamic_tokens=SILENCE_TOKENS)
            builder = EnvelopeBuilder(tokenizer="o200k_base", budgets=budgets, selector=make())
            for question, evidence in questions:
                envelope = builder.preview(session, question)
                context = envelope.dynamic.context
                tokens["questions", ""].append(context.tokens if context else 0)
                rows = rows_of(unfenced(envelope.nonce, context.text).text) if context else []
                ordinals = [re.match(r"§(\d+)", row) for row in rows]
                found_tokens += sum(
                    count(row)
                    for row, ordinal in zip(rows, ordinals, strict=True)
                    if ordinal and int(ordinal[1]) in evidence
                )
            for half in ("development", "held_out"):
                for kind in kinds:
                    for turn in halves[half][kind]:
                        context = builder.preview(session, turn).dynamic.context
                        tokens[kind, half].append(context.tokens if context else 0)
        means = {key: f"{statistics.mean(values):,.0f}" for key, values in tokens.items()}
        evidence_percent = 100 * found_tokens / max(1, sum(tokens["questions", ""]))
        silences = (f"{means[kind, 'development']} / {means[kind, 'held_out']}" for kind in kinds)
        cells.append([name, means["questions", ""], f"{evidence_percent:.1f}", *silences])
    turns = " / ".join(str(sum(len(halves[half][kind]) for kind in kinds)) for half in ("development", "held_out"))
    counted = f"{sum(len(questions) for _, questions in asked)} questions, and {turns} turns without need in each of"
    yield f"{counted} {len(asked)} conversations; mean tokens recalled of {SILENCE_TOKENS:,} of dynamic."
    yield ""
    yield from table(["ranking", "questions", "evidence, %", *(kind.replace("_", " ") for kind in kinds)], cells)


def talk_silence(data: Path) -> list[str]:
    """Return the table for the conversations of a LoCoMo file."""
    with open_store("memory:") as store:
        asked = []
        for questions, transcript in zip(read_questions(data), read_transcripts(data, format="locomo"), strict=True):
            session = open_session(store, transcript)
            entries = session.extend(new_message(row, n) for n, row in enumerate(transcript.open_entries()))
            ordinals = {entry.event.id: entry.ordinal for entry in entries}
            evidence = [frozenset(ordinals[id] for id in row.evidence if id in ordinals) for row in questions]
            rows = [(row.text, found) for row, found in zip(questions, evidence, strict=True) if found]
            asked.append(AskedSession(session, rows))
        return list(silence_table(asked))


def chats_silence(folder: Path) -> list[str]:
    """Return the table for the development half of a folder's chats."""
    with open_store("memory:") as store:
        asked = []
        for chat in read_chats(folder):
            session = store.session(chat.name)
            ordinals = {entry.event.id: entry.ordinal for entry in session.extend(chat.messages)}
            rows = [(row.text, frozenset(ordinals[id] for id in row.evidence)) for row in chat.questions]
            asked.append(AskedSession(session, rows))
        return list(silence_table(asked))


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables of a file or a folder, or write them into the page."""
    parser = script(__doc__)
    parser.add_argument("data", type=Path)
    options = parser.parse_args(argv)
    data: Path = options.data
    if is_chat_folder(data):
        blocks = {"chats": lambda: chats_table(data), "silence-chats": lambda: chats_silence(data)}
        return publish(parser, options, blocks)
    blocks = {
        "recall": lambda: recall_table(data),
        "variants": lambda: variants_table(data),
        "silence-talk": lambda: talk_silence(data),
    }
    return publish(parser, options, blocks)


if __name__ == "__main__":
    raise SystemExit(main())
