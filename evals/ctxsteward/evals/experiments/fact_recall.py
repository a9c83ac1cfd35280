"""Facts for a request: does a small slice of what was harvested hold the evidence and the answer of a question?

The file is taken in as the steward takes it in at night: read, redacted, replayed, harvested into artifacts, absorbed
by a ledger, judged by the gates. What is active is the store: of each talk, the records whose words stand in it.
For every question a slice of `budget_tokens` is picked from them and rendered with its pointers and days, all of which
count. Three figures, in shares:

    ids     mean over questions of the share of evidence turns that a picked fact cites; `any`: at least one of them
    words   mean over questions of the share of the gold answer's content words that stand in the slice
    store   tokens of all active records / tokens of the conversations; `keyed`: with the questions they answer

Ids alone can be gamed by short facts, words alone by long ones: a gate takes both (`least`). Questions are those of
`evals.recall`: categories 1-4 with valid evidence. Run: ``python -m ctxsteward.evals.experiments.fact_recall DATA``.

Data: LoCoMo (Maharana et al. 2024, snap-research/LoCoMo).
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ctxsteward.envelope import open_store
from ctxsteward.envelope.tokens.tokenizer import Counter, load_tokenizer
from ctxsteward.envelope.transcripts import Transcript, read_transcripts
from ctxsteward.envelope.transcripts.strict_json import decode
from ctxsteward.language.terms import index_stop_words
from ctxsteward.schemas import InputError, InvalidTranscript
from ctxsteward.schemas.message import take_wire
from ctxsteward.schemas.recommendation import MetaRecommendation
from ctxsteward.steward.artifacts import Artifact
from ctxsteward.steward.ingest import FolderSource, LoadedItem, load
from ctxsteward.steward.ledger import Ledger
from ctxsteward.steward.night.batch_harvest import HarvestWorker

from ..recall import CATEGORIES, read_questions
from .fact_picker import FactPicker, RequestFact, index_keys, of_record, place_of

BUDGETS_TOKENS = (180,)
_TENANT = "evals"
_WORD = re.compile(r"[^\W_]+(?:['’][a-z]+)?")


class FactRecallRow(NamedTuple):
    """The figures of one budget; shares."""

    budget_tokens: int
    questions: int
    ids: float
    ids_any: float
    ids_all: float
    words: float
    store: float
    keyed: float
    ids_by_category: dict[str, float]
    words_by_category: dict[str, float]
    facts_mean: float
    """Facts in a slice."""
    tokens_mean: float
    tokens_max: int
    pick_ms_mean: float

    @property
    def least(self) -> float:
        """What a gate looks at."""
        return min(self.ids, self.words)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsByTalk:
    """What is active of one conversation."""

    facts: tuple[RequestFact, ...]
    ids: dict[str, str]
    """Id of a turn by its reference."""
    tokens: int
    keyed_tokens: int
    raw_tokens: int


class _FactAnswer(NamedTuple):
    category: str
    ids: float
    words: float
    facts: int
    tokens: int
    ms: float


def measure(
    data: str | Path, *, budgets_tokens: Sequence[int] = BUDGETS_TOKENS, tokenizer: str = "o200k_base"
) -> list[FactRecallRow]:
    """The figures on a LoCoMo file, a row a budget. Raises `InputError` for a file that is none."""
    counter = Counter(load_tokenizer(tokenizer))
    stores = admitted(Path(data), counter)
    questions_of = list(asked(Path(data)))
    rows = []
    for budget_tokens in budgets_tokens:
        answered = [
            answer
            for store, questions in zip(stores, questions_of, strict=True)
            for answer in _answers(store, questions, budget_tokens, counter)
        ]
        if not answered:
            raise InvalidTranscript(str(data), "qa", "no question with evidence", "pass a LoCoMo file with questions")
        rows.append(_row(budget_tokens, answered, stores))
    return rows


def admitted(data: Path, counter: Counter) -> list[FactsByTalk]:
    """What a night over this file makes active, conversation by conversation."""
    transcripts = list(read_transcripts(data, format="locomo"))
    with open_store("memory:") as store:
        reaper = HarvestWorker(key=store.keys.address_key(_TENANT))
        artifacts = reaper(_loaded(data)).artifacts
        with Ledger.open(":memory:", store, _TENANT, "agent") as ledger:
            ledger.absorb(*artifacts)
            active = [record for record in ledger.records() if record.status == "active"]
    return [_store(transcript, active, artifacts, counter) for transcript in transcripts]


def _loaded(data: Path) -> LoadedItem:
    """The file as its folder gives it."""
    with closing(FolderSource(data.parent)) as source:
        version = next((item.version for item in source.items() if item.name == data.name), "")
        loaded = load(source, data.name, version)
    if not isinstance(loaded, LoadedItem):
        raise InvalidTranscript(str(data), "", loaded.reason, "pass a LoCoMo file")
    return loaded


def _store(
    transcript: Transcript, active: Sequence[MetaRecommendation], artifacts: Sequence[Artifact], counter: Counter
) -> FactsByTalk:
    keys = index_keys(artifacts)
    own = [record for record in active if record.evidence[0].session == transcript.session]
    facts = tuple(of_record(record, answers=keys.get(place_of(record))) for record in own)
    ids = {f"§{ordinal}": entry.id for ordinal, entry in enumerate(transcript.entries(), 1) if entry.id}
    tokens = sum(counter.text(f"{fact.text}\n") for fact in facts)
    said = (take_wire(entry.wire)[1].text for entry in transcript.entries())
    return FactsByTalk(
        facts=facts,
        ids=ids,
        tokens=tokens,
        keyed_tokens=tokens + sum(counter.text(f"{fact.answers}\n") for fact in facts if fact.answers),
        raw_tokens=sum(counter.text(f"{text}\n") for text in said),
    )


def _answers(
    store: FactsByTalk, questions: Sequence[FactQuestion], budget_tokens: int, counter: Counter
) -> Iterator[_FactAnswer]:
    picker, known = FactPicker(store.facts, counter), set(store.ids.values())
    for question in questions:
        evidence = known.intersection(question.evidence)
        if not evidence:
            continue
        started = time.process_time()
        picked = picker.pick(question.text, budget_tokens)
        ms = (time.process_time() - started) * 1000
        cited = {store.ids[fact.pointer] for fact in picked.facts if fact.pointer in store.ids}
        wanted = content_words(question.answer)
        held = wanted & content_words(picked.text)
        yield _FactAnswer(
            category=CATEGORIES[question.category],
            ids=len(evidence & cited) / len(evidence),
            words=len(held) / len(wanted) if wanted else 1.0,
            facts=len(picked.facts),
            tokens=picked.tokens,
            ms=ms,
        )


def content_words(text: str) -> frozenset[str]:
    """Words in lower case without function words, as they stand: no stems.

    >>> sorted(content_words("The week before 9 June 2023"))
    ['2023', '9', 'june', 'week']
    """
    words = (word.lower().replace("’", "'").removesuffix("'s") for word in _WORD.findall(text))
    return frozenset(word for word in words if word not in index_stop_words())


class FactQuestion(NamedTuple):
    """A question with its gold answer."""

    text: str
    category: int
    evidence: tuple[str, ...]
    answer: str


def asked(path: Path) -> Iterator[list[FactQuestion]]:
    """Questions with their gold answers, conversation by conversation."""
    document: Any = decode(path.read_bytes(), str(path), "")
    samples = document if isinstance(document, list) else [document]
    for sample, questions in zip(samples, read_questions(path), strict=True):
        gold = {str(row.get("question")): str(row.get("answer", "")) for row in sample["qa"]}
        yield [FactQuestion(one.text, one.category, one.evidence, gold.get(one.text, "")) for one in questions]


def _row(budget_tokens: int, answered: Sequence[_FactAnswer], stores: Sequence[FactsByTalk]) -> FactRecallRow:
    raw = sum(store.raw_tokens for store in stores) or 1
    return FactRecallRow(
        budget_tokens=budget_tokens,
        questions=len(answered),
        ids=_mean([answer.ids for answer in answered]),
        ids_any=_mean([float(answer.ids > 0) for answer in answered]),
        ids_all=_mean([float(answer.ids == 1) for answer in answered]),
        words=_mean([answer.words for answer in answered]),
        store=round(sum(store.tokens for store in stores) / raw, 3),
        keyed=round(sum(store.keyed_tokens for store in stores) / raw, 3),
        ids_by_category=_by_category(answered, "ids"),
        words_by_category=_by_category(answered, "words"),
        facts_mean=_mean([float(answer.facts) for answer in answered]),
        tokens_mean=_mean([float(answer.tokens) for answer in answered]),
        tokens_max=max(answer.tokens for answer in answered),
        pick_ms_mean=_mean([answer.ms for answer in answered]),
    )


def _by_category(answered: Sequence[_FactAnswer], figure: str) -> dict[str, float]:
    return {
        name: _mean([getattr(answer, figure) for answer in answered if answer.category == name])
        for name in CATEGORIES.values()
    }


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / max(1, len(values)), 3)


def lines(rows: Sequence[FactRecallRow]) -> Iterator[str]:
    """The table, as Markdown."""
    heads = ["tokens", "questions", "ids", "any", "all", "words", "store", "keyed", "facts", "ms"]
    yield f"| {' | '.join([*heads, *(f'{name} ids / words' for name in CATEGORIES.values())])} |"
    yield f"|{'---:|' * (len(heads) + len(CATEGORIES))}"
    for row in rows:
        cells = [f"{row.budget_tokens}", f"{row.questions}"]
        cells += [f"{share:.3f}" for share in (row.ids, row.ids_any, row.ids_all, row.words, row.store, row.keyed)]
        cells += [f"{row.facts_mean:.1f}", f"{row.pick_ms_mean:.1f}"]
        cells += [
            f"{row.ids_by_category[name]:.3f} / {row.words_by_category[name]:.3f}" for name in CATEGORIES.values()
        ]
        yield f"| {' | '.join(cells)} |"


def printed(module: str, arguments: Sequence[str], table: Callable[[str], Iterable[str]]) -> int:
    """Print the table of the file that the arguments name; 2 for bad usage or input."""
    if len(arguments) != 1:
        print(f"usage: python -m ctxsteward.evals.{module} DATA", file=sys.stderr)
        return 2
    try:
        rows = list(table(arguments[0]))
    except (InputError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(rows))
    return 0


def main(arguments: Sequence[str]) -> int:
    """Print the table of a file; 2 for bad usage or input."""
    return printed("facts", arguments, lambda data: lines(measure(data)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
