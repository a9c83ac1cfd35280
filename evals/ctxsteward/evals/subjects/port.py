"""What a suite asks of a context strategy: what was said so far goes in, the messages to send come out.

    def newest(conversation):                       # a strategy: --subject my_module:newest
        return conversation.messages[-20:]

A strategy is a function of a `Conversation`. It returns OpenAI chat messages without the system prompt and the tools,
which are the judge's and the same for all. One that has more to tell returns a `Prompt`: references with the messages
they lead to, the part that it wrote itself, what it left out.

A strategy with a memory of its own is a `Subject` instead: it opens a `Dialogue` a conversation, which takes messages
as they are said. A dialogue may also have the methods of `Archive` (what a reference leads to), `Outputs` (tool
outputs by number) and `Index` (the model's search); what a subject does not have is unscored, never 0 or 1.

What the judge finds out for itself:

- A reference counts where it stands, alone, in words that the strategy added, with a word of its message nearer to it
  than any other reference, or for the result of the same tool call; and where `resolve` gives the message with at most
  300 characters around it. Of a search, the first ten texts count, each within the same bound.
- What is over the budget is shown, and `within_budget` fails: each figure says one thing.
- Tokens are counted by the judge, of everything that is read. A message with fields that nobody counts is refused.
- `compacted` counts where messages that were sent before did change; an outdated value that stands alone in added
  words counts, whether `summary` names them or not; what is shown whole is not `lost`.
- CPU is what the judge measures; `cpu_seconds` is believed up to the time that has passed.

What it takes on trust: that `prompt(question)` is what would be sent if a user asked it now; that what `lost` names was
reported, and that `summary` has every line that should cite something; that `anthropic` makes the same call; that a
strategy does not read the suites or the judge's memory, keeps nothing from one conversation to the next, and returns:
one in this process is not ended, a server or a library is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from ctxsteward.envelope import Envelope
from ctxsteward.schemas.message import Wire


class Task(NamedTuple):
    """One conversation before anything is said."""

    id: str
    """The same whenever the conversation is played; it does not say which scenario it is."""
    budget_tokens: int
    """For all that is sent but system prompt and tools."""
    system: str | None = None
    tools: tuple[Wire, ...] = ()


class Conversation(NamedTuple):
    """What a function is asked with."""

    messages: Sequence[Wire]
    """All that was said, oldest first; a question that is asked in passing is the last of them, and not kept."""
    budget_tokens: int
    tokens: Callable[[Wire], int]
    """Of a message, as the judge counts."""
    task: Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What one model call is sent, and what the strategy can tell of it."""

    messages: Sequence[Wire]
    """OpenAI chat messages without the system prompt."""
    references: Mapping[str, int] = field(default_factory=dict)
    """References as they stand in the messages, with the 1-based place of the message that each leads to."""
    summary: str | None = None
    """The lines that the strategy wrote itself; None: it cannot tell them from what was said."""
    lost: frozenset[int] | None = None
    """1-based places of messages that it reports as lost and does not show; None: it reports nothing."""
    compacted: bool | None = None
    """Whether something that the last call was sent was taken back for this one; None: it cannot tell."""
    anthropic: Callable[[], Wire] | None = None
    """Makes the same call as a request to Anthropic."""
    cpu_seconds: float | None = None
    """That it took, where the strategy runs in a process of its own."""
    envelope: Envelope | None = None
    """Ours, with its report."""


Answer = Prompt | Iterable[Wire]
"""A prompt, or no more than its messages."""


@runtime_checkable
class Dialogue(Protocol):
    """One conversation with a strategy."""

    def add(self, message: Wire) -> None:
        """Something was said: an OpenAI chat message."""

    def prompt(self, question: str | None = None) -> Answer:
        """What would be sent now; with a question, if a user asked it now, which the dialogue then forgets."""


@runtime_checkable
class Archive(Protocol):
    """A dialogue whose references lead somewhere."""

    def resolve(self, reference: str) -> str:
        """The text of the message that a reference leads to; raises `LookupError` where it leads nowhere."""


@runtime_checkable
class Outputs(Protocol):
    """A dialogue that gives tool outputs by their number."""

    def tool_output(self, number: int) -> str:
        """The n-th tool output of the conversation, whole, 1-based; raises `LookupError` where there is none."""


@runtime_checkable
class Index(Protocol):
    """A dialogue whose model can search what was said."""

    def search(self, query: str) -> Sequence[str]:
        """Texts that one search shows the model."""


@runtime_checkable
class Clock(Protocol):
    """A dialogue whose clock can be set: it says when something was said, and whether a reference has expired."""

    def set_time(self, now: str) -> None:
        """What time it is from here on, as ISO 8601 has it, UTC where it names no zone; never told: the clock's."""


class Subject(Protocol):
    """A context strategy."""

    @property
    def name(self) -> str:
        """As results name it."""

    def open(self, task: Task, tokens: Callable[[Wire], int]) -> Dialogue:
        """Begin a conversation; `tokens` counts a message as the judge does."""


Strategy = Callable[[Conversation], Answer]
"""``async def`` is one, too; so is any method of a dialogue."""


class FunctionDialogue:
    """A conversation with a function: what was said is kept here."""

    def __init__(self, strategy: Strategy, task: Task, tokens: Callable[[Wire], int]) -> None:
        self._strategy, self._task, self._tokens = strategy, task, tokens
        self._said: list[Wire] = []

    def add(self, message: Wire) -> None:
        self._said.append(message)

    def prompt(self, question: str | None = None) -> Answer:
        asked: list[Wire] = [] if question is None else [{"role": "user", "content": question}]
        return self._strategy(Conversation([*self._said, *asked], self._task.budget_tokens, self._tokens, self._task))


@dataclass(frozen=True, slots=True)
class FunctionSubject:
    """A function as a subject."""

    name: str
    strategy: Strategy

    def open(self, task: Task, tokens: Callable[[Wire], int]) -> Dialogue:
        return FunctionDialogue(self.strategy, task, tokens)
