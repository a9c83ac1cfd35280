"""What prompts cost: the judge by which the cost eval, the comparison with peers and the suites price every prompt.

A prompt is a sequence of `PromptPiece`: one message as OpenAI chat takes it, and its tokens. Providers cache prefixes:
the beginning that a prompt shares with the prompt of the call before is read at `Prices.cached`, the rest is written at
`Prices.write`, both relative to a plain prompt token at 1. A prefix shorter than the provider's block is not cached,
and a prompt shorter than it is not written. Tool schemas come first in every prompt. Only the call before is in the
cache, and it has not expired: agents call within minutes. Source: the published price lists of OpenAI and Anthropic.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from ctxsteward.envelope.telemetry import common_beginning
from ctxsteward.envelope.tokens import Counter, Prices as Prices
from ctxsteward.schemas import Message, Wire

from .validity import call_faults


class PromptPiece(NamedTuple):
    """A message as it is sent."""

    key: str
    """Its bytes, in a canonical form."""
    tokens: int
    wire: Wire

    @property
    def text(self) -> str:
        """What it says; empty where its content is not plain text."""
        content = self.wire.get("content")
        return content if isinstance(content, str) else ""

    @property
    def said(self) -> str:
        """All it says: its texts, and the arguments of its calls without JSON's escapes."""
        return _said(self.key)

    def shows(self, value: str) -> bool:
        """Whether a value stands in what it says with no letter, digit or underscore beside it.

        >>> piece = PromptPiece('{"role": "user", "content": "see /src/fields.py:1474"}', 9, {})
        >>> [piece.shows(value) for value in ("fields.py", "1474", "147")]
        [True, True, False]
        """
        said = self.said
        return value in said and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", said) is not None


@lru_cache(maxsize=4096)
def _said(key: str) -> str:
    wire = json.loads(key)
    message = Message.from_wire(wire)
    return "\n".join((message.text, *(result.text for result in message.tool_results), *arguments_of(wire)))


def arguments_of(wire: Wire) -> Iterator[str]:
    """The arguments of a message's tool calls, each string by itself; as written where they are no JSON."""
    for call in Message.from_wire(wire).tool_calls:
        try:
            yield from _leaves(json.loads(call.arguments))
        except (ValueError, RecursionError):
            yield call.arguments


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    else:
        yield str(value)


class Sizer:
    """Makes pieces of messages; counts each message once."""

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self._known: dict[str, PromptPiece] = {}

    def pieces(self, messages: Sequence[Wire]) -> tuple[PromptPiece, ...]:
        return tuple(map(self.piece, messages))

    def piece(self, message: Wire) -> PromptPiece:
        key = json.dumps(message, ensure_ascii=False)
        found = self._known.get(key)
        if found is None:
            tokens = self.counter.message(Message.from_wire(message))
            found = self._known[key] = PromptPiece(key, tokens, message)
        return found

    def shared_tokens(self, before: Sequence[PromptPiece], now: Sequence[PromptPiece]) -> int:
        """Tokens at the beginning of `now` that stand at the beginning of `before` as well."""
        tokens = 0
        for old, new in zip(before, now, strict=False):
            if old is not new and old.key != new.key:
                return tokens + self.overlap_tokens(old, new)
            tokens += new.tokens
        return tokens

    def overlap_tokens(self, old: PromptPiece, new: PromptPiece) -> int:
        """Tokens of the text with which two different messages of one role begin."""
        if old.wire.get("role") != new.wire.get("role"):
            return 0
        common = common_beginning(old.text, new.text)
        return self.counter.text(common) if common else 0


class PricedPrompt(NamedTuple):
    """What one model call is sent."""

    pieces: Sequence[PromptPiece]
    rewritten: bool = False
    """Whether history was compacted, masked or dropped for this call."""
    reachable: frozenset[int] = frozenset()
    """1-based places in the history of messages that a reference in this prompt leads to."""


@dataclass(slots=True, kw_only=True)
class Bill:
    """Calls added up."""

    calls: int = 0
    tokens: int = 0
    priced: float = 0.0
    cached_tokens: int = 0
    rewrites: int = 0
    breaks: int = 0
    """Calls that do not begin with all that the call before was sent."""
    over_budget: int = 0
    invalid: int = 0
    runs: int = 0
    task_shown: int = 0
    """Runs that show their task word for word at every call."""
    task_reachable: int = 0
    """The same, or a reference leads to it."""
    values_used: int = 0
    """Found values (`agent_runs`) that replies used, counted at each call."""
    values_shown: int = 0
    """Those that stood word for word in the prompt of the call that used them."""

    def add(self, other: Bill) -> None:
        """Count another bill's calls as well."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(slots=True, kw_only=True)
class PromptJudge:
    """Reads a run's prompts in order and writes its bill."""

    sizer: Sizer
    prices: Prices
    budget_tokens: int
    """For all messages but the system's."""
    task: str
    """The first user message's text."""
    tools_tokens: int = 0
    task_ordinal: int = 1
    found_values: Sequence[frozenset[str]] = ()
    """By call: what its reply used."""
    bill: Bill = field(default_factory=lambda: Bill(runs=1, task_shown=1, task_reachable=1))
    _before: Sequence[PromptPiece] = ()

    def read(self, prompt: PricedPrompt) -> None:
        """Count one call."""
        bill, pieces = self.bill, prompt.pieces
        total = self.tools_tokens + sum(piece.tokens for piece in pieces)
        shared = self.sizer.shared_tokens(self._before, pieces)
        shared += self.tools_tokens if self._before else 0
        bill.priced += self.prices.of(total, shared)
        bill.cached_tokens += shared if self.prices.served(shared) else 0
        bill.tokens += total
        used = self.found_values[bill.calls] if bill.calls < len(self.found_values) else ()
        bill.values_used += len(used)
        bill.values_shown += sum(any(piece.shows(value) for piece in pieces) for value in used)
        bill.calls += 1
        bill.rewrites += prompt.rewritten
        bill.breaks += [piece.key for piece in pieces[: len(self._before)]] != [piece.key for piece in self._before]
        bill.over_budget += history_tokens(pieces) > self.budget_tokens
        bill.invalid += refused([piece.wire for piece in pieces])
        shown = any(self.task in piece.text for piece in pieces)
        bill.task_shown &= shown
        bill.task_reachable &= shown or self.task_ordinal in prompt.reachable
        self._before = pieces


def refused(messages: Sequence[Wire]) -> bool:
    """Whether a provider would refuse these messages."""
    return bool(call_faults({"messages": list(messages)}))


def history_tokens(pieces: Sequence[PromptPiece]) -> int:
    """Tokens of a prompt without its leading system messages."""
    leading = next((i for i, piece in enumerate(pieces) if piece.wire.get("role") != "system"), len(pieces))
    return sum(piece.tokens for piece in pieces[leading:])
