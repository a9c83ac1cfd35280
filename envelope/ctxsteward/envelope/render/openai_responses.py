"""OpenAI responses: ``{"instructions": …, "input": [items], "tools": […]}``. Source: the published API reference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ctxsteward.schemas import ImagePart, Part, TextPart, Wire

from ..layout import Fragment, MessageStep, PromptLayout, ToolResult
from .openai_chat import image_url
from .tools import as_responses_tool, translated
from .units import ProviderFormat, Unit, head_units, listed, message_units, wires_of_steps

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
    return wires_of_steps(fragment, _text, _say, _results)


def _say(step: MessageStep) -> list[Wire]:
    message = step.entry.message
    blocks = _blocks(message.parts, message.role)
    items: list[Wire] = [{"role": message.role, "content": blocks}] if blocks else []
    items += [
        {"type": "function_call", "call_id": id, "name": name, "arguments": arguments or "{}"}
        for id, name, arguments in step.calls
    ]
    return items


def _results(answers: Sequence[ToolResult]) -> list[Wire]:
    items: list[Wire] = []
    for answer in answers:
        items.append({"type": "function_call_output", "call_id": answer.call_id, "output": answer.text})
        images = _blocks(answer.images, "user")
        items += [{"role": "user", "content": images}] if images else []
    return items


def _text(text: str) -> list[Wire]:
    return [{"role": "user", "content": [{"type": "input_text", "text": text}]}]


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
