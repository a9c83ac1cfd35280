"""The judge: one sender on all inputs, and what it did with them.

Agent runs: cost (`cost_prompts`), calls over budget, calls a provider would refuse, whether the task survives.
Canaries at a fifth of the tokens: shown in the last window; reachable, shown or behind a reference in that window; the
same when an hour has passed. Conversations with questions: mean share of evidence turns shown word for word (`recall`).
Small talk: CPU of a call, median. A sender that fails at something is `unscored` there, with its words.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ctxsteward.envelope.readers import TranscriptEntry
from ctxsteward.schemas import ContextError, Message, Wire

from ..canaries import Scenario, score
from ..cost_prompts import Bill, Judge, Prices, Prompt, Sizer
from .inputs import Inputs, Run, Talk
from .sending import About, Sender

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


class Recall(NamedTuple):
    """Evidence shown, percent."""

    mean: float
    fill: float
    """Tokens of a window to the budget, mean."""


@dataclass(slots=True, kw_only=True)
class Measured:
    """One sender's figures; what is None was not scored."""

    name: str
    about: About = field(default_factory=lambda: About("", ""))
    bill: Bill | None = None
    canaries: CanaryShares | None = None
    recall: Recall | None = None
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
) -> Measured:
    """Measure one sender on all inputs."""
    made = Measured(name=name)
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


def _opened(sender: Callable[[], Sender], made: Measured) -> Sender | None:
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


def _tried(what: str, job: Callable[[], None], made: Measured) -> None:
    try:
        job()
    except ContextError as error:
        made.unscored[what] = str(error)


def _cost(sender: Sender, runs: Sequence[Run], sizer: Sizer, prices: Prices, made: Measured) -> None:
    bill = Bill()
    for run in runs:
        sender.open(RUN_BUDGET_TOKENS)
        judge = Judge(
            sizer=sizer, prices=prices, budget_tokens=RUN_BUDGET_TOKENS, task=run.task, tools_tokens=run.tools_tokens
        )
        for said in run.calls:
            sent = sender.send(said)
            judge.read(Prompt((*run.system, *sizer.pieces(sent.messages)), reachable=sent.reachable))
        bill.add(judge.bill)
    made.bill = bill


def _canaries(sender: Sender, scenarios: Sequence[Scenario], sizer: Sizer, made: Measured) -> None:
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


def _recall(sender: Sender, talks: Sequence[Talk], sizer: Sizer, made: Measured) -> None:
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
        made.recall = Recall(100 * statistics.fmean(shares), statistics.fmean(fills))


def _timed(sender: Sender, inputs: Inputs, made: Measured) -> None:
    medians = []
    for said in inputs.timed:
        sender.open(RUN_BUDGET_TOKENS)
        before = len(said) - 2 * inputs.timed_calls
        sender.send(said[: before - 1])
        steps = (said[start - 1 : start + 1] for start in range(before, len(said), 2))
        medians.append(statistics.median(sender.send(step).cpu_seconds for step in steps) * 1000)
    made.call_ms = tuple(medians)
