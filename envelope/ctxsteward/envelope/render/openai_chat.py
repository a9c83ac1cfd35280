"""OpenAI chat completions: ``{"messages": […], "tools": […]}``. Source: the published API reference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ctxsteward.schemas import ImagePart, Message, Part, TextPart
from ctxsteward.schemas.message import Wire, sent

from ..layout.composition import PromptLayout
from ..layout.fragments import Fragment, MessageStep, ToolResult
from .cache_plan import CachePlan
from .units import ProviderFormat, Unit, as_openai_tool, listed, message_units, one_reply, translated, wires_of_steps

NAME = "openai-chat"
MOST_BREAKPOINTS = 4


def render(prompt: PromptLayout, cache: CachePlan | None) -> Wire:
    """Return the arguments of ``client.chat.completions.create`` except the model."""
    messages: list[Wire] = [{"role": "system", "content": fragment.text} for fragment in prompt.head.fragments]
    head = len(messages)
    messages += prompt.dynamic.messages(NAME, wires_of)
    request: Wire = {"messages": messages}
    if cache is not None and cache.key:
        ends = (head, *(head + end for end in prompt.dynamic.repeated(NAME, wires_of)))
        request |= with_breakpoints("messages", messages, ends, cache, "text")
    if prompt.head.tools:
        request["tools"] = translated(prompt.head.tools, as_openai_tool)
    return request


def with_breakpoints(name: str, messages: Sequence[Wire], ends: Iterable[int], cache: CachePlan, kind: str) -> Wire:
    """Return the arguments `name` and the cache key; a breakpoint stands at or before the end of so many messages.

    `kind` is the type of a text block that may have one. The provider sets one itself at the end of the request, and
    writes four. Where no later call repeats that end, it is told not to: what it does not write costs less.
    """
    marked, ends = list(messages), sorted(ends)
    places = {next((n for n in range(end - 1, -1, -1) if _text_blocks(marked[n], kind)), None) for end in ends}
    is_explicit = ends[-1] < len(messages) and ends[-1] - 1 in places
    most = MOST_BREAKPOINTS if is_explicit else MOST_BREAKPOINTS - 1
    for place in sorted(place for place in places if place is not None)[-most:]:
        blocks = _text_blocks(marked[place], kind)
        blocks[-1] = {**blocks[-1], "prompt_cache_breakpoint": cache.breakpoint}
        marked[place] = {**marked[place], "content": blocks}
    request: Wire = {name: marked, "prompt_cache_key": cache.key}
    return request | {"prompt_cache_options": {"mode": "explicit"}} if is_explicit else request


def _text_blocks(message: Wire, kind: str) -> list[Wire]:
    """Return the blocks of a message if the last one is a text of this type; else none."""
    content = message.get("content")
    if isinstance(content, str):  # in Responses an assistant's text has another type
        is_text = content and (kind == "text" or message.get("role") != "assistant")
        return [{"type": kind, "text": content}] if is_text else []
    return list(content) if isinstance(content, list) and content and content[-1].get("type") == kind else []


def wires_of(fragment: Fragment) -> list[Wire]:
    """Return the messages of a fragment."""
    return one_reply(wires_of_steps(fragment, lambda text: [{"role": "user", "content": text}], say, _results))


def _results(answers: Sequence[ToolResult]) -> list[Wire]:
    wires = [answer_wire(answer) for answer in answers]
    images = [image for answer in answers for image in answer.images]
    if images:  # a tool message may have text only
        wires.append({"role": "user", "content": _content(images)})
    return wires


def say(step: MessageStep) -> list[Wire]:
    """Return a message in its own role, or nothing if this provider can show none of it."""
    message = step.entry.message
    own = message.dialect in ("openai", "shared") and not step.without_results
    wire = _own(message, step) if own else _typed(message, step)
    says = wire.get("content") or wire.get("tool_calls") or wire.get("refusal") or (own and message.role == "user")
    return [wire] if says else []


def _own(message: Message, step: MessageStep) -> Wire:
    """Return the provider's own dict without values that it would refuse."""
    wire = sent(message.wire)
    content = wire.get("content")
    mended: Wire = {}
    if isinstance(content, list) and any(isinstance(block, str) for block in content):
        mended["content"] = [{"type": "text", "text": b} if isinstance(b, str) else b for b in content]
    elif content == [] and message.role == "user":
        mended["content"] = ""
    calls = wire.get("tool_calls")
    if calls:
        named = _named_calls(message, calls, step)
        if named != calls:
            mended["tool_calls"] = named
        if content == []:
            mended["content"] = None
    elif "tool_calls" in wire:
        wire = {key: value for key, value in wire.items() if key != "tool_calls"}
    return {**wire, **mended} if mended else wire


def _named_calls(message: Message, calls: list[Wire], step: MessageStep) -> list[Wire]:
    named: list[Wire] = []
    aliases, shortened = dict(step.aliases), dict(step.arguments)
    for index, (call, part) in enumerate(zip(calls, message.tool_calls, strict=True)):
        mended: Wire = {}
        if index in aliases:
            mended["id"] = aliases[index]
        if "type" not in call:
            mended["type"] = "function"
        function = call.get("function")
        if isinstance(function, dict) and (index in shortened or not isinstance(function.get("arguments"), str)):
            mended["function"] = {**function, "arguments": shortened.get(index, part.arguments or "{}")}
        named.append({**call, **mended} if mended else call)
    return named


def _typed(message: Message, step: MessageStep) -> Wire:
    parts = [part for part in message.parts if isinstance(part, (TextPart, ImagePart))]
    wire: Wire = {"role": message.role, "content": _content(parts)}
    if message.tool_calls:
        wire["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": arguments or "{}"}}
            for id, name, arguments in step.calls
        ]
        wire["content"] = wire["content"] or None
    return wire


def answer_wire(answer: ToolResult) -> Wire:
    """Return a tool message; the original's own dict if nothing about it changed."""
    if answer.entry is not None and answer.entry.message.dialect == "openai":
        wire = sent(answer.entry.message.wire)
        if answer.verbatim and isinstance(wire.get("content"), str):
            return wire
        return {**wire, "tool_call_id": answer.call_id, "content": answer.text}
    return {"role": "tool", "tool_call_id": answer.call_id, "content": answer.text}


def _content(parts: Sequence[Part]) -> Any:
    if all(isinstance(part, TextPart) for part in parts):
        return "\n".join(part.text for part in parts if isinstance(part, TextPart))
    return [block for block in map(_block, parts) if block is not None]


def _block(part: Part) -> Wire | None:
    if isinstance(part, ImagePart):
        url = image_url(part)
        return None if url is None else {"type": "image_url", "image_url": {"url": url}}
    assert isinstance(part, TextPart)
    return {"type": "text", "text": part.text}


def image_url(part: ImagePart) -> str | None:
    """Return the image's own URL, or a data URL; None for a file that only its own provider has."""
    if part.url is not None:
        return part.url
    return None if part.data is None else f"data:{part.media_type or 'image/png'};base64,{part.data}"


# -- read back ---------------------------------------------------------------------------------------------------


def _units(wires: Iterable[Any]) -> Iterator[Unit]:
    return message_units(wires, "messages")


def parse(context: Wire, heads: Iterable[str], nonce: str) -> Iterator[Unit]:
    """Yield the units of a request."""
    return _units(listed(context.get("messages"), "messages"))


FORMAT = ProviderFormat(
    render=render,
    parse=parse,
    message_units=_units,
    arguments=("messages", "tools"),
    as_tool=as_openai_tool,
    dialect="openai",
)
