"""Measure recall on dated conversations with questions: is the evidence in the envelope, word for word?

For every question, `preview` builds the envelope as if it were the next user message; an evidence turn counts when its
whole text is in the rendered dynamic section. The budget under test, N tokens, is ``recall_fraction × dynamic_tokens``
at a fraction of 0.9, so references, dates and fences count; or, at the builder's defaults, it is all of
``dynamic_tokens``, of which the history takes its share. Questions are of categories 1-4
(multi-hop, temporal, open-domain, single-hop) with at least one valid evidence turn; the mean is over questions, of the
share of evidence shown.

Data: LoCoMo (Maharana et al. 2024, snap-research/LoCoMo). Its malformed evidence ids are split and normalized;
dangling ones are left out.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ctxsteward.envelope import (
    Budgets,
    Envelope,
    EnvelopeBuilder,
    ScoredOriginal,
    SelectionRequest,
    Selector,
    Session,
    open_store,
)
from ctxsteward.envelope.layout.rows import fenced_rows
from ctxsteward.envelope.recall.model_tools import search_context
from ctxsteward.envelope.transcripts.files import read_transcripts
from ctxsteward.envelope.transcripts.strict_json import decode, show
from ctxsteward.schemas.errors import InvalidTranscript

from .rankings import BestThatFits
from .replay import new_message, open_session

RECALL_FRACTION = 0.9
BUDGETS_TOKENS = (500, 900, 2000, 4000)
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
SEARCH_RESULTS = 10
_RANGE = re.compile(r"^[0-9]{4}-[0-9]{2}-[0-9]{2} §([0-9]+)-§([0-9]+):$", re.MULTILINE)
_EVIDENCE = re.compile(r"D:?([0-9]{1,6}):([0-9]{1,6})")


class Question(NamedTuple):
    """A question and the turns that answer it."""

    text: str
    category: int
    evidence: tuple[str, ...]
    """Ids of turns in the transcript."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRecall:
    """Figures of one question's envelope."""

    category: int
    shown: float
    """Share of its evidence, verbatim."""
    reachable: float
    """Share shown, cited by a reference in the envelope, or found by one search."""
    select_ms: float
    """CPU of ranking alone."""
    context_tokens: int


class RecallRow(NamedTuple):
    """One budget's figures; shares in percent."""

    budget_tokens: int
    questions: int
    mean: float
    all_shown: float
    """Questions with every evidence turn shown."""
    reachable: float
    by_category: dict[str, float]
    select_ms_p50: float
    select_ms_p99: float
    context_tokens_mean: float


def measure(
    data: str | Path,
    *,
    selector: Callable[[], Selector],
    budgets_tokens: Sequence[int] = BUDGETS_TOKENS,
    tokenizer: str = "o200k_base",
    defaults: bool = False,
    tell: Callable[[str], None] = lambda text: None,
) -> list[RecallRow]:
    """Measure a selector on a LoCoMo file at several budgets: of recall only, or with `defaults` of dynamic."""
    samples = read_questions(Path(data))
    rows = []
    for budget_tokens in budgets_tokens:
        answered: list[QuestionRecall] = []
        for index, (questions, transcript) in enumerate(
            zip(samples, read_transcripts(data, format="locomo"), strict=True)
        ):
            tell(f"{budget_tokens} tokens, conversation {index + 1} of {len(samples)}")
            timed = _TimedSelector(selector())
            builder = EnvelopeBuilder(
                tokenizer=tokenizer, budgets=recall_budgets(budget_tokens, defaults=defaults), selector=timed
            )
            with open_store("memory:") as store:
                session = open_session(store, transcript)
                entries = session.extend(new_message(row, n) for n, row in enumerate(transcript.open_entries()))
                texts = {entry.event.id: (entry.ref, entry.message.text) for entry in entries}
                builder.build(session)
                answered += _answers(builder, session, timed, questions, texts)
        if not answered:
            raise InvalidTranscript(str(data), "qa", "no question with evidence", "pass a LoCoMo file with questions")
        rows.append(_row(budget_tokens, answered))
    return rows


def recall_budgets(budget_tokens: int, *, defaults: bool) -> Budgets:
    """Return budgets with `budget_tokens` for recall only, or with `defaults` for the whole window."""
    if defaults:
        return Budgets(dynamic_tokens=budget_tokens)
    return Budgets(dynamic_tokens=round(budget_tokens / RECALL_FRACTION), recall_fraction=RECALL_FRACTION)


