"""Facts and messages in one room: which share of recall's room may facts take?

A conversation is cut in the middle of its sittings: the later half is the session that is asked, the earlier half is
known by the facts alone that a night has made of it (`facts.admitted`), on the shelf of the session's project. For
every question `preview` builds the envelope; an evidence turn of the later half counts when its whole text is in the
dynamic section, one of the earlier half when a fact that is shown rests on it. `whole` is the case in which facts can
only repeat: the session holds all of the conversation, and the facts are those of it.

    shown   mean share of a question's evidence that is there; `past`, `now`: of questions with evidence in that half
    words   mean share of the gold answer's content words that stand in the dynamic section

Budgets are as in `recall`. Run: ``python -m ctxsteward.evals.experiments.fact_shares DATA``; a gate takes the lesser
of the two.

Data: LoCoMo (Maharana et al. 2024, snap-research/LoCoMo).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from ctxsteward.envelope import Budgets, EnvelopeBuilder, NewMessage, Profile, Session, open_store
from ctxsteward.envelope.tokens.tokenizer import Counter, load_tokenizer
from ctxsteward.envelope.transcripts import read_transcripts
from ctxsteward.store.facts import Audience, Fact, FactSource
from ctxsteward.store.facts.fact import MAX_FACTS

from ..recall import RECALL_FRACTION
from ..replay import new_message
from .fact_recall import FactQuestion, FactsByTalk, admitted, asked, content_words, printed

FRACTIONS = (0.0, 0.25, 0.5, 0.75, 1.0)
BUDGETS_TOKENS = (500, 900)
TALK = Audience("project", "talk")
PROFILE = Profile.from_text("You know these people.", name="agent")
Case = Literal["halves", "whole"]
_FACT = re.compile(r"^fact (\S+): ", re.MULTILINE)


class FactShareRow(NamedTuple):
    """The figures of one budget and one share."""

    case: Case
    budget_tokens: int
    facts_fraction: float
    questions: int
    shown: float
    past: float
    now: float
    words: float
    facts_mean: float


class _FactShareAnswer(NamedTuple):
    shown: float
    past: float | None
    now: float | None
    words: float
    facts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _SplitConversation:
    """One conversation, cut."""

    messages: tuple[NewMessage, ...]
    """Of the session that is asked."""
    texts: dict[str, str]
    """Of these, by id of the turn."""
    facts: tuple[Fact, ...]
    rests: dict[str, str]
    """By id of a fact, the turn it rests on."""
    questions: tuple[FactQuestion, ...]
    ids: frozenset[str]
    """Of all turns."""


def measure(
    data: str | Path,
    *,
    cases: Sequence[Case] = get_args(Case),
    fractions: Sequence[float] = FRACTIONS,
    budgets_tokens: Sequence[int] = BUDGETS_TOKENS,
    tokenizer: str = "o200k_base",
) -> list[FactShareRow]:
    """A row for each case, budget and share. Raises `InputError`."""
    rows = []
    counter = Counter(load_tokenizer(tokenizer))
    stores = admitted(Path(data), counter)
    for case in cases:
        talks = list(_talks(Path(data), stores, case))
        for tokens in budgets_tokens:
            for fraction in fractions:
                budgets = Budgets(
                    dynamic_tokens=round(tokens / RECALL_FRACTION), recall_fraction=RECALL_FRACTION,
                    facts_fraction=fraction,
                )  # fmt: skip
                builder = EnvelopeBuilder(tokenizer=tokenizer, budgets=budgets)
                answered = [one for talk in talks for one in _answers(builder, talk)]
                rows.append(_row(case, tokens, fraction, answered))
    return rows


def _talks(data: Path, stores: Sequence[FactsByTalk], case: Case) -> Iterator[_SplitConversation]:
    transcripts = read_transcripts(data, format="locomo")
    for transcript, store, questions in zip(transcripts, stores, asked(data), strict=True):
        entries = list(transcript.entries())
        days = list(dict.fromkeys(entry.ts[:10] if entry.ts else "" for entry in entries))
        later = set(days[len(days) // 2 :] if case == "halves" else days)
        kept = [(n, entry) for n, entry in enumerate(entries) if (entry.ts[:10] if entry.ts else "") in later]
        now = {entry.id for _, entry in kept if entry.id}
        messages = tuple(new_message(entry, n) for n, entry in kept)
        known = [one for one in store.facts if case == "whole" or store.ids.get(one.pointer) not in now][-MAX_FACTS:]
        yield _SplitConversation(
            messages=messages, texts={entry.id: entry.wire["content"] for _, entry in kept if entry.id},
            facts=tuple(
                Fact(
                    id=one.id, text=one.text, ts=one.ts, answers=one.answers,
                    sources=(FactSource(session="now" if case == "whole" else "past", ref=one.pointer),),
                )
                for one in known
            ),
            rests={one.id: store.ids[one.pointer] for one in known if one.pointer in store.ids},
            questions=tuple(one for one in questions if not set(store.ids.values()).isdisjoint(one.evidence)),
            ids=frozenset(store.ids.values()),
        )  # fmt: skip


def _answers(builder: EnvelopeBuilder, talk: _SplitConversation) -> Iterator[_FactShareAnswer]:
    with open_store("memory:") as store:
        store.facts("agent").commit(TALK, talk.facts, who="eval", why="eval", when="2026-11-22")
        session = store.session("now", profile=PROFILE, project=TALK.name)
        session.extend(talk.messages)
        builder.build(session)
        for question in talk.questions:
            yield _answer(builder, session, talk, question)


def _answer(
    builder: EnvelopeBuilder, session: Session, talk: _SplitConversation, question: FactQuestion
) -> _FactShareAnswer:
    text = builder.preview(session, question.text).section("dynamic").text
    ids = [id for id in _FACT.findall(text) if id in talk.rests]
    rests = {talk.rests[id] for id in ids}
    there = {id: id in rests or talk.texts.get(id, "\0") in text for id in talk.ids.intersection(question.evidence)}
    wanted = content_words(question.answer)
    return _FactShareAnswer(
        shown=_mean([float(one) for one in there.values()]),
        past=_of([there[id] for id in there if id not in talk.texts]),
        now=_of([there[id] for id in there if id in talk.texts]),
        words=len(wanted & content_words(text)) / len(wanted) if wanted else 1.0,
        facts=len(ids),
    )


def _of(there: Sequence[bool]) -> float | None:
    return _mean([float(one) for one in there]) if there else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


def _row(case: Case, tokens: int, fraction: float, answered: Sequence[_FactShareAnswer]) -> FactShareRow:
    means = [
        round(_mean(values), 3)
        for values in (
            [one.shown for one in answered],
            [one.past for one in answered if one.past is not None],
            [one.now for one in answered if one.now is not None],
            [one.words for one in answered],
            [float(one.facts) for one in answered],
        )
    ]
    return FactShareRow(case, tokens, fraction, len(answered), *means)


def lines(rows: Sequence[FactShareRow]) -> Iterator[str]:
    """The table, as Markdown."""
    yield "| case | tokens | share | questions | shown | past | now | words | facts |"
    yield f"|---|{'---:|' * 8}"
    for row in rows:
        figures = " | ".join(f"{share:.3f}" for share in (row.shown, row.past, row.now, row.words))
        yield (
            f"| {row.case} | {row.budget_tokens} | {row.facts_fraction:g} | {row.questions} | {figures} | "
            f"{row.facts_mean:.1f} |"
        )


def main(arguments: Sequence[str]) -> int:
    """Print the table of a file; 2 for bad usage or input."""
    return printed("fact_shares", arguments, lambda data: lines(measure(data)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
