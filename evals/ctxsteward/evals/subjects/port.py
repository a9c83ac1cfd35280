"""The interface of context strategies: the conversation so far goes in, the messages to send come out.

    def newest(conversation):                       # a strategy: --subject my_module:newest
        return conversation.messages[-20:]

A strategy is a function of a `Conversation`. It returns OpenAI chat messages without the system prompt and the tools,
which the judge adds for every strategy alike. To report more, it returns a `Prompt`: references with the messages that
they name, its own lines, the messages it left out.

A strategy with its own memory is a `Subject` instead: it opens a `Dialogue` per conversation, which receives messages
one by one. A dialogue may also have the methods of `Archive` (resolve a reference), `Outputs` (tool outputs by number)
and `Index` (the model's search). Figures that need a missing method are unscored, never 0 or 1.

The judge verifies:

- A reference counts if it stands alone in words that the strategy added, with a word of its message nearer to it than
  any other reference, or in the result of the same tool call; and if `resolve` returns the message with at most 300
  characters around it. Of a search, the first ten texts count, each within the same bound.
- Text over the budget counts as shown, and `within_budget` fails: each figure measures one thing.
- The judge counts the tokens of everything that it reads. A message with fields that it does not count is refused.
- `compacted` counts only if messages sent before did change; an outdated value that stands alone in added words counts,
  with or without `summary`; a message shown whole is not `lost`.
- The judge measures CPU; `cpu_seconds` counts up to the time that has passed.

The judge trusts: that `prompt(question)` is what would be sent if a user asked it now; that messages in `lost` were
reported, and that `summary` has every line that should cite something; that `anthropic` makes the same call; that a
strategy does not read the suites or the judge's memory, carries nothing from one conversation to the next, and returns:
the judge cannot end a strategy in this process, only servers and libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from ctxsteward.envelope import Envelope
from ctxsteward.schemas.message import Wire


class Task(NamedTuple):
    """The settings of a conversation before its first message."""

    id: str
    """Opaque id, the same each time the conversation is played."""
    budget_tokens: int
    """Budget for everything sent except system prompt and tools."""
    system: str | None = None
    tools: tuple[Wire, ...] = ()


class Conversation(NamedTuple):
    """Input of a strategy function."""

    messages: Sequence[Wire]
    """All messages, oldest first; a question of the suite is the last one and is not kept."""
    budget_tokens: int
    tokens: Callable[[Wire], int]
    """Count a message as the judge does."""
    task: Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The messages of one model call, and the strategy's report on them."""

    messages: Sequence[Wire]
    """OpenAI chat messages without the system prompt."""
    references: Mapping[str, int] = field(default_factory=dict)
    """References as they stand in the messages, with the 1-based place of the message that each names."""
    summary: str | None = None
    """The strategy's own lines; None if it cannot separate them from the conversation."""
    lost: frozenset[int] | None = None
    """1-based places of messages reported as lost and not shown; None if it reports none."""
    compacted: bool | None = None
    """Whether messages of the last call were removed or changed for this one; None if unknown."""
    anthropic: Callable[[], Wire] | None = None
    """Make the same call as a request to Anthropic."""
    cpu_seconds: float | None = None
    """CPU seconds of a strategy in a process of its own."""
    envelope: Envelope | None = None
    """Our builder's envelope; None for other strategies."""


Answer = Prompt | Iterable[Wire]
"""A prompt, or its messages only."""


@runtime_checkable
class Dialogue(Protocol):
    """One conversation with a strategy."""

    def add(self, message: Wire) -> None:
        """Add an OpenAI chat message to the conversation."""

    def prompt(self, question: str | None = None) -> Answer:
        """Return what would be sent now; a `question` counts as the next user message and is not kept."""


@runtime_checkable
class Archive(Protocol):
    """A dialogue whose references resolve."""

    def resolve(self, reference: str) -> str:
        """Return the text of the message that a reference names; raise `LookupError` if it does not resolve."""


@runtime_checkable
class Outputs(Protocol):
    """A dialogue that gives tool outputs by their number."""

    def tool_output(self, number: int) -> str:
        """Return the n-th tool output, whole, 1-based; raise `LookupError` if there is no such output."""


@runtime_checkable
class Index(Protocol):
    """A dialogue whose model can search the conversation."""

    def search(self, query: str) -> Sequence[str]:
        """Return the texts that one search shows the model."""


class Subject(Protocol):
    """A context strategy."""

    @property
    def name(self) -> str:
        """Return the name for results."""

    def open(self, task: Task, tokens: Callable[[Wire], int]) -> Dialogue:
        """Open a conversation; `tokens` counts a message as the judge does."""


Strategy = Callable[[Conversation], Answer]
"""Strategies and dialogue methods may also be ``async def``."""


class FunctionDialogue:
    """A conversation with a strategy function; keeps the messages for it."""

    def __init__(self, strategy: Strategy, task: Task, tokens: Callable[[Wire], int]) -> None:
        self._strategy, self._task, self._tokens = strategy, task, tokens
        self._said: list[Wire] = []

    def add(self, message: Wire) -> None:
        self._said.append(message)

    def prompt(self, question: str | None = None) -> Answer:
        asked: list[Wire] = [] if question is None else [{"role": "user", "content": question}]
        return self._strategy(Conversation([*self._said, *asked], self._task.budget_tokens, self._tokens, self._task))
