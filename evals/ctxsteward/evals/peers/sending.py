"""Senders: a history in, message by message, and what would be sent of it. Ours, and everything as it is.

A `Sender` is given the budget for all messages but the system's, and messages as OpenAI chat takes them; system
messages and tool schemas are the judge's, the same for all.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ctxsteward.envelope import Budgets, Envelope, EnvelopeBuilder, NewMessage, Session
from ctxsteward.envelope.readers import TranscriptEntry
from ctxsteward.envelope.testing import memory_store
from ctxsteward.schemas import Wire

from ..cost_runs import reachable_ordinals


class Sent(NamedTuple):
    """What one model call is sent."""

    messages: Sequence[Wire]
    cpu_seconds: float
    reachable: frozenset[int] = frozenset()
    """1-based places of messages that a reference leads to."""


class About(NamedTuple):
    """Which sender, as measured."""

    version: str
    note: str


class Sender(Protocol):
    """One way of sending a history."""

    def open(self, budget_tokens: int) -> About:
        """Begin a new conversation."""

    def send(self, said: Sequence[TranscriptEntry]) -> Sent:
        """Take in what was said since, and say what would be sent now."""

    def preview(self, question: str) -> Sent:
        """The same for a user message, without keeping it."""

    def expand(self, after_seconds: float) -> Sequence[str]:
        """Texts that references in what was last sent lead to, so much later."""

    def close(self) -> None:
        """End what was started."""


class Everything:
    """Sends all messages."""

    def __init__(self) -> None:
        self._messages: list[Wire] = []

    def open(self, budget_tokens: int) -> About:
        self._messages = []
        return About("", "all messages")

    def send(self, said: Sequence[TranscriptEntry]) -> Sent:
        started = time.process_time()
        self._messages += [row.wire for row in said]
        return Sent(list(self._messages), time.process_time() - started)

    def preview(self, question: str) -> Sent:
        return Sent([*self._messages, {"role": "user", "content": question}], 0.0)

    def expand(self, after_seconds: float) -> Sequence[str]:
        return ()

    def close(self) -> None:
        self._messages = []


class Ours:
    """Our builder, its store in memory. CPU is that of append, build and render."""

    def __init__(self, note: str, budgets: Mapping[str, Any] | None = None, *, model: str = "gpt-4o") -> None:
        self._note, self._budgets, self._model = note, dict(budgets or {}), model
        self._builder = EnvelopeBuilder(model=model)
        self._session: Session | None = None
        self._envelope: Envelope | None = None
        self._count = 0

    def open(self, budget_tokens: int) -> About:
        self.close()
        budgets = Budgets(**{"dynamic_tokens": budget_tokens, **self._budgets})
        self._builder = EnvelopeBuilder(model=self._model, budgets=budgets)
        self._session, self._count = memory_store().session("peers"), 0
        return About("", self._note)

    def send(self, said: Sequence[TranscriptEntry]) -> Sent:
        session = self._opened()
        new = [NewMessage(message=row.wire, ts=row.ts, id=f"#{n}") for n, row in enumerate(said, self._count + 1)]
        self._count += len(new)
        started = time.process_time()
        session.extend(new)
        self._envelope = self._builder.build(session)
        messages = self._envelope.render("openai-chat", cache=False)["messages"]
        seconds = time.process_time() - started
        return Sent(messages, seconds, reachable_ordinals(self._envelope))

    def preview(self, question: str) -> Sent:
        started = time.process_time()
        envelope = self._builder.preview(self._opened(), question)
        messages = envelope.render("openai-chat", cache=False)["messages"]
        return Sent(messages, time.process_time() - started)

    def expand(self, after_seconds: float) -> Sequence[str]:
        assert self._envelope is not None
        session = self._opened()
        return [session.resolve(f"§{n}").text for n in sorted(reachable_ordinals(self._envelope))]

    def close(self) -> None:
        self._session = self._envelope = None

    def _opened(self) -> Session:
        assert self._session is not None, "open first"
        return self._session
