"""OpenAI chat completions: ``{"messages": […], "tools": […]}``. Source: the published API reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ctxsteward.schemas import ImagePart, Message, Part, TextPart, Wire

from ..fragments import Fragment
from ..steps import Answer, Aside, Results, Say
from .tools import as_openai_tool

if TYPE_CHECKING:
    from ..envelope import Envelope

NAME = "openai-chat"


def render(envelope: Envelope, cache: bool) -> Wire:
    """Arguments of ``client.chat.completions.create``."""
    messages: list[Wire] = []
    for name in ("system", "static", "meta"):
        for fragment in envelope.head.section(name):
            messages.append({"role": "system", "content": fragment.text})
    messages += envelope.dynamic.messages(NAME, wires_of)
    request: Wire = {"messages": messages}
    if envelope.head.tools:
        request["tools"] = [as_openai_tool(tool) for tool in envelope.head.tools]
    return request


def wires_of(fragment: Fragment) -> list[Wire]:
    """The messages of a fragment."""
    wires: list[Wire] = []
    for step in fragment.steps:
        match step:
            case Aside(text=text):
                wires.append({"role": "user", "content": text})
            case Say():
                wires += say(step)
            case Results(answers=answers, trailing=trailing):
                wires += [answer_wire(answer) for answer in answers]
                for rest in trailing:
                    wires += [{"role": "user", "content": rest.text}] if isinstance(rest, Aside) else say(rest)
    return wires


def say(step: Say) -> list[Wire]:
    """A message in its own role; nothing where this provider could show nothing of it."""
    message = step.entry.message
    if message.dialect != "anthropic" and not step.without_results:
        return [_own(message, step)] if _sendable(message.wire) else []
    parts = [part for part in message.parts if isinstance(part, (TextPart, ImagePart))]
    wire: Wire = {"role": message.role, "content": _content(parts)}
    if message.tool_calls:
        aliases = dict(step.aliases)
        wire["tool_calls"] = [
            {
                "id": aliases.get(index, call.id),
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments or "{}"},
            }
            for index, call in enumerate(message.tool_calls)
        ]
        wire["content"] = wire["content"] or None
    elif not wire["content"]:
        return []
    return [wire]


def _own(message: Message, step: Say) -> Wire:
    if not step.aliases:
        return message.wire
    aliases = dict(step.aliases)
    calls = [
        {**call, "id": aliases[index]} if index in aliases else call
        for index, call in enumerate(message.wire["tool_calls"])
    ]
    return {**message.wire, "tool_calls": calls}


def _sendable(wire: Wire) -> bool:
    return bool(wire.get("content")) or bool(wire.get("tool_calls")) or wire["role"] == "user"


def answer_wire(answer: Answer) -> Wire:
    """A tool message; the original's own dict where nothing about it changed."""
    if answer.entry is not None and answer.entry.message.dialect == "openai":
        if answer.verbatim:
            return answer.entry.message.wire
        return {**answer.entry.message.wire, "tool_call_id": answer.call_id, "content": answer.text}
    return {"role": "tool", "tool_call_id": answer.call_id, "content": answer.text}


def _content(parts: Sequence[Part]) -> Any:
    if all(isinstance(part, TextPart) for part in parts):
        return "\n".join(part.text for part in parts if isinstance(part, TextPart))
    return [_block(part) for part in parts]


def _block(part: Part) -> Wire:
    if isinstance(part, ImagePart):
        return {"type": "image_url", "image_url": {"url": image_url(part)}}
    assert isinstance(part, TextPart)
    return {"type": "text", "text": part.text}


def image_url(part: ImagePart) -> str:
    """The image's own URL, or its data as one."""
    if part.url is not None:
        return part.url
    return f"data:{part.media_type or 'image/png'};base64,{part.data or ''}"
