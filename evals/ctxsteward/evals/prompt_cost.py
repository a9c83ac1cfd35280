"""Price prompts and check provider validity: the judge of the cost eval, the peers and the suites.

A prompt is a sequence of `PromptPiece`: one message as OpenAI chat takes it, and its tokens. Providers cache prefixes:
the beginning that a prompt shares with the prompt of the call before is read at `Prices.cached`, the rest is written at
`Prices.write`, both relative to a plain prompt token at 1. A prefix shorter than the provider's block is not cached,
and a prompt shorter than it is not written. Tool schemas come first in every prompt. The cache has only the previous
call, which never expires, since agents call within minutes. Source: the published price lists of OpenAI and Anthropic.

Provider validity is whether a rendered request would be accepted, by the providers' published rules. OpenAI chat: every
tool call is answered exactly once, by tool messages right after the assistant message; nothing else answers a call; an
assistant message says or calls something. Anthropic messages: the first message is the user's; every tool_use is
answered in the very next user message, whose tool_result blocks come first; ids are unique and well formed; no text
block is blank; at most four cache marks, none on a thinking block. Source: both published API references. A check
returns what is wrong, in words; an empty list is valid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from ctxsteward.envelope import Counter, Prices as Prices
from ctxsteward.envelope.telemetry.spans import common_beginning
from ctxsteward.schemas import Message
from ctxsteward.schemas.message import Wire

_ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")
MAX_MARKS = 4


def openai_faults(request: Wire) -> list[str]:
    """Return the faults for which OpenAI's chat endpoint would refuse a request."""
    return list(_openai(request["messages"]))


def call_faults(request: Wire) -> list[str]:
    """Return the OpenAI faults of a whole call, which needs a message besides the system's."""
    silent = all(message.get("role") in ("system", "developer") for message in request["messages"])
    return [*openai_faults(request), *(["no message but the system's"] if silent else [])]


def anthropic_faults(request: Wire) -> list[str]:
    """Return the faults for which Anthropic's messages endpoint would refuse a request."""
    return [*_anthropic(request["messages"]), *_marks(request)]


def _openai(messages: Sequence[Wire]) -> Iterator[str]:
    waiting: set[str] = set()
    used: set[str] = set()
    for index, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            call = message.get("tool_call_id")
            if call not in waiting:
                yield f"messages[{index}]: a tool message answers {call!r}, which is not open"
            waiting.discard(str(call))
            if not isinstance(message.get("content"), (str, list)):
                yield f"messages[{index}]: a tool message without content"
            continue
        if waiting:
            yield f"messages[{index}]: {len(waiting)} tool calls are not answered before a {role} message"
            waiting = set()
        if role == "assistant":
            calls = message.get("tool_calls") or []
            if not calls and not message.get("content"):
                yield f"messages[{index}]: an assistant message says and calls nothing"
            for call in calls:
                if not call.get("id") or call["id"] in used:
                    yield f"messages[{index}]: tool call id {call.get('id')!r} is missing or used twice"
                used.add(call["id"])
                waiting.add(call["id"])
                if not isinstance(call.get("function", {}).get("arguments", ""), str):
                    yield f"messages[{index}]: arguments are not text"
        elif role not in ("system", "developer", "user"):
            yield f"messages[{index}]: role {role!r}"
        elif message.get("content") is None:
            yield f"messages[{index}]: a {role} message without content"
    if waiting:
        yield f"{len(waiting)} tool calls at the end are not answered"


def _anthropic(messages: Sequence[Wire]) -> Iterator[str]:
    if not messages or messages[0].get("role") != "user":
        yield "the first message is not the user's"
    waiting: set[str] = set()
    used: set[str] = set()
    for index, message in enumerate(messages):
        blocks = _blocks(message)
        if not blocks:
            yield f"messages[{index}]: no content"
        for block in blocks:
            if block.get("type") == "text" and not str(block.get("text", "")).strip():
                yield f"messages[{index}]: a blank text block"
        if message.get("role") == "user":
            yield from _answers(index, blocks, waiting)
        elif message.get("role") == "assistant":
            if waiting:
                yield f"messages[{index}]: {len(waiting)} tool_use blocks are not answered"
            for block in blocks:
                if block.get("type") == "tool_use":
                    yield from _tool_use(index, block, used)
        else:
            yield f"messages[{index}]: role {message.get('role')!r}"
        waiting = {str(b.get("id")) for b in blocks if b.get("type") == "tool_use"}
    if waiting:
        yield f"{len(waiting)} tool_use blocks at the end are not answered"


def _answers(index: int, blocks: Sequence[Wire], waiting: set[str]) -> Iterator[str]:
    left = set(waiting)
    seen_other = False
    for block in blocks:
        if block.get("type") != "tool_result":
            seen_other = True
            continue
        if seen_other:
            yield f"messages[{index}]: a tool_result block after another block"
        if block.get("tool_use_id") not in left:
            yield f"messages[{index}]: a tool_result for {block.get('tool_use_id')!r}, which is not open"
        left.discard(str(block.get("tool_use_id")))
    if left:
        yield f"messages[{index}]: {len(left)} tool_use blocks are not answered"


def _tool_use(index: int, block: Wire, used: set[str]) -> Iterator[str]:
    id = str(block.get("id"))
    if not _ANTHROPIC_ID.fullmatch(id) or id in used:
        yield f"messages[{index}]: tool_use id {id!r} is unusable or used twice"
    used.add(id)
    if not isinstance(block.get("input"), dict):
        yield f"messages[{index}]: tool_use input is not an object"


