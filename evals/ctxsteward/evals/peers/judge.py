"""The judge: what every sender is measured on, and what it did with it.

Agent runs: cost (`prompt_cost`), calls over budget, calls a provider would refuse, whether the task survives. Planted
canaries at a fifth of the tokens: shown in the last window; reachable, shown or behind a reference in that window; the
same when an hour has passed. Dated conversations with questions: mean share of evidence turns shown word for word
(`recall`). Long small talk: CPU of a call, median. Where a sender fails, it is `unscored`, with its words.

Messages are in one canonical form (role, text, calls, call id), so that every sender starts from the same bytes. `FULL`
is what the table is measured on; tests take less.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ctxsteward.envelope import EnvelopeBuilder
from ctxsteward.envelope.transcripts import TranscriptEntry, read_transcripts
from ctxsteward.schemas import ContextError, Message, Wire

from ..agent_runs import read_runs
from ..bench.conversations import conversation
from ..canaries import CanaryScenario, scenario, score, stories
from ..prompt_cost import Bill, Prices, Prompt, PromptJudge, PromptPiece, Sizer
from ..recall import Question, read_questions
from .senders import Sender, SenderDescription

RUNS = ("tau_bench_airline", "swe_agent")
QUESTIONS = "locomo/locomo_dev.json"


class InputSample(NamedTuple):
    """How much of everything."""

    every_run: int = 1
    """Each so-manieth agent run."""
    seeds: int = 2
    """Canary scenarios of each language and half."""
    every_question: int = 3
    sizes: tuple[int, ...] = (50, 5_000)
    """Messages before the timed calls."""
    timed_calls: int = 20


FULL = InputSample()


class PeerRun(NamedTuple):
    """An agent run: what each call adds to the history."""

    system: tuple[PromptPiece, ...]
    tools_tokens: int
    calls: tuple[tuple[TranscriptEntry, ...], ...]
    task: str


class QuestionedTalk(NamedTuple):
    """A conversation and what is asked about it."""

    said: tuple[TranscriptEntry, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Inputs:
    """All of it."""

    runs: tuple[PeerRun, ...]
    scenarios: tuple[CanaryScenario, ...]
    talks: tuple[QuestionedTalk, ...]
    timed: tuple[tuple[TranscriptEntry, ...], ...]
    timed_calls: int


def read_inputs(data: Path, sizer: Sizer, sample: InputSample = FULL) -> Inputs:
    """Read the public transcripts of a folder and make the rest."""
    return Inputs(
        runs=_runs(data, sizer)[:: sample.every_run],
        scenarios=tuple(_scenarios(sample.seeds)),
        talks=_talks(data / QUESTIONS, sample.every_question),
        timed=tuple(_entries(conversation(size + 2 * sample.timed_calls)) for size in sample.sizes),
        timed_calls=sample.timed_calls,
    )


def canonical(wire: Wire) -> Wire:
    """A message with what all providers have and nothing else."""
    content = wire.get("content")
    text = content if isinstance(content, str) or content is None else Message.from_wire(wire).text
    made: Wire = {"role": wire["role"], "content": text}
    if wire.get("tool_calls"):
        made["tool_calls"] = [
            {"id": call["id"], "type": "function", "function": {k: call["function"][k] for k in ("name", "arguments")}}
            for call in wire["tool_calls"]
        ]
    if "tool_call_id" in wire:
        made["tool_call_id"] = wire["tool_call_id"]
    return made


def _runs(data: Path, sizer: Sizer) -> tuple[PeerRun, ...]:
    no_builders: dict[str, EnvelopeBuilder] = {}
    found = []
    for run in read_runs([data / name for name in RUNS], no_builders, sizer):
        entries = _entries([canonical(piece.wire) for piece in run.messages])
        stops = (0, *run.seen)
        calls = tuple(entries[start:stop] for start, stop in zip(stops, run.seen, strict=False))
        found.append(PeerRun(run.system, run.tools_tokens, calls, run.task))
    return tuple(found)


def _entries(wires: Sequence[Wire]) -> tuple[TranscriptEntry, ...]:
    return tuple(TranscriptEntry(wire=wire) for wire in wires)


def _scenarios(seeds: int) -> list[CanaryScenario]:
    made = [
        scenario(seed, language, split=split)
        for split in ("dev", "held_out")
        for language in ("en", "zh")
        for seed in range(seeds)
    ]
    return [*made, *stories()] if seeds else []


def _talks(path: Path, every: int) -> tuple[QuestionedTalk, ...]:
    talks = []
    for questions, transcript in zip(read_questions(path), read_transcripts(path, format="locomo"), strict=True):
        said = tuple(
            TranscriptEntry(wire=canonical(row.wire), id=row.id, ts=row.ts) for row in transcript.open_entries()
        )
        talks.append(QuestionedTalk(said, tuple(questions[::every])))
    return tuple(talks)


RUN_BUDGET_TOKENS = 4_000
RECALL_BUDGET_TOKENS = 1_000
WINDOW_FRACTION = 0.2
EXPIRY_SECONDS = 3_600.0


class CanaryShares(NamedTuple):
    """Percent of all canaries."""

    shown: float
    reachable: float
    reachable_later: float
    fill: float
    """Tokens of the last window to the budget, mean."""


class RecallShares(NamedTuple):
    """Evidence shown, percent."""

    mean: float
    fill: float
    """Tokens of a window to the budget, mean."""


@dataclass(slots=True, kw_only=True)
class PeerFigures:
    """One sender's figures; what is None was not scored."""

    name: str
    about: SenderDescription = field(default_factory=lambda: SenderDescription("", ""))
    bill: Bill | None = None
    canaries: CanaryShares | None = None
    recall: RecallShares | None = None
    call_ms: tuple[float, ...] | None = None
    """CPU of a call, one for each length of history."""
    unscored: dict[str, str] = field(default_factory=dict)
    """Why, by what."""


