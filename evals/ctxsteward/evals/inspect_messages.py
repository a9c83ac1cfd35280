"""Convert chat messages between Inspect and OpenAI's wire form.

Needs the extra `inspect`. Parts other than text are replaced by their type.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
)
from inspect_ai.tool import ToolCall

from ctxsteward.schemas.message import Wire


def wire_of(message: ChatMessage) -> Wire:
    """Convert Inspect's message to OpenAI chat."""
    if isinstance(message, ChatMessageTool):
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text}
    wire: Wire = {"role": message.role, "content": message.text}
    if isinstance(message, ChatMessageAssistant) and message.tool_calls:
        wire["content"] = message.text or None
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in message.tool_calls
        ]
    return wire


def messages_of(wires: Sequence[Wire]) -> list[ChatMessage]:
    """Convert OpenAI chat messages to Inspect's."""
    return [_message(wire) for wire in wires]


def _message(wire: Wire) -> ChatMessage:
    text = _text(wire.get("content"))
    match wire["role"]:
        case "system" | "developer":
            return ChatMessageSystem(content=text)
        case "user":
            return ChatMessageUser(content=text)
        case "tool":
            return ChatMessageTool(content=text, tool_call_id=wire["tool_call_id"])
        case _:
            calls = [_call(call) for call in wire.get("tool_calls") or ()]
            return ChatMessageAssistant(content=text, tool_calls=calls or None)


def _call(call: Wire) -> ToolCall:
    function = call["function"]
    kind: Literal["function"] = "function"
    try:
        arguments = json.loads(function["arguments"] or "{}")
        error = None if isinstance(arguments, dict) else "the arguments are no object"
    except ValueError as problem:
        arguments, error = {}, str(problem)
    return ToolCall(
        id=call["id"],
        function=function["name"],
        arguments=arguments if error is None else {},
        parse_error=error,
        type=kind,
    )


def _text(content: object) -> str:
    """Return the text of a message; other parts are replaced by their type."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(block["text"] if block.get("type") == "text" else f"[{block.get('type')}]" for block in blocks)