def _marks(request: Wire) -> Iterator[str]:
    blocks = [block for message in request["messages"] for block in _blocks(message)]
    marked = [
        block for block in (*request.get("system", ()), *request.get("tools", ()), *blocks) if "cache_control" in block
    ]
    if len(marked) > MAX_MARKS:
        yield f"{len(marked)} cache marks"
    if any(block.get("type") in ("thinking", "redacted_thinking") for block in marked):
        yield "a cache mark on a thinking block"


def _blocks(message: Wire) -> list[Wire]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content or ())


def without_marks(messages: Sequence[Wire]) -> list[str]:
    """Return messages as JSON without cache marks, one text each, to compare prefixes."""
    return [json.dumps(_unmarked(message), ensure_ascii=False) for message in messages]


def _unmarked(message: Wire) -> Wire:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": [{k: v for k, v in b.items() if k != "cache_control"} for b in content]}


class PromptPiece(NamedTuple):
    """A message of a prompt."""

    key: str
    """The message as JSON; two messages are equal if their keys are."""
    tokens: int
    wire: Wire

    @property
    def text(self) -> str:
        """Return the content, or empty if it is not plain text."""
        content = self.wire.get("content")
        return content if isinstance(content, str) else ""

    @property
    def said(self) -> str:
        """Return the message's texts, and the arguments of its calls without JSON's escapes."""
        return _said(self.key)

    def shows(self, value: str) -> bool:
        """Return whether a value stands in `said` without a letter, digit or underscore beside it.

        >>> piece = PromptPiece('{"role": "user", "content": "see /src/fields.py:1474"}', 9, {})
        >>> [piece.shows(value) for value in ("fields.py", "1474", "147")]
        [True, True, False]
        """
        text = self.said
        return value in text and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) is not None


@lru_cache(maxsize=4096)
def _said(key: str) -> str:
    wire = json.loads(key)
    message = Message.from_wire(wire)
    return "\n".join((message.text, *(result.text for result in message.tool_results), *arguments_of(wire)))


def arguments_of(wire: Wire) -> Iterator[str]:
    """Yield each value in the arguments of a message's tool calls as text; arguments that are not JSON as one text."""
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
    """Convert messages to pieces; count each message once."""

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self._known: dict[str, PromptPiece] = {}

    def pieces(self, messages: Sequence[Wire]) -> tuple[PromptPiece, ...]:
        return tuple(map(self.piece, messages))

    def piece(self, message: Wire) -> PromptPiece:
        key = json.dumps(message, ensure_ascii=False)
        piece = self._known.get(key)
        if piece is None:
            tokens = self.counter.message(Message.from_wire(message))
            piece = self._known[key] = PromptPiece(key, tokens, message)
        return piece

    def shared_tokens(self, before: Sequence[PromptPiece], now: Sequence[PromptPiece]) -> int:
        """Count the tokens of the common beginning of `before` and `now`."""
        tokens = 0
        for old, new in zip(before, now, strict=False):
            if old is not new and old.key != new.key:
                return tokens + self.overlap_tokens(old, new)
            tokens += new.tokens
        return tokens

    def overlap_tokens(self, old: PromptPiece, new: PromptPiece) -> int:
        """Count the tokens of the common beginning of two different messages of one role."""
        if old.wire.get("role") != new.wire.get("role"):
            return 0
        common = common_beginning(old.text, new.text)
        return self.counter.text(common) if common else 0


class PricedPrompt(NamedTuple):
    """The prompt of one model call."""

    pieces: Sequence[PromptPiece]
    rewritten: bool = False
    """Whether history was compacted, masked or dropped for this call."""
    reachable: frozenset[int] = frozenset()
    """1-based places in the history of messages that a reference in this prompt names."""


@dataclass(slots=True, kw_only=True)
class Bill:
    """Sum over calls."""

    calls: int = 0
    tokens: int = 0
    priced: float = 0.0
    cached_tokens: int = 0
    rewrites: int = 0
    over_budget: int = 0
    invalid: int = 0
    runs: int = 0
    task_shown: int = 0
    """Runs that show their task word for word at every call."""
    task_reachable: int = 0
    """Runs that show their task or name it by a reference at every call."""
    values_used: int = 0
    """Found values (`replay.AgentRun`) that replies used, counted at each call."""
    values_shown: int = 0
    """Used values that stood word for word in the prompt of their call."""
    values_unseen: tuple[str, ...] = ()
    """Used values that the prompt of their call did not show, in the order of their use."""

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
    """Budget for all messages but the system's."""
    task: str
    """The first user message's text."""
    tools_tokens: int = 0
    task_ordinal: int = 1
    found_values: Sequence[frozenset[str]] = ()
    """For each call, the values that its reply used."""
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
        unseen = tuple(value for value in sorted(used) if not any(piece.shows(value) for piece in pieces))
        bill.values_used += len(used)
        bill.values_shown += len(used) - len(unseen)
        bill.values_unseen += unseen
        bill.calls += 1
        bill.rewrites += prompt.rewritten
        bill.over_budget += history_tokens(pieces) > self.budget_tokens
        bill.invalid += refused([piece.wire for piece in pieces])
        shown = any(self.task in piece.text for piece in pieces)
        bill.task_shown &= shown
        bill.task_reachable &= shown or self.task_ordinal in prompt.reachable
        self._before = pieces


def refused(messages: Sequence[Wire]) -> bool:
    """Return whether a provider would refuse these messages."""
    return bool(call_faults({"messages": list(messages)}))


def history_tokens(pieces: Sequence[PromptPiece]) -> int:
    """Count the tokens of a prompt without its leading system messages."""
    leading = next((i for i, piece in enumerate(pieces) if piece.wire.get("role") != "system"), len(pieces))
    return sum(piece.tokens for piece in pieces[leading:])