def measure(
    name: str,
    sender: Callable[[], Sender],
    inputs: Inputs,
    sizer: Sizer,
    *,
    prices: Prices | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> PeerFigures:
    """Measure one sender on all inputs."""
    made = PeerFigures(name=name)
    opened = _opened(sender, made)
    if opened is None:
        return made
    try:
        for what, job in (
            ("cost", lambda: _cost(opened, inputs.runs, sizer, prices or Prices(), made)),
            ("canaries", lambda: _canaries(opened, inputs.scenarios, sizer, made)),
            ("cpu", lambda: _timed(opened, inputs, made)),
            ("recall", lambda: _recall(opened, inputs.talks, sizer, made)),
        ):
            tell(f"{name}: {what}")
            _tried(what, job, made)
    finally:
        opened.close()
    return made


def _opened(sender: Callable[[], Sender], made: PeerFigures) -> Sender | None:
    opened: Sender | None = None
    try:
        opened = sender()
        made.about = opened.open(RUN_BUDGET_TOKENS)
    except ContextError as error:
        made.unscored["all"] = str(error)
        if opened is not None:
            opened.close()
        return None
    return opened


def _tried(what: str, job: Callable[[], None], made: PeerFigures) -> None:
    try:
        job()
    except ContextError as error:
        made.unscored[what] = str(error)


def _cost(sender: Sender, runs: Sequence[PeerRun], sizer: Sizer, prices: Prices, made: PeerFigures) -> None:
    bill = Bill()
    for run in runs:
        sender.open(RUN_BUDGET_TOKENS)
        judge = PromptJudge(
            sizer=sizer, prices=prices, budget_tokens=RUN_BUDGET_TOKENS, task=run.task, tools_tokens=run.tools_tokens
        )
        for said in run.calls:
            sent = sender.send(said)
            judge.read(Prompt((*run.system, *sizer.pieces(sent.messages)), reachable=sent.reachable))
        bill.add(judge.bill)
    made.bill = bill


def _canaries(sender: Sender, scenarios: Sequence[CanaryScenario], sizer: Sizer, made: PeerFigures) -> None:
    total = 0
    found = [0, 0, 0]
    fills: list[float] = []
    for case in scenarios:
        budget_tokens = int(WINDOW_FRACTION * _tokens(case.messages, sizer))
        sender.open(budget_tokens)
        waiting: list[TranscriptEntry] = []
        sent: Sequence[Wire] = ()
        for wire in case.messages:
            waiting.append(TranscriptEntry(wire=wire))
            if wire["role"] != "assistant":
                sent, waiting = sender.send(waiting).messages, []
        window = "\n".join(map(_said, sent))
        for place, text in enumerate((window, *(_with(window, sender, s) for s in (0.0, EXPIRY_SECONDS)))):
            found[place] += sum(kind.found for kind in score(case, text).by_kind.values())
        total += len(case.canaries)
        fills.append(_tokens(sent, sizer) / budget_tokens)
    if total:
        shown, reachable, later = (100 * count / total for count in found)
        made.canaries = CanaryShares(shown, reachable, later, statistics.fmean(fills))


def _tokens(messages: Sequence[Wire], sizer: Sizer) -> int:
    return sum(piece.tokens for piece in sizer.pieces(messages))


def _with(window: str, sender: Sender, after_seconds: float) -> str:
    return "\n".join((window, *sender.expand(after_seconds)))


def _said(wire: Wire) -> str:
    """All that a message says: text, and the arguments of its calls."""
    calls = [str(call["function"]["arguments"]) for call in wire.get("tool_calls") or ()]
    return "\n".join((Message.from_wire(wire).text or str(wire.get("content") or ""), *calls))


def _recall(sender: Sender, talks: Sequence[QuestionedTalk], sizer: Sizer, made: PeerFigures) -> None:
    shares: list[float] = []
    fills: list[float] = []
    for talk in talks:
        texts: Mapping[str | None, str] = {row.id: str(row.wire["content"]) for row in talk.said}
        sender.open(RECALL_BUDGET_TOKENS)
        sender.send(talk.said)
        for question in talk.questions:
            wanted = [texts[id] for id in question.evidence if id in texts]
            if wanted:
                messages = sender.preview(question.text).messages
                window = "\n".join(map(_said, messages))
                shares.append(sum(text in window for text in wanted) / len(wanted))
                fills.append(_tokens(messages, sizer) / RECALL_BUDGET_TOKENS)
    if shares:
        made.recall = RecallShares(100 * statistics.fmean(shares), statistics.fmean(fills))


def _timed(sender: Sender, inputs: Inputs, made: PeerFigures) -> None:
    medians = []
    for said in inputs.timed:
        sender.open(RUN_BUDGET_TOKENS)
        before = len(said) - 2 * inputs.timed_calls
        sender.send(said[: before - 1])
        steps = (said[start - 1 : start + 1] for start in range(before, len(said), 2))
        medians.append(statistics.median(sender.send(step).cpu_seconds for step in steps) * 1000)
    made.call_ms = tuple(medians)
