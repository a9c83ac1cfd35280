"""`ChatModel`: the only port for calls to a model, with its requests and replies.

A request has messages in the form of OpenAI's chat completions, no tools, and a limit for the reply. A `prefix` is a
request that was rendered for the model's own provider. The messages are appended to it and the prefix is not changed,
so that the provider bills it as cached (else a summary call would miss the prompt cache).

A model raises only `ModelUnavailable`. It reports how a reply ended and never guesses: a reply that was cut off
(`length`) or refused is not an answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

from pydantic import Field

from .errors import InputError
from .frozen import FrozenModel
from .message import Wire

ModelPurpose = Literal["summary", "selection", "card", "handoff", "judge", "phase", "blame"]
"""Purpose of a call; a closed list, because spending is reported by purpose."""
ReplyEnd = Literal["complete", "length", "refused", "other"]
"""complete: the model finished; length: cut off; refused: by the model or a filter; other: tool calls, or no text."""
_Count = Annotated[int, Field(ge=0)]


class TokenUsage(FrozenModel):
    """The tokens that a provider counted for one call."""

    prompt_tokens: _Count = 0
    """Tokens of the whole prompt, cached or not."""
    cached_tokens: _Count = 0
    """Prompt tokens read from the provider's cache."""
    written_tokens: _Count = 0
    """Prompt tokens written to the provider's cache for a surcharge."""
    output_tokens: _Count = 0

    def plus(self, other: TokenUsage) -> TokenUsage:
        """Return the sum of two usages."""
        names = TokenUsage.model_fields
        return TokenUsage(**{name: getattr(self, name) + getattr(other, name) for name in names})


class ModelPrice(FrozenModel):
    """Prices in dollars per million tokens; all zero if the price is unknown, and then nothing is billed."""

    prompt: float = Field(default=0.0, ge=0, le=1e6)
    cached: float = Field(default=0.0, ge=0, le=1e6)
    written: float | None = Field(default=None, ge=0, le=1e6)
    """Price of tokens written to the cache; None means that of `prompt`."""
    output: float = Field(default=0.0, ge=0, le=1e6)

    def of(self, usage: TokenUsage) -> float:
        """Return the price of a usage in dollars.

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
    """System and user messages; after a `prefix` only user messages."""
    max_output_tokens: int
    schema: Wire | None = None
    """JSON Schema of the expected object; not sent with a `prefix`, because it would change it."""
    prefix: Wire | None = None
    """A rendered request for the model's own provider. Treat it as read-only."""
    deadline_seconds: float = 60.0
    """Time limit of the whole call, including retries."""
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """The reply of a model."""

    text: str
    ended: ReplyEnd = "complete"
    usage: TokenUsage | None = None
    """Tokens of the call, or None if the provider does not report them."""


@runtime_checkable
class ChatModel(Protocol):
    """A chat model; safe with threads."""

    @property
    def name(self) -> str: ...

    def reply(self, request: ChatRequest) -> ChatReply:
        """Answer the request. Raises `ModelUnavailable`."""

    async def reply_async(self, request: ChatRequest) -> ChatReply:
        """Answer the request, for async callers."""


def charged_to(model: ChatModel, **accounts: str | None) -> ChatModel:
    """Return the model that charges these accounts (tenant, session, night, suite), or itself if it keeps none."""
    charged: Any = getattr(model, "charged", None)
    return model if charged is None else charged(**accounts)


def task_of(model: ChatModel) -> ChatModel:
    """Return the model for one task, whose calls share a limit of tokens, or the model itself if it has no limit."""
    task: Any = getattr(model, "task", None)
    return model if task is None else task()


_NO_ANSWER = {"length": "it was cut off", "refused": "it was refused", "other": "it is not text alone"}


def read_json(text: str) -> object:
    """Parse a model's text as JSON. Raises `ValueError` for invalid JSON and for a repeated key.

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
    """Return the text of a complete reply without a Markdown fence around it. Raises `InputError` if it is incomplete.

    >>> whole_text(ChatReply(text="```json\\n{}\\n```"))
    '{}'
    """
    if reply.ended != "complete":
        raise InputError(_NO_ANSWER[reply.ended])
    text = reply.text.strip()
    if text.startswith("```") and text.endswith("```") and text.count("```") == 2:
        return text.removeprefix("```json").strip("`").strip()
    return text
