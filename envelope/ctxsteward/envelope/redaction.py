"""Redaction: a message without what it said, for a log whose order and tool pairs must stay.

What stays: role, block types, ids of tool calls and results, names of tools, `is_error`, the number of blocks. Those
keep pairs together and the history valid for every provider. What goes: every text, argument, image, file, reasoning,
a participant's `name`, and every field that is not named here. An image or a block of another kind becomes a text
block; reasoning goes whole, because a provider refuses it when it was changed.

>>> redacted({"role": "user", "name": "Ann", "content": "my number is 555"})
{'role': 'user', 'content': '[erased]'}

Works on OpenAI chat and Anthropic dicts; the result is a valid message, and redacting it again changes nothing.
Source: the providers' published API references; `schemas.message` for what is read of them.
"""

from __future__ import annotations

from typing import Any

from ctxsteward.schemas import Wire

ERASED_TEXT = "[erased]"
"""Stands where a text was."""

NO_ARGUMENTS = "{}"

_TEXT_FIELDS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
_THINKING = ("thinking", "redacted_thinking")


def redacted(wire: Wire) -> Wire:
    """The same skeleton, saying nothing; a new dict."""
    role = wire["role"]
    made: Wire = {"role": role}
    if role == "tool":
        _keep_text(wire, made, "tool_call_id", "name")
    content = wire.get("content")
    if content is None and isinstance(wire.get("refusal"), str):
        made["content"] = _gone(wire["refusal"])
    elif "content" in wire:
        made["content"] = _content(content)
    if isinstance(wire.get("tool_calls"), list):
        made["tool_calls"] = [_call(call) for call in wire["tool_calls"]]
    return made


def _content(content: object) -> object:
    if isinstance(content, str):
        return _gone(content)
    if not isinstance(content, list):
        return None
    blocks = (_block(block) for block in content)
    return [block for block in blocks if block is not None]


def _block(block: object) -> object:
    """What is left of a content block; None for reasoning."""
    if isinstance(block, str):
        return _gone(block)
    kind = block.get("type") if isinstance(block, dict) else None
    if kind in _THINKING:
        return None
    if kind == "tool_use":
        return _tool_use(block)
    if kind == "tool_result":
        return _tool_result(block)
    field = _TEXT_FIELDS.get(str(kind))
    if field is None:
        return {"type": "text", "text": ERASED_TEXT}
    return {"type": kind, field: _gone(str(_of(block, field)))}


def _tool_use(block: object) -> Wire:
    made: Wire = {"type": "tool_use"}
    _keep_text(block, made, "id", "name")
    made["input"] = {}
    return made


def _tool_result(block: object) -> Wire:
    made: Wire = {"type": "tool_result"}
    _keep_text(block, made, "tool_use_id")
    content = _of(block, "content")
    if content is not None:
        made["content"] = _content(content)
    if isinstance(_of(block, "is_error"), bool):
        made["is_error"] = _of(block, "is_error")
    return made


def _call(call: object) -> Wire:
    """An OpenAI tool call, `function` or `custom`."""
    made: Wire = {}
    _keep_text(call, made, "id")
    function, custom = _of(call, "function"), _of(call, "custom")
    inner: Wire = {}
    if function is None and isinstance(custom, dict):
        _keep_text(custom, inner, "name")
        return made | {"type": "custom", "custom": inner | {"input": ""}}
    _keep_text(function, inner, "name")
    return made | {"type": "function", "function": inner | {"arguments": NO_ARGUMENTS}}


def _gone(text: str) -> str:
    """A text's stand-in; a blank one says nothing and stays blank, so that it is read as before."""
    return ERASED_TEXT if text.strip() else text[:1]


def _keep_text(source: object, made: Wire, *fields: str) -> None:
    for field in fields:
        value = _of(source, field)
        if isinstance(value, str):
            made[field] = value


def _of(value: Any, field: str) -> Any:
    return value.get(field) if isinstance(value, dict) else None
