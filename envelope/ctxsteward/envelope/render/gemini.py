"""Gemini: ``{"contents": […], "config": {…}}``. Source: the published API reference of ``generate_content``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ctxsteward.schemas import ImagePart, Part, TextPart, Wire

from ..layout.composition import PromptLayout
from ..layout.fragments import DerivedText, Fragment, MessageStep, ToolResult, ToolResults
from .anthropic import arguments_object
from .tools import as_gemini_tool, is_gemini_tool, translated
from .units import JOINT, OPERATOR_ROLES, SNAKE, Channel, ProviderFormat, Unit, canonical, head_units, listed, unit_of

NAME = "gemini"


def render(prompt: PromptLayout, cache: bool) -> Wire:
    """Arguments of ``client.models.generate_content`` but for the model; neighbours of one role are one content."""
    head = [fragment.text for fragment in prompt.head.fragments]
    contents: list[Wire] = []
    for wire in prompt.dynamic.messages(NAME, _contents):
        if contents and contents[-1]["role"] == wire["role"]:
            contents[-1]["parts"] = [*contents[-1]["parts"], *wire["parts"]]
        else:
            contents.append(wire)
    config: Wire = {}
    if head:
        config["system_instruction"] = "\n\n".join(head)
    if prompt.head.tools:
        own = [tool for tool in prompt.head.tools if is_gemini_tool(tool)]
        functions = translated([tool for tool in prompt.head.tools if tool not in own], as_gemini_tool)
        config["tools"] = [*([{"function_declarations": functions}] if functions else []), *own]
    return {"contents": contents, "config": config}


def _contents(fragment: Fragment) -> list[Wire]:
    contents: list[Wire] = []
    for step in fragment.steps:
        match step:
            case DerivedText(text=text):
                contents.append({"role": "user", "parts": [{"text": text}]})
            case MessageStep():
                contents += _say(step)
            case ToolResults(answers=answers, trailing=trailing):
                contents.append({"role": "user", "parts": [part for answer in answers for part in _answer(answer)]})
                for rest in trailing:
                    if isinstance(rest, DerivedText):
                        contents.append({"role": "user", "parts": [{"text": rest.text}]})
                    else:
                        contents += _say(rest)
    return contents


def _say(step: MessageStep) -> list[Wire]:
    message = step.entry.message
    aliases, shortened = dict(step.aliases), dict(step.arguments)
    parts = [shown for part in message.parts if (shown := _part(part)) is not None]
    for index, call in enumerate(message.tool_calls):
        arguments = arguments_object(shortened.get(index, call.arguments))
        parts.append({"function_call": {"id": aliases.get(index, call.id), "name": call.name, "args": arguments}})
    role = "model" if message.role == "assistant" else "user"
    return [{"role": role, "parts": parts}] if parts else []


def _answer(answer: ToolResult) -> list[Wire]:
    key = "error" if answer.is_error else "output"
    response = {"id": answer.call_id, "name": answer.name or "tool", "response": {key: answer.text}}
    images = [shown for image in answer.images if (shown := _part(image)) is not None]
    return [{"function_response": response}, *images]


def _part(part: Part) -> Wire | None:
    if isinstance(part, TextPart):
        return {"text": part.text}
    if isinstance(part, ImagePart) and part.data is not None:
        return {"inline_data": {"mime_type": part.media_type or "image/png", "data": part.data}}
    if isinstance(part, ImagePart) and part.url is not None:
        return {"file_data": {"file_uri": part.url, "mime_type": part.media_type or "image/png"}}
    return None


# -- read back ---------------------------------------------------------------------------------------------------


def parse(context: Wire, heads: Iterable[str], nonce: str) -> Iterator[Unit]:
    """The units of a request."""
    yield from head_units(_head_text(context.get("system_instruction")), "system_instruction", heads)
    yield from _units(listed(context.get("contents"), "contents"))


def _head_text(value: object) -> object:
    """A system instruction: a text, ``{"parts": […]}`` or a list of either, as one text."""
    if isinstance(value, dict) and set(value) <= {"parts", "role"}:
        return _head_text(value.get("parts"))
    if isinstance(value, dict) and set(value) == {"text"}:
        return value["text"]
    if isinstance(value, list):
        texts = [_head_text(one) for one in value]
        if all(isinstance(text, str) for text in texts):
            return JOINT.join(text for text in texts if isinstance(text, str))
    return value


def _units(contents: Iterable[Any]) -> Iterator[Unit]:
    for index, content in enumerate(contents):
        path = f"contents[{index}]"
        if isinstance(content, dict) and isinstance(content.get("content"), str) and "parts" not in content:
            content = {"role": content.get("role"), "parts": [{"text": content["content"]}]}
        if not isinstance(content, dict) or not isinstance(content.get("parts"), list):
            yield Unit("dynamic", "no content", canonical(content), path)
            continue
        frame = {"role": "user", **{key: value for key, value in content.items() if key != "parts"}}
        channel: Channel = "head" if frame["role"] in OPERATOR_ROLES else "dynamic"
        for number, part in enumerate(content["parts"]):
            snake = {SNAKE.get(k, k): v for k, v in part.items()} if isinstance(part, dict) else part
            yield unit_of(snake, f"{path}.parts[{number}]", channel, frame, opens=number == 0)


def _any_tool(tool: Wire) -> Wire | None:
    return tool if is_gemini_tool(tool) else as_gemini_tool(tool)


FORMAT = ProviderFormat(
    render=render, parse=parse, message_units=_units, arguments=("contents", "system_instruction", "tools"),
    as_tool=_any_tool,
)  # fmt: skip
