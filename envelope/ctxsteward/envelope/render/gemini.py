"""Gemini: ``{"contents": […], "config": {…}}``. Source: the published API reference of ``generate_content``."""

from __future__ import annotations

from ctxsteward.schemas import ImagePart, Part, TextPart, Wire

from ..layout.composition import PromptLayout
from ..layout.fragments import Fragment
from ..layout.group_steps import DerivedText, MessageStep, ToolResult, ToolResults
from .anthropic import arguments_object
from .tools import as_gemini_tool, is_gemini_tool, translated

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
