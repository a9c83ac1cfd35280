"""`ChatModel`: the one port behind which a model is asked, and what an answer is.

A request holds messages as OpenAI's chat completions have them, no tools, and a bound on the reply. With a `prefix`,
which is a request that was rendered for the model's own provider, the messages go behind it and nothing of it is
changed, so that the provider bills it as cached (pain: a summary call that misses the prompt cache).

A model raises `ModelUnavailable` and nothing else. What ended a reply is told, never guessed: a reply that was cut off
(`length`) or refused is no answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

from pydantic import Field

from .errors import InputError
from .frozen import FrozenModel
from .message import Wire

ModelPurpose = Literal["summary", "selection", "card", "handoff", "judge", "phase"]
"""What a model is asked for; a closed list, because spending is told by it."""
ReplyEnd = Literal["complete", "length", "refused", "other"]
"""complete: the model was done; length: cut off; refused: it, or a filter, would not; other: tool calls, or nothing."""
_Count = Annotated[int, Field(ge=0)]


class TokenUsage(FrozenModel):
    """What a provider counted for one call."""

    prompt_tokens: _Count = 0
    """All of the prompt, cached or not."""
    cached_tokens: _Count = 0
    """Of those, read from the provider's cache."""
    written_tokens: _Count = 0
    """Of those, written to it for a surcharge."""
    output_tokens: _Count = 0

    def plus(self, other: TokenUsage) -> TokenUsage:
        """Of both calls."""
        names = TokenUsage.model_fields
        return TokenUsage(**{name: getattr(self, name) + getattr(other, name) for name in names})


class ModelPrice(FrozenModel):
    """Dollars a million tokens; all zero: nothing is known, and nothing is billed."""

    prompt: float = Field(default=0.0, ge=0, le=1e6)
    cached: float = Field(default=0.0, ge=0, le=1e6)
    written: float | None = Field(default=None, ge=0, le=1e6)
    """Of a token written to the cache; None: as `prompt`."""
    output: float = Field(default=0.0, ge=0, le=1e6)

    def of(self, usage: TokenUsage) -> float:
        """Dollars.

        >>> ModelPrice(prompt=2.0, cached=0.2, output=8.0).of(
        ...     TokenUsage(prompt_tokens=1_000_000, cached_tokens=500_000, output_tokens=100_000))
        1.9
        """
        fresh = usage.prompt_tokens - usage.cached_tokens - usage.written_tokens
        written = self.prompt if self.written is None else self.written
        sums = fresh * self.prompt + usage.cached_tokens * self.cached + usage.written_tokens * written
        return (sums + usage.output_tokens * self.output) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One question to a model."""

    purpose: ModelPurpose
    messages: tuple[Wire, ...]
    """System and user messages; behind `prefix` user messages alone."""
    max_output_tokens: int
    schema: Wire | None = None
    """JSON Schema of the object asked for; not sent with a `prefix`, which it would change."""
    prefix: Wire | None = None
    """A rendered request of the model's own provider. Treat it as read-only."""
    deadline_seconds: float = 60.0
    """For the whole call, retries included."""
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """What a model answered."""

    text: str
    ended: ReplyEnd = "complete"
    usage: TokenUsage | None = None
    """None: the provider does not tell."""


@runtime_checkable
class ChatModel(Protocol):
    """A model; safe with threads."""

    @property
    def name(self) -> str: ...

    def reply(self, request: ChatRequest) -> ChatReply:
        """Answer; raises `ModelUnavailable`."""

    async def reply_async(self, request: ChatRequest) -> ChatReply:
        """The same for async callers."""


def charged_to(model: ChatModel, **accounts: str | None) -> ChatModel:
    """The model on these accounts (tenant, session, night, suite), as `GovernedModel` has them; else itself."""
    charged: Any = getattr(model, "charged", None)
    return model if charged is None else charged(**accounts)


def task_of(model: ChatModel) -> ChatModel:
    """The model for one task, whose calls share a bound on tokens; itself where it keeps none."""
    task: Any = getattr(model, "task", None)
    return model if task is None else task()


_NO_ANSWER = {"length": "it was cut off", "refused": "it was refused", "other": "it is not text alone"}


def read_json(text: str) -> object:
    """The JSON value of a model's text; raises `ValueError` for anything else, and for a key that stands there twice.

    >>> read_json('{"selected": [], "selected": ["§9"]}')
    Traceback (most recent call last):
    ValueError: a key twice
    """
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def whole_text(reply: ChatReply) -> str:
    """The text of a reply that is whole, without a Markdown fence around all of it; raises `InputError`.

    >>> whole_text(ChatReply(text="```json\\n{}\\n```"))
    '{}'
    """
    if reply.ended != "complete":
        raise InputError(_NO_ANSWER[reply.ended])
    text = reply.text.strip()
    if text.startswith("```") and text.endswith("```") and text.count("```") == 2:
        return text.removeprefix("```json").strip("`").strip()
    return text
