"""Provider validity: whether a rendered request would be accepted, judged by the providers' published rules.

OpenAI chat: every tool call is answered exactly once, by tool messages right after the assistant message; nothing else
answers a call; an assistant message says or calls something. Anthropic messages: the first message is the user's; every
tool_use is answered in the very next user message, whose tool_result blocks come first; ids are unique and well formed;
no text block is blank; at most four cache marks, none on a thinking block. Source: both published API references.
A check returns what is wrong, in words; an empty list is valid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from ctxsteward.schemas import Wire

_ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")
MAX_MARKS = 4


def openai_faults(request: Wire) -> list[str]:
    """What OpenAI's chat endpoint would refuse."""
    return list(_openai(request["messages"]))


def call_faults(request: Wire) -> list[str]:
    """The same of a whole call, in which somebody must speak; a part of one may be empty."""
    silent = all(message.get("role") in ("system", "developer") for message in request["messages"])
    return [*openai_faults(request), *(["no message but the system's"] if silent else [])]


def anthropic_faults(request: Wire) -> list[str]:
    """What Anthropic's messages endpoint would refuse."""
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
    """Messages as JSON, one text each, cache marks left out: what a prefix is compared by."""
    return [json.dumps(_unmarked(message), ensure_ascii=False) for message in messages]


def _unmarked(message: Wire) -> Wire:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": [{k: v for k, v in b.items() if k != "cache_control"} for b in content]}