class _TimedSelector:
    """A selector that measures the CPU time of its last call."""

    def __init__(self, inner: Selector) -> None:
        self.inner = inner
        self.ms = 0.0

    def __call__(self, request: SelectionRequest) -> Sequence[ScoredOriginal]:
        started = time.process_time()
        ranked = self.inner(request)
        self.ms = (time.process_time() - started) * 1000
        return ranked


def _answers(
    builder: EnvelopeBuilder,
    session: Session,
    timed: _TimedSelector,
    questions: Sequence[Question],
    texts: dict[str | None, tuple[str, str]],
) -> Iterator[QuestionRecall]:
    for question in questions:
        evidence = [texts[id] for id in question.evidence if id in texts]
        if not evidence:
            continue
        ordinals = [int(ref[1:]) for ref, _ in evidence]
        envelope, text = asked(builder, session, timed.inner, question.text, ordinals)
        context = envelope.dynamic.context
        cited = {n for fragment in envelope.section("dynamic").fragments for n in fragment.refs}
        for first, last in _RANGE.findall(context.text if context else ""):
            cited.update(range(int(first), int(last) + 1))
        for hit in search_context(session, question.text, k=SEARCH_RESULTS, shown=set(context.refs if context else ())):
            day = session.state.day_of(hit.ordinal)
            cited.update(range(day.first, day.last + 1) if day else (hit.ordinal,))
        shown = [original in text for _, original in evidence]
        near = [seen or ordinal in cited for seen, ordinal in zip(shown, ordinals, strict=True)]
        yield QuestionRecall(
            category=question.category,
            shown=sum(shown) / len(evidence),
            reachable=sum(near) / len(evidence),
            select_ms=timed.ms,
            context_tokens=context.tokens if context else 0,
        )


def asked(
    builder: EnvelopeBuilder, session: Session, selector: Selector, question: str, evidence: Sequence[int]
) -> tuple[Envelope, str]:
    """Return the envelope of a question and the text of its dynamic section; an oracle gets the evidence first."""
    if isinstance(selector, BestThatFits):
        selector.told(evidence)
    envelope = builder.preview(session, question)
    context = envelope.dynamic.context
    rows = fenced_rows(envelope.nonce, context.text) if context else []
    # Rows undo the marks before the lines of a recalled message, so that its whole text can be compared.
    return envelope, "\n".join((envelope.section("dynamic").text, *rows))


def _row(budget_tokens: int, answered: Sequence[QuestionRecall]) -> RecallRow:
    times = sorted(answer.select_ms for answer in answered)
    return RecallRow(
        budget_tokens=budget_tokens,
        questions=len(answered),
        mean=_percent([answer.shown for answer in answered]),
        all_shown=_percent([float(answer.shown == 1) for answer in answered]),
        reachable=_percent([answer.reachable for answer in answered]),
        by_category={
            name: _percent([answer.shown for answer in answered if answer.category == category])
            for category, name in CATEGORIES.items()
        },
        select_ms_p50=round(times[len(times) // 2], 2) if times else 0.0,
        select_ms_p99=round(times[int(0.99 * (len(times) - 1))], 2) if times else 0.0,
        context_tokens_mean=round(sum(answer.context_tokens for answer in answered) / max(1, len(answered)), 1),
    )


def _percent(shares: Sequence[float]) -> float:
    return round(100 * sum(shares) / max(1, len(shares)), 1)


def read_questions(path: Path) -> list[list[Question]]:
    """Read the questions of each conversation of a file."""
    document = decode(path.read_bytes(), str(path), "")
    conversations = []
    for index, sample in enumerate(document if isinstance(document, list) else [document]):
        rows = sample.get("qa") if isinstance(sample, dict) else None
        if not isinstance(rows, list):
            raise InvalidTranscript(str(path), f"[{index}]", "no `qa` list", "expected a LoCoMo file with questions")
        read = [_question(row, str(path), f"[{index}].qa[{number}]") for number, row in enumerate(rows)]
        conversations.append([question for question in read if question.category in CATEGORIES])
    return conversations


def _question(row: object, source: str, where: str) -> Question:
    text, evidence = (row.get("question"), row.get("evidence")) if isinstance(row, dict) else (None, None)
    if not (isinstance(row, dict) and isinstance(text, str) and isinstance(evidence or [], list)):
        hint = "expected `question`, `category` and a list `evidence`"
        raise InvalidTranscript(source, where, f"found {show(row)}", hint)
    ids = [match for id in evidence or () for match in _EVIDENCE.finditer(str(id))]
    return Question(
        text=text,
        category=row["category"] if isinstance(row.get("category"), int) else 0,
        evidence=tuple(dict.fromkeys(f"D{int(match[1])}:{int(match[2])}" for match in ids)),
    )
