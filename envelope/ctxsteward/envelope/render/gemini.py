"""Gemini: ``{"contents": […], "config": {…}}``. Source: the published API reference of ``generate_content``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any

from ctxsteward.schemas import ImagePart, Part, TextPart, ToolCallPart, ToolResultPart
from ctxsteward.schemas.message import Wire, gemini_field, sent

from ..layout.composition import PromptLayout
from ..layout.fragments import Fragment, MessageStep, ToolResult
from .anthropic import arguments_object
from .cache_plan import CachePlan
from .units import (
    JOINT,
    OPERATOR_ROLES,
    Channel,
    ProviderFormat,
    Unit,
    as_gemini_tool,
    canonical,
    head_units,
    is_gemini_tool,
    listed,
    snake_keys,
    translated,
    unit_of,
    wires_of_steps,
)

NAME = "gemini"


def render(prompt: PromptLayout, cache: CachePlan | None) -> Wire:
    """Return the arguments of ``client.models.generate_content`` except the model; joins neighbours of one role."""
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
    without_id = {
        alias
        for step in fragment.steps
        if isinstance(step, MessageStep) and step.entry.message.dialect == "gemini"
        for index, alias in step.aliases
        if not step.entry.message.tool_calls[index].id
    }
    return wires_of_steps(
        fragment,
        lambda text: [{"role": "user", "parts": [{"text": text}]}],
        lambda step: _say(step, without_id),
        lambda answers: _results(answers, without_id),
    )


def _say(step: MessageStep, without_id: Set[str]) -> list[Wire]:
    message = step.entry.message
    calls = iter(step.calls)
    if message.dialect == "gemini":
        parts = [
            _own_call(wire, *next(calls), without_id) if isinstance(part, ToolCallPart) else wire
            for part, wire in zip(message.parts, sent(message.wire)["parts"], strict=True)
            if not (step.without_results and isinstance(part, ToolResultPart))
        ]
    else:
        parts = [shown for part in message.parts if (shown := _part(part)) is not None]
        for id, name, arguments in calls:
            parts.append({"function_call": {"id": id, "name": name, "args": arguments_object(arguments)}})
    role = "model" if message.role == "assistant" else "user"
    return [{"role": role, "parts": parts}] if parts else []


def _own_call(part: Wire, id: str, name: str, arguments: str, without_id: Set[str]) -> Wire:
    """Return a call as it came, with its signature, and with its shown id and arguments."""
    field = gemini_field(part)
    call = field.value if id in without_id else _with_id(field.value, id)
    shown = arguments_object(arguments)
    call = call if shown == (call.get("args") or {}) else {**call, "args": shown}
    return part if call is field.value else {**part, field.key: call}


def _with_id(value: Wire, id: str) -> Wire:
    return value if value.get("id") == id else {"id": id, **{key: one for key, one in value.items() if key != "id"}}


def _results(answers: Sequence[ToolResult], without_id: Set[str]) -> list[Wire]:
    parts: list[Wire] = []
    for answer in answers:
        own = _own_result(answer, without_id)
        if own is not None:
            parts.append(own)
            continue
        result: Wire = {} if answer.call_id in without_id else {"id": answer.call_id}
        response = {"error" if answer.is_error else "output": answer.text}
        parts.append({"function_response": {**result, "name": answer.name or "tool", "response": response}})
        parts += [shown for image in answer.images if (shown := _part(image)) is not None]
    return [{"role": "user", "parts": parts}]


def _own_result(answer: ToolResult, without_id: Set[str]) -> Wire | None:
    """Return the original part of a result, or None if another provider wrote it or it is shown differently."""
    if answer.entry is None or answer.entry.message.dialect != "gemini":
        return None
    message = answer.entry.message
    result = message.tool_results[answer.index]
    if (answer.text, answer.images) != (result.text, result.images):
        return None
    places = [place for place, part in enumerate(message.parts) if isinstance(part, ToolResultPart)]
    part: Wire = sent(message.wire)["parts"][places[answer.index]]
    field = gemini_field(part)
    value = field.value if answer.call_id in without_id else _with_id(field.value, answer.call_id)
    return part if value is field.value else {**part, field.key: value}


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
    """Yield the units of a request."""
    yield from head_units(_head_text(context.get("system_instruction")), "system_instruction", heads)
    yield from _units(listed(context.get("contents"), "contents"))


def _head_text(value: object) -> object:
    """Return a system instruction, a text, ``{"parts": […]}`` or a list of either, as one text."""
    if isinstance(value, dict) and set(value) <= {"parts", "role"}:
        return _head_text(value.get("parts"))
    if isinstance(value, dict) and set(value) == {"text"}:
        return value["text"]
    if isinstance(value, list):
        texts = [_head_text(part) for part in value]
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
            snake = snake_keys(part) if isinstance(part, dict) else part
            yield unit_of(snake, f"{path}.parts[{number}]", channel, frame, opens=number == 0)


def _any_tool(tool: Wire) -> Wire | None:
    return tool if is_gemini_tool(tool) else as_gemini_tool(tool)


FORMAT = ProviderFormat(
    render=render,
    parse=parse,
    message_units=_units,
    arguments=("contents", "system_instruction", "tools"),
    as_tool=_any_tool,
    dialect="gemini",
)
