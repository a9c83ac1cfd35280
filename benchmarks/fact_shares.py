"""Facts and messages in one room: which share of recall's room may facts take?

A conversation is cut in the middle of its sittings: the later half is the session that is asked, the earlier half is
known by facts alone, on the shelf of the session's project. They are what a night makes of the file: read, redacted,
replayed, harvested into artifacts, absorbed by a ledger, judged by the gates. For every question `preview` builds the
envelope; an evidence turn of the later half counts when its whole text is in the dynamic section, one of the earlier
half when a fact that is shown rests on it. `whole` is the case in which facts can only repeat: the session holds all of
the conversation, and the facts are those of it.

    shown   mean share of a question's evidence that is there; `past`, `now`: of questions with evidence in that half
    words   mean share of the gold answer's content words that stand in the dynamic section
    store   tokens of all active records / tokens of the conversations

Budgets and questions are as in `evals.recall`. Run: ``python -m benchmarks.fact_shares DATA``; a gate
takes the lesser of `shown` and `words`: ids alone can be gamed by short facts, words alone by long ones.

Data: LoCoMo (Maharana et al. 2024, snap-research/LoCoMo).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from statistics import fmean
from typing import Literal, NamedTuple, get_args

from ctxsteward.envelope import Budgets, Counter, EnvelopeBuilder, Profile, Session, load_tokenizer, open_store
from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.envelope.transcripts.files import read_transcripts
from ctxsteward.envelope.transcripts.strict_json import decode
from ctxsteward.envelope.transcripts.transcript import Transcript
from ctxsteward.evals.documents import table
from ctxsteward.evals.recall import RECALL_FRACTION, Question, read_questions
from ctxsteward.evals.replay import new_message
from ctxsteward.language.words import INDEX_STOP
from ctxsteward.schemas.errors import InvalidTranscript
from ctxsteward.schemas.message import take_wire
from ctxsteward.steward import Ledger
from ctxsteward.steward.ingest.items import LoadedItem
from ctxsteward.steward.ingest.pipeline import load
from ctxsteward.steward.ingest.sources import FolderSource
from ctxsteward.steward.night.batch_harvest import HarvestWorker
from ctxsteward.store import Audience, Fact, FactSource, MasterKeys
from ctxsteward.store.facts.fact import MAX_FACTS

from .report import publish, script

FRACTIONS = (0.0, 0.25, 0.5, 0.75, 1.0)
BUDGETS_TOKENS = (500, 900)
TALK = Audience("project", "talk")
PROFILE = Profile.from_text("You know these people.", name="agent")
Case = Literal["halves", "whole"]
KEYS = MasterKeys(b"evals of facts".ljust(32, b"."))
"""The same in every run: records of equal worth are ordered by their ids."""
_TENANT = "evals"
_FACT = re.compile(r"^fact (\S+): ", re.MULTILINE)
_WORD = re.compile(r"[^\W_]+(?:['’][a-z]+)?")


class FactShareRow(NamedTuple):
    """The figures of one budget and one share."""

    case: Case
    budget_tokens: int
    facts_fraction: float
    questions: int
    store: float
    shown: float
    past: float
    now: float
    words: float
    facts_mean: float


class SplitConversation(NamedTuple):
    """One conversation, cut."""

    messages: tuple[NewMessage, ...]
    """Of the session that is asked."""
    texts: dict[str, str]
    """Of these, by id of the turn."""
    facts: tuple[Fact, ...]
    ids: dict[str, str]
    """Of all turns, by reference."""
    questions: list[tuple[Question, str]]
    """With the gold answer of each."""


def measure(
    data: str | Path,
    *,
    cases: Sequence[Case] = get_args(Case),
    fractions: Sequence[float] = FRACTIONS,
    budgets_tokens: Sequence[int] = BUDGETS_TOKENS,
    tokenizer: str = "o200k_base",
) -> list[FactShareRow]:
    """A row for each case, budget and share. Raises `InputError`."""
    path = Path(data)
    questions = list(_questions(path))
    if not any(questions):
        raise InvalidTranscript(str(data), "qa", "no question with evidence", "pass a LoCoMo file with questions")
    transcripts = list(read_transcripts(path, format="locomo"))
    facts = _active(path)
    store = _tokens_share(transcripts, [fact.text for fact in facts], Counter(load_tokenizer(tokenizer)))
    rows = []
    for case in cases:
        talks = [_cut(one, facts, asked, case) for one, asked in zip(transcripts, questions, strict=True)]
        for tokens in budgets_tokens:
            for fraction in fractions:
                budgets = Budgets(
                    dynamic_tokens=round(tokens / RECALL_FRACTION),
                    recall_fraction=RECALL_FRACTION,
                    facts_fraction=fraction,
                )
                builder = EnvelopeBuilder(tokenizer=tokenizer, budgets=budgets)
                answered = [one for talk in talks for one in _answers(builder, talk)]
                shares = [round(_mean(values), 3) for values in zip(*answered, strict=True)]
                rows.append(FactShareRow(case, tokens, fraction, len(answered), store, *shares))
    return rows


def _questions(path: Path) -> Iterator[list[tuple[Question, str]]]:
    document = decode(path.read_bytes(), str(path), "")
    samples = document if isinstance(document, list) else [document]
    for sample, questions in zip(samples, read_questions(path), strict=True):
        gold = {str(row.get("question")): str(row.get("answer", "")) for row in sample["qa"]}
        yield [(question, gold.get(question.text, "")) for question in questions]


def _active(path: Path) -> list[Fact]:
    """What a night over this file makes active, each under the question that its words answered."""
    with closing(FolderSource(path.parent)) as source:
        version = next((item.version for item in source.items() if item.name == path.name), "")
        loaded = load(source, path.name, version)
    if not isinstance(loaded, LoadedItem):
        raise InvalidTranscript(str(path), "", loaded.reason, "pass a LoCoMo file")
    with open_store("memory:", keys=KEYS) as store:
        artifacts = HarvestWorker(key=store.keys.address_key(_TENANT)).artifacts(loaded)
        with Ledger.open(":memory:", store, _TENANT, "agent") as ledger:
            ledger.absorb(*artifacts)
            records = [record for record in ledger.records() if record.status == "active"]
    answers = {
        (artifact.source, artifact.session, *observation.places[0][:3]): observation.answers
        for artifact in artifacts
        for observation in artifact.observations
        if observation.answers
    }
    firsts = [(record, record.evidence[0]) for record in records]
    return [
        Fact(
            id=record.id,
            text=record.text,
            ts=first.ts or record.support.last,
            answers=answers.get((first.source, first.session, first.ref, *first.span)),
            sources=(FactSource(session=first.session, ref=first.ref),),
        )
        for record, first in firsts
    ]


def _tokens_share(transcripts: Sequence[Transcript], facts: Sequence[str], counter: Counter) -> float:
    said = [take_wire(entry.wire)[1].text for transcript in transcripts for entry in transcript.entries()]
    stored, raw = (sum(counter.text(f"{text}\n") for text in texts) for texts in (facts, said))
    return round(stored / (raw or 1), 3)


def _cut(
    transcript: Transcript, facts: Sequence[Fact], questions: Sequence[tuple[Question, str]], case: Case
) -> SplitConversation:
    entries = list(enumerate(transcript.entries(), 1))
    ids = {f"§{ordinal}": entry.id for ordinal, entry in entries if entry.id}
    days = list(dict.fromkeys(entry.ts[:10] if entry.ts else "" for _, entry in entries))
    later = set(days[len(days) // 2 :] if case == "halves" else days)
    kept = [(ordinal, entry) for ordinal, entry in entries if (entry.ts[:10] if entry.ts else "") in later]
    now = {entry.id for _, entry in kept}
    own = [fact for fact in facts if fact.sources[0].session == transcript.session]
    known = [fact for fact in own if case == "whole" or ids.get(fact.sources[0].ref) not in now][-MAX_FACTS:]
    session = "now" if case == "whole" else "past"
    return SplitConversation(
        messages=tuple(new_message(entry, ordinal - 1) for ordinal, entry in kept),
        texts={entry.id: entry.wire["content"] for _, entry in kept if entry.id},
        facts=tuple(
            fact.model_copy(update={"sources": (FactSource(session=session, ref=fact.sources[0].ref),)})
            for fact in known
        ),
        ids=ids,
        questions=[asked for asked in questions if not set(ids.values()).isdisjoint(asked[0].evidence)],
    )


def _answers(builder: EnvelopeBuilder, talk: SplitConversation) -> Iterator[tuple[float | None, ...]]:
    rests = {fact.id: talk.ids[fact.sources[0].ref] for fact in talk.facts if fact.sources[0].ref in talk.ids}
    with open_store("memory:") as store:
        store.facts("agent").commit(TALK, talk.facts, who="eval", why="eval", when="2026-11-22")
        session = store.session("now", profile=PROFILE, project=TALK.name)
        session.extend(talk.messages)
        builder.build(session)
        for question, answer in talk.questions:
            yield _answer(builder, session, talk, rests, question, answer)


def _answer(
    builder: EnvelopeBuilder,
    session: Session,
    talk: SplitConversation,
    rests: dict[str, str],
    asked: Question,
    answer: str,
) -> tuple[float | None, ...]:
    """Of one question: evidence shown, of the past half, of the present one; words of the answer; facts shown."""
    text = builder.preview(session, asked.text).section("dynamic").text
    shown = [id for id in _FACT.findall(text) if id in rests]
    turns = {rests[id] for id in shown}
    there = {
        id: float(id in turns or talk.texts.get(id, "\0") in text)
        for id in set(talk.ids.values()).intersection(asked.evidence)
    }
    past, now = ([there[id] for id in there if (id in talk.texts) is half] for half in (False, True))
    wanted = content_words(answer)
    words = len(wanted & content_words(text)) / len(wanted) if wanted else 1.0
    return fmean(there.values()), fmean(past) if past else None, fmean(now) if now else None, words, float(len(shown))


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / max(1, len(known))


def content_words(text: str) -> frozenset[str]:
    """Words in lower case without function words, as they stand: no stems.

    >>> sorted(content_words("The week before 9 June 2023"))
    ['2023', '9', 'june', 'week']
    """
    words = (word.lower().replace("’", "'").removesuffix("'s") for word in _WORD.findall(text))
    return frozenset(word for word in words if word not in INDEX_STOP)


def lines(rows: Sequence[FactShareRow]) -> Iterator[str]:
    """The table, as Markdown."""
    head = ("case", "tokens", "share", "questions", "store", "shown", "past", "now", "words", "facts")
    yield from table(
        head,
        (
            [
                row.case,
                str(row.budget_tokens),
                f"{row.facts_fraction:g}",
                str(row.questions),
                *(f"{share:.3f}" for share in row[4:9]),
                f"{row.facts_mean:.1f}",
            ]
            for row in rows
        ),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table of a file."""
    parser = script(__doc__)
    parser.add_argument("data", type=Path, help="a LoCoMo file")
    options = parser.parse_args(argv)
    return publish(parser, options, {"facts": lambda: lines(measure(options.data))})


if __name__ == "__main__":
    raise SystemExit(main())
