"""Short conversations, and what comes of playing them through a subject."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ctxsteward.evals.subjects import Dialogue, Subject, Task
from ctxsteward.evals.subjects.port import FunctionDialogue, Strategy
from ctxsteward.evals.suites.kit.play import AskMoment, CallMoment, EndMoment, Moment, play
from ctxsteward.evals.suites.kit.suite import Ask, Draw, PlayCounts, Scenario, Setup
from ctxsteward.schemas.message import Wire

TALK: tuple[Wire, ...] = tuple(
    {
        "role": ("user", "assistant")[n % 2],
        "content": f"Message {n} says that the shelf number of item {n} is {700 + n}.",
    }
    for n in range(12)
)
ASK = Ask(metric="shown", after=12, question="Where is item 3?", wants=("703",))


@dataclass(frozen=True, slots=True)
class FunctionSubject:
    """A function as a subject."""

    name: str
    strategy: Strategy

    def open(self, task: Task, tokens: Callable[[Wire], int]) -> Dialogue:
        return FunctionDialogue(self.strategy, task, tokens)


def scenario(messages: Sequence[Wire] = TALK, *asks: Ask) -> Scenario:
    return Scenario(draw=Draw("verbatim", "docs", 1), messages=tuple(messages), asks=asks)


def moments(
    subject: Subject | Callable[..., Any],
    messages: Sequence[Wire] = TALK,
    *asks: Ask,
    budget_tokens: int = 2_000,
    counts: PlayCounts | None = None,
) -> list[Moment]:
    """All moments of a conversation."""
    heard = subject if hasattr(subject, "open") else FunctionSubject("made", subject)
    setup = Setup(subject=heard)  # type: ignore[arg-type]  # a function is made one above
    return list(play(scenario(messages, *asks), setup, counts or PlayCounts(), dynamic_tokens=budget_tokens))


def last_call(found: Iterable[Moment]) -> CallMoment:
    return [moment for moment in found if isinstance(moment, CallMoment)][-1]


def asked(found: Iterable[Moment]) -> AskMoment:
    (moment,) = (moment for moment in found if isinstance(moment, AskMoment))
    return moment


def ended(found: Iterable[Moment]) -> EndMoment:
    (moment,) = (moment for moment in found if isinstance(moment, EndMoment))
    return moment


class Made:
    """A subject whose dialogues are these."""

    name = "made"

    def __init__(self, dialogue: Callable[[Task, Callable[[Wire], int]], Dialogue]) -> None:
        self._dialogue = dialogue

    def open(self, task: Task, tokens: Callable[[Wire], int]) -> Dialogue:
        return self._dialogue(task, tokens)


class Kept:
    """A dialogue that sends the newest message; what else it has, a test adds."""

    def __init__(self, task: Task, tokens: Callable[[Wire], int]) -> None:
        self.said: list[Wire] = []

    def add(self, message: Wire) -> None:
        self.said.append(message)

    def prompt(self, question: str | None = None) -> Any:
        return self.said[-1:] if question is None else [{"role": "user", "content": question}]
