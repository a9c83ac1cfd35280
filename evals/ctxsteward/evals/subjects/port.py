"""What a suite asks of a context strategy: what was said so far goes in, the messages to send come out.

    def newest(conversation):                       # a strategy: --subject my_module:newest
        return conversation.messages[-20:]

A strategy is a function of a `Conversation`. It returns OpenAI chat messages without the system prompt and the tools,
which are the judge's and the same for all. One that has more to tell returns a `Prompt`: references with the messages
they lead to, the part that it wrote itself, what it left out.

A strategy with a memory of its own is a `Subject` instead: it opens a `Dialogue` a conversation, which takes messages
as they are said. A dialogue may also have the methods of `Archive` (what a reference leads to), `Outputs` (tool
outputs by number) and `Index` (the model's search); what a subject does not have is unscored, never 0 or 1.

The judge believes nothing: a reference counts where it stands in the messages and its `resolve` gives what was said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from ctxsteward.envelope import Envelope
from ctxsteward.schemas import InputError, Wire


class Task(NamedTuple):
    """One conversation before anything is said."""

    id: str
    budget_tokens: int
    """For all that is sent but system prompt and tools."""
    system: str | None = None
    tools: tuple[Wire, ...] = ()


class Conversation(NamedTuple):
    """What a function is asked with."""

    messages: Sequence[Wire]
    """All that was said, oldest first; a question that is asked now is the last of them."""
    budget_tokens: int
    tokens: Callable[[Wire], int]
    """Of a message, as the judge counts."""
    task: Task
    question: str | None = None
    """What is asked in passing, where something is: the conversation goes on without it."""


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
    """1-based places of messages that it reports as lost, so far; None: it reports nothing."""
    compacted: bool | None = None
    """Whether something that the last call was sent was taken back for this one; None: it cannot tell."""
    anthropic: Callable[[], Wire] | None = None
    """Makes the same call as a request to Anthropic."""
    cpu_seconds: float | None = None
    """That it took, where the strategy runs in a process of its own."""
    envelope: Envelope | None = None
    """Ours, with its report."""


@runtime_checkable
class Dialogue(Protocol):
    """One conversation with a strategy."""

    def add(self, message: Wire) -> None:
        """Something was said: an OpenAI chat message."""

    def prompt(self, question: str | None = None) -> Prompt:
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


class Subject(Protocol):
    """A context strategy."""

    @property
    def name(self) -> str:
        """As results name it."""

    def open(self, task: Task, tokens: Callable[[Wire], int]) -> Dialogue:
        """Begin a conversation; `tokens` counts a message as the judge does."""


Strategy = Callable[[Conversation], Prompt | Iterable[Wire]]


class FunctionDialogue:
    """A conversation with a function: what was said is kept here."""

    def __init__(self, name: str, strategy: Strategy, task: Task, tokens: Callable[[Wire], int]) -> None:
        self._name, self._strategy, self._task, self._tokens = name, strategy, task, tokens
        self._said: list[Wire] = []

    def add(self, message: Wire) -> None:
        self._said.append(message)

    def prompt(self, question: str | None = None) -> Prompt:
        asked: list[Wire] = [] if question is None else [{"role": "user", "content": question}]
        conversation = Conversation([*self._said, *asked], self._task.budget_tokens, self._tokens, self._task, question)
        return prompt_of(self._name, self._strategy(conversation))


@dataclass(frozen=True, slots=True)
class FunctionSubject:
    """A function as a subject."""

    name: str
    strategy: Strategy

    def open(self, task: Task, tokens: Callable[[Wire], int]) -> Dialogue:
        return FunctionDialogue(self.name, self.strategy, task, tokens)


def prompt_of(name: str, answer: object) -> Prompt:
    """A strategy's answer, checked; raises `InputError` that says what was found instead of messages."""
    if isinstance(answer, Prompt):
        _check_messages(name, answer.messages)
        return answer
    if isinstance(answer, (str, bytes, Mapping)) or not isinstance(answer, Iterable):
        raise InputError(f"subject {name}: it returned {_kind(answer)}; return a list of chat messages, or a Prompt")
    messages = list(answer)
    _check_messages(name, messages)
    return Prompt(messages=messages)


def _check_messages(name: str, messages: Sequence[object]) -> None:
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            what = f"message {number} of what it returned is {_kind(message)}"
            raise InputError(f"subject {name}: {what}; write an OpenAI chat message such as "
                             '{"role": "user", "content": "…"}')  # fmt: skip


def _kind(value: object) -> str:
    return "nothing (None)" if value is None else f"{type(value).__name__} {value!r:.60}"
