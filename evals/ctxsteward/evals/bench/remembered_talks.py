"""What a window remembers of a long talk: bullets, observation logs, recall, and both together.

A conversation is replayed message by message, and an envelope built for every second one; then each question is
previewed as the next user turn. Figures are means over questions, in percent:

    evidence  share of a question's evidence turns whose whole text is in the dynamic section
    cited     the same, or a bullet or an observation that is shown cites the turn
    answer    share of the gold answer's content words that stand there (`fact_shares.content_words`)
    whole     questions of which all of these stand there
    price     of a turn's prompt in plain tokens, a cached one at a tenth (`Prices`; prefixes of 1,024 tokens and more)
    log       tokens of the log at the end

The model's observations are recorded: LoCoMo has, for each session, lines that gpt-3.5-turbo wrote about both speakers,
each with the turns it rests on. `RecordedObservations` replies with those of the messages that it is asked about, as
they were written; *raw* takes them as they are, *held* as `ObservationLog` takes any model's. Nothing there is
reflected: of a full log the least valuable old lines leave. Questions are of categories 1-4. Of the file's
conversations the last two are held out.

``python -m ctxsteward.evals.bench.remembered_talks DATA`` prints the table of `docs/models.md`.

Data: LoCoMo (Maharana et al. 2024, snap-research/LoCoMo). Raises `InputError`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from ctxsteward.envelope import (
    Budgets,
    Counter,
    Envelope,
    EnvelopeBuilder,
    Session,
    decode,
    load_tokenizer,
    open_store,
    read_transcripts,
)
from ctxsteward.schemas import (
    Bullet,
    ChatReply,
    ChatRequest,
    InputError,
    InvalidTranscript,
    ModelUnavailable,
    SummarizerInput,
    Summary,
)
from ctxsteward.summarizers.models import ObservationLog

from ..documents import table
from ..fact_shares import content_words
from ..prompt_cost import Prices, PromptPiece, Sizer
from ..recall import Question, read_questions
from ..replay import new_message, open_session
from .benchmark_row import BenchmarkRow, row

NAME = "remembered"
BUDGETS = ((2_000, 500), (4_000, 1_000), (8_000, 4_000))
"""Tokens of dynamic, and what the log may take of them: a quarter, as by default, and half of a larger one."""
HELD_OUT = 2
MODEL = "gpt-4o"
HEAD = ("half", "tokens", "way", "evidence", "cited", "answer", "whole", "price", "log")
_TURN = re.compile(r"D(\d{1,6}):(\d{1,6})")


class RecordedLine(NamedTuple):
    """What a model once wrote."""

    text: str
    turns: tuple[str, ...]


class TalkedThrough(NamedTuple):
    """One conversation, its questions with their answers, and what a model wrote of it."""

    messages: tuple[Any, ...]
    questions: tuple[tuple[Question, str], ...]
    recorded: tuple[RecordedLine, ...]
    open: Callable[[Any], Session]


class MemoryFigures(NamedTuple):
    """One way, on one half; shares of 1."""

    evidence: float
    cited: float
    answer: float
    whole: float
    price: float
    log_tokens: float


class RecordedObservations:
    """A `ChatModel` that says what a model once wrote about the messages it is shown."""

    name = "recorded"

    def __init__(self, lines: Mapping[str, Sequence[str]]) -> None:
        self.lines = lines
        """By reference of the first message that each rests on."""

    def reply(self, request: ChatRequest) -> ChatReply:
        if request.purpose != "summary":
            raise ModelUnavailable(self.name, "only summaries were recorded")
        content = str(request.messages[0]["content"])
        rows = [json.loads(line) for line in content.splitlines() if line.startswith('{"ref"')]
        bullets = [
            {"text": text, "cites": [row["ref"]], "said_by": row["role"], "kind": "fact"}
            for row in rows
            for text in self.lines.get(row["ref"], ())
        ]
        return ChatReply(text=json.dumps({"bullets": bullets[:40]}, ensure_ascii=False))

    async def reply_async(self, request: ChatRequest) -> ChatReply:
        return self.reply(request)


class _RawObservations(ObservationLog):
    """The recorded lines as they were written, held against nothing."""

    def __init__(self, lines: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self._lines = lines

    def __call__(self, source: SummarizerInput, *, budget_tokens: int, prefix: Any = None) -> Summary:
        plain = super().__call__(source, budget_tokens=budget_tokens)
        fresh = tuple(
            Bullet(text=f"{(item.ts or '')[:10]}: {text}", citations=(item.ref,))
            for item in source.unobserved
            for text in self._lines.get(item.ref, ())
        )
        return plain.model_copy(update={"observed": fresh})


def read_talks(path: Path) -> list[TalkedThrough]:
    """The conversations of a LoCoMo file."""
    document = decode(path.read_bytes(), str(path), "")
    samples = document if isinstance(document, list) else [document]
    talks = []
    for sample, questions, transcript in zip(
        samples, read_questions(path), read_transcripts(path, format="locomo"), strict=True
    ):
        gold = {str(one.get("question")): str(one.get("answer", "")) for one in sample["qa"]}
        lines = [
            RecordedLine(str(text), tuple(f"D{int(a)}:{int(b)}" for a, b in _TURN.findall(str(turns))))
            for of_session in sample.get("observation", {}).values()
            for said in of_session.values()
            for text, turns in said
        ]
        messages = tuple(new_message(entry, number) for number, entry in enumerate(transcript.open_entries()))
        asked = tuple((one, gold.get(one.text, "")) for one in questions if one.evidence)
        talks.append(TalkedThrough(messages, asked, tuple(lines), partial(open_session, transcript=transcript)))
    return talks


def ways(talk: TalkedThrough, dynamic_tokens: int, log_tokens: int) -> dict[str, EnvelopeBuilder]:
    """A builder for each way of remembering."""
    refs = {message.id: f"§{number}" for number, message in enumerate(talk.messages, 1)}
    lines: dict[str, list[str]] = {}
    for one in talk.recorded:
        for first in one.turns[:1]:
            lines.setdefault(refs.get(first, ""), []).append(one.text)
    plain = Budgets(dynamic_tokens=dynamic_tokens)
    with_log = Budgets(dynamic_tokens=dynamic_tokens, observations_tokens=log_tokens)
    held = ObservationLog(RecordedObservations(lines))
    raw = _RawObservations(lines)
    return {
        "extractive bullets": EnvelopeBuilder(MODEL, budgets=plain, selector=None),
        "extractive log": EnvelopeBuilder(MODEL, budgets=with_log, summarizer=ObservationLog(), selector=None),
        "model's log, raw": EnvelopeBuilder(MODEL, budgets=with_log, summarizer=raw, selector=None),
        "model's log, held": EnvelopeBuilder(MODEL, budgets=with_log, summarizer=held, selector=None),
        "recall": EnvelopeBuilder(MODEL, budgets=plain),
        "recall, extractive log": EnvelopeBuilder(MODEL, budgets=with_log, summarizer=ObservationLog()),
        "recall, model's log, raw": EnvelopeBuilder(MODEL, budgets=with_log, summarizer=raw),
        "recall, model's log, held": EnvelopeBuilder(MODEL, budgets=with_log, summarizer=held),
    }  # fmt: skip


def measure_way(talk: TalkedThrough, builder: EnvelopeBuilder, sizer: Sizer) -> Iterator[tuple[float, ...]]:
    """The figures of each question of one talk, behind them what a turn costs and what the log takes."""
    prices = Prices()
    with open_store("memory:") as store:
        session = talk.open(store)
        before: Sequence[PromptPiece] = ()
        priced, texts = list[float](), dict[str | None, tuple[int, str]]()
        for number, message in enumerate(talk.messages):
            entry = session.append(message)
            texts[entry.event.id] = (entry.ordinal, entry.message.text)
            if number % 2 == 0:
                pieces = sizer.pieces(builder.build(session).render("openai-chat")["messages"])
                priced.append(_price(prices, sizer, before, pieces))
                before = pieces
        cost = fmean(priced)
        for question, answer in talk.questions:
            envelope = builder.preview(session, question.text)
            text = envelope.section("dynamic").text
            shown = _shown([texts[id] for id in question.evidence if id in texts], text, _cited(envelope))
            if shown is not None:
                yield (*shown, *_told(answer, text), cost, float(envelope.dynamic.observations_tokens))


def slide(talk: TalkedThrough, dynamic_tokens: int, sizer: Sizer) -> Iterator[tuple[float, ...]]:
    """The same of the newest messages that fit."""
    prices, before, priced = Prices(), tuple[PromptPiece, ...](), list[float]()
    pieces = sizer.pieces([{"role": one.message["role"], "content": one.message["content"]} for one in talk.messages])
    for number in range(0, len(pieces), 2):
        now = _newest(pieces[: number + 1], dynamic_tokens)
        priced.append(_price(prices, sizer, before, now))
        before = now
    cost, texts = fmean(priced), {one.id: (n, one.message["content"]) for n, one in enumerate(talk.messages, 1)}
    for question, answer in talk.questions:
        asked = sizer.piece({"role": "user", "content": question.text})
        text = "\n".join(piece.text for piece in _newest((*pieces, asked), dynamic_tokens))
        shown = _shown([texts[id] for id in question.evidence if id in texts], text, frozenset())
        if shown is not None:
            yield (*shown, *_told(answer, text), cost, 0.0)


def _newest(pieces: Sequence[PromptPiece], tokens: int) -> tuple[PromptPiece, ...]:
    first, room = len(pieces), tokens
    while first and pieces[first - 1].tokens <= room:
        first -= 1
        room -= pieces[first].tokens
    return tuple(pieces[first:])


def _price(prices: Prices, sizer: Sizer, before: Sequence[PromptPiece], now: Sequence[PromptPiece]) -> float:
    return prices.of(sum(piece.tokens for piece in now), sizer.shared_tokens(before, now))


def _cited(envelope: Envelope) -> frozenset[int]:
    return frozenset(ordinal for fragment in envelope.dynamic.derived for ordinal in fragment.refs)


def _shown(evidence: Sequence[tuple[int, str]], text: str, cited: frozenset[int]) -> tuple[float, float] | None:
    if not evidence:
        return None
    there = [said in text for _, said in evidence]
    near = [seen or ordinal in cited for seen, (ordinal, _) in zip(there, evidence, strict=True)]
    return fmean(there), fmean(near)


def _told(answer: str, text: str) -> tuple[float, float]:
    wanted = content_words(answer)
    share = len(wanted & content_words(text)) / len(wanted) if wanted else 1.0
    return share, float(share == 1)


def measure_remembered(
    talks: Sequence[TalkedThrough],
    dynamic_tokens: int,
    log_tokens: int,
    tell: Callable[[str], None] = lambda text: None,
) -> dict[str, MemoryFigures]:
    """By way; a mean over all questions of these talks."""
    sizer = Sizer(Counter(load_tokenizer("o200k_base")))
    found: dict[str, list[tuple[float, ...]]] = {}
    for number, talk in enumerate(talks, 1):
        found.setdefault("sliding window", []).extend(slide(talk, dynamic_tokens, sizer))
        for name, builder in ways(talk, dynamic_tokens, log_tokens).items():
            tell(f"{dynamic_tokens} tokens, talk {number}: {name}")
            found.setdefault(name, []).extend(measure_way(talk, builder, sizer))
    return {name: MemoryFigures(*map(fmean, zip(*answered, strict=True))) for name, answered in found.items()}


def halves(path: Path) -> Iterator[tuple[str, int, str, MemoryFigures]]:
    """Half, tokens of dynamic, way and figures, for both halves and each budget."""
    talks = read_talks(path)
    if len(talks) <= HELD_OUT:
        raise InvalidTranscript(str(path), "", f"{len(talks)} conversations", f"expected more than {HELD_OUT}")
    for half, chosen in (("developed on", talks[:-HELD_OUT]), ("held out", talks[-HELD_OUT:])):
        for tokens, log_tokens in BUDGETS:
            for name, one in measure_remembered(chosen, tokens, log_tokens).items():
                yield half, tokens, name, one


def cells_of(half: str, tokens: int, name: str, one: MemoryFigures) -> list[str]:
    """A row of the table."""
    shares = (f"{100 * share:.1f}" for share in one[:4])
    return [half, f"{tokens:,}", name, *shares, f"{one.price:,.0f}", f"{one.log_tokens:,.0f}"]


def run(data: Path | None) -> Iterator[BenchmarkRow]:
    """A row for each way, half and budget; without the data, one that says so."""
    path = None if data is None else data / "locomo" / "locomo_dev.json"
    if path is None or not path.is_file():
        yield BenchmarkRow(bench=NAME, what="skipped: --data has no locomo/locomo_dev.json", value="-")
        return
    for half, tokens, name, one in halves(path):
        what = f"{half}, {tokens:,} tokens, {name}: answers, %"
        yield row(NAME, what, round(100 * one.answer, 1))


def main(arguments: Sequence[str]) -> int:
    """Print the table of a file; 2 for bad usage or input."""
    if len(arguments) != 1:
        print("usage: python -m ctxsteward.evals.bench.remembered_talks DATA", file=sys.stderr)
        return 2
    try:
        print("\n".join(table(HEAD, [cells_of(*found) for found in halves(Path(arguments[0]))])))
    except (InputError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
