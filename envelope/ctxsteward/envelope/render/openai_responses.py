"""OpenAI responses: ``{"instructions": …, "input": [items], "tools": […]}``. Source: the published API reference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ctxsteward.schemas import ImagePart, Part, TextPart, Wire

from ..layout.composition import PromptLayout
from ..layout.fragments import DerivedText, Fragment, MessageStep, ToolResult, ToolResults
from .openai_chat import image_url
from .tools import as_responses_tool, translated
from .units import ProviderFormat, Unit, head_units, listed, message_units

NAME = "openai-responses"


def render(prompt: PromptLayout, cache: bool) -> Wire:
    """Arguments of ``client.responses.create`` but for the model."""
    head = [fragment.text for fragment in prompt.head.fragments]
    request: Wire = {"input": prompt.dynamic.messages(NAME, _items)}
    if head:
        request["instructions"] = "\n\n".join(head)
    if prompt.head.tools:
        request["tools"] = translated(prompt.head.tools, as_responses_tool)
    return request


def _items(fragment: Fragment) -> list[Wire]:
    items: list[Wire] = []
    for step in fragment.steps:
        match step:
            case DerivedText(text=text):
                items.append(_text("user", text))
            case MessageStep():
                items += _say(step)
            case ToolResults(answers=answers, trailing=trailing):
                for answer in answers:
                    items += _answer(answer)
                for rest in trailing:
                    items += [_text("user", rest.text)] if isinstance(rest, DerivedText) else _say(rest)
    return items


def _say(step: MessageStep) -> list[Wire]:
    message = step.entry.message
    aliases, shortened = dict(step.aliases), dict(step.arguments)
    blocks = _blocks(message.parts, message.role)
    items: list[Wire] = [{"role": message.role, "content": blocks}] if blocks else []
    for index, call in enumerate(message.tool_calls):
        items.append(
            {
                "type": "function_call",
                "call_id": aliases.get(index, call.id),
                "name": call.name,
                "arguments": shortened.get(index, call.arguments or "{}"),
            }
        )
    return items


def _answer(answer: ToolResult) -> list[Wire]:
    items: list[Wire] = [{"type": "function_call_output", "call_id": answer.call_id, "output": answer.text}]
    images = _blocks(answer.images, "user")
    return [*items, {"role": "user", "content": images}] if images else items


def _text(role: str, text: str) -> Wire:
    return {"role": role, "content": [{"type": "input_text", "text": text}]}


def _blocks(parts: Sequence[Part], role: str) -> list[Wire]:
    blocks: list[Wire] = []
    for part in parts:
        if isinstance(part, TextPart):
            blocks.append({"type": "output_text" if role == "assistant" else "input_text", "text": part.text})
        elif isinstance(part, ImagePart) and (url := image_url(part)) is not None:
            blocks.append({"type": "input_image", "image_url": url, "detail": part.detail or "auto"})
    return blocks


# -- read back ---------------------------------------------------------------------------------------------------


def _units(wires: Iterable[Any]) -> Iterator[Unit]:
    return message_units(wires, "input")


def parse(context: Wire, heads: Iterable[str], nonce: str) -> Iterator[Unit]:
    """The units of a request."""
    yield from head_units(context.get("instructions"), "instructions", heads)
    yield from _units(listed(context.get("input"), "input"))


FORMAT = ProviderFormat(
    render=render, parse=parse, message_units=_units, arguments=("instructions", "input", "tools"),
    as_tool=as_responses_tool,
)  # fmt: skip
