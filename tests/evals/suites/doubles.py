"""Builders that are wrong on purpose: each breaks one promise, for the suites to see. And moments made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ctxsteward.envelope import Budgets, EnvelopeBuilder
from ctxsteward.envelope.testing import memory_store
from ctxsteward.evals.subjects import Prompt, Task
from ctxsteward.evals.subjects.ours import EnvelopeDialogue
from ctxsteward.evals.suites.kit.play import AskMoment, CallMoment
from ctxsteward.evals.suites.kit.suite import Ask, Draw, Setup
from ctxsteward.schemas import Summarizer, SummarizerInput, Summary
from ctxsteward.schemas.message import Wire
from ctxsteward.summarizers import extractive


def quotes_all(source: SummarizerInput, *, budget_tokens: int) -> Summary:
    """Makes a bullet of each message by itself: nothing ever replaces anything."""
    bullets = (
        bullet
        for item in source.messages
        for bullet in extractive(replace(source, messages=(item,), standing=(), visible=()), budget_tokens=60).bullets
    )
    return Summary(bullets=tuple(bullets))


class Short(Draw):
    """A scenario of few turns: enough for compactions, and quick to play."""

    @property
    def turns(self) -> int:
        return 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong(Setup):
    """A setup whose builder is given these plug points."""

    shrink: Summarizer = extractive

    def builder(self, *, dynamic_tokens: int = 2_000) -> EnvelopeBuilder:
        return EnvelopeBuilder(
            tokenizer=self.tokenizer,
            budgets=Budgets(dynamic_tokens=dynamic_tokens),
            summarizer=self.shrink,
            selector=self.selector,
        )


def dialogue(*wires: Wire, **builder: Any) -> EnvelopeDialogue:
    """Our builder over a session in which this was said."""
    session = memory_store().session("s")
    session.extend(list(wires))
    return EnvelopeDialogue(EnvelopeBuilder(tokenizer="o200k_base", **builder), session)


TASK = Task("made", 2_000)


def asked(ask: Ask, *wires: Wire) -> AskMoment:
    """A question behind these messages."""
    with_ours = dialogue(*wires)
    return AskMoment(prompt=with_ours.prompt(ask.question), dialogue=with_ours, wires=wires, task=TASK, ask=ask)


def called(by: EnvelopeDialogue, wires: Sequence[Wire], prompt: Prompt | None = None) -> CallMoment:
    """A call behind these messages, as our builder makes it or with another prompt."""
    return CallMoment(prompt=prompt or by.prompt(), dialogue=by, wires=wires, task=TASK, number=1)
