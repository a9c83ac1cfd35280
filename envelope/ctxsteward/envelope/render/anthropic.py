"""Anthropic messages: ``{"system": [blocks], "messages": […], "tools": […]}``. Source: the published API reference.

All results of one group go back in one user message, results first. A person's text is always a list of one text block,
and so is a reply that a cache mark ends: the API treats such a list like a string.

Cache marks (at most 4): the end of the head; the end of bullets and observations, or of the text before a reply that
the next turn shortens (the next call begins with the same bytes up to there); where notes of the previous call began;
where notes of this call begin, or where the recalled messages do if the next call will not repeat those. A thinking
block gets no mark. Notes are text blocks at the end of the newest user
message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ctxsteward.schemas import ImagePart, Part, TextPart, ToolCallPart
from ctxsteward.schemas.message import Wire, sent

from ..layout.composition import PromptLayout
from ..layout.fragments import DerivedText, Fragment, MessageStep, ToolResult, ToolResults
from .cache_plan import CachePlan
from .units import ProviderFormat, Unit, as_anthropic_tool, blocks_of, listed, message_units, one_reply, translated

NAME = "anthropic"
_THINKING = frozenset(("thinking", "redacted_thinking"))
_RESPONSE_FIELDS = frozenset(
    ("id", "type", "model", "stop_reason", "stop_sequence", "stop_details", "usage", "container")
)
CONTINUES = "(the conversation goes on)"
_MARKABLE = frozenset(("text", "image", "tool_use", "tool_result", "document"))


def render(prompt: PromptLayout, cache: CachePlan | None) -> Wire:
    """Return the arguments of ``client.messages.create`` except model and max_tokens."""
    request: Wire = {}
    system: list[Wire] = [
        {"type": "text", "text": fragment.text} for fragment in prompt.head.fragments if fragment.text.strip()
    ]
    dynamic = prompt.dynamic
    messages = dynamic.before_notes(NAME, wires_of)
    opening: list[Wire] = []
    if messages and messages[0]["role"] != "user":
        opening = [{"role": "user", "content": [{"type": "text", "text": CONTINUES}]}]
    messages = [*opening, *messages]
    if cache is not None:
        if system:
            system[-1] = {**system[-1], "cache_control": cache.mark}
        elif prompt.head.tools:
            request["tools"] = _tools(prompt, cache.mark)
        lasting, closed, previous, end = dynamic.repeated(NAME, wires_of)
        for number in {number for number in (lasting, previous, end or closed) if number}:
            at = len(opening) + number - 1
            messages[at] = _marked(messages[at], cache.mark)
    if dynamic.notes is not None:
        _add_notes(messages, dynamic.notes.text)
    messages += dynamic.strip.rendered(NAME, dynamic.after_from, dynamic.stop, wires_of)
    if system:
        request["system"] = system
    request["messages"] = messages
    if prompt.head.tools and "tools" not in request:
        request["tools"] = _tools(prompt, None)
    return request


def _tools(prompt: PromptLayout, mark: Wire | None) -> list[Wire]:
    tools = [_own_block(tool) for tool in translated(prompt.head.tools, as_anthropic_tool)]
    if mark is not None and tools:
        tools[-1] = {**tools[-1], "cache_control": mark}
    return tools


def _add_notes(messages: list[Wire], text: str) -> None:
    block = {"type": "text", "text": text}
    if messages and messages[-1]["role"] == "user":
        messages[-1] = {**messages[-1], "content": [*messages[-1]["content"], block]}
    else:
        messages.append({"role": "user", "content": [block]})


def _marked(message: Wire, mark: Wire) -> Wire:
    content = message["content"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not content or content[-1].get("type") not in _MARKABLE:
        return message
    if content[-1].get("cache_control"):
        return message
    return {**message, "content": [*content[:-1], {**content[-1], "cache_control": mark}]}


def wires_of(fragment: Fragment) -> list[Wire]:
    """Return the messages of a fragment."""
    wires: list[Wire] = []
    for step in fragment.steps:
        match step:
            case DerivedText(text=text):
                wires.append({"role": "user", "content": [{"type": "text", "text": text}]})
            case MessageStep():
                wires += _say(step)
            case ToolResults():
                wires += _results(step)
    return one_reply(wires)


def _say(step: MessageStep) -> list[Wire]:
    message = step.entry.message
    if message.dialect not in ("anthropic", "shared") or step.without_results:
        blocks = [block for block in map(_block, message.parts) if block is not None]
        blocks = _with_aliases(blocks, step)
        return [{"role": message.role, "content": blocks}] if blocks else []
    wire = _without_response_fields(sent(message.wire))
    content = wire.get("content")
    if isinstance(content, str):
        if not content.strip():
            return []
        return [wire] if message.role == "assistant" else [{**wire, "content": [{"type": "text", "text": content}]}]
    content = [_own_block(block) for block in content or () if not _blank(block)]
    while content and content[-1].get("type") in _THINKING:
        content.pop()  # the API refuses a message that ends with a thinking block
    if not content:
        return []
    content = _with_aliases(content, step)
    return [wire if content == wire["content"] else {**wire, "content": content}]


def _without_response_fields(wire: Wire) -> Wire:
    """Return the message in a response of this provider that was appended unchanged."""
    if wire.get("type") != "message":
        return wire
    return {key: value for key, value in wire.items() if key not in _RESPONSE_FIELDS}


def _own_block(block: Wire | str) -> Wire:
    """Return the provider's own block without cache marks (the renderer sets them) or values that it refuses."""
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if "cache_control" in block:
        block = {key: value for key, value in block.items() if key != "cache_control"}
    if block.get("type") == "tool_use" and not isinstance(block.get("input"), dict):
        block = {**block, "input": arguments_object(json.dumps(block.get("input", {})))}
    content = block.get("content")
    if block.get("type") == "tool_result" and isinstance(content, list) and any(map(_needs_mending, content)):
        block = {**block, "content": [_own_block(inner) for inner in content if not _blank(inner)]}
    return block


def _needs_mending(block: object) -> bool:
    return _blank(block) or isinstance(block, str) or (isinstance(block, dict) and "cache_control" in block)


def _with_aliases(blocks: list[Wire], step: MessageStep) -> list[Wire]:
    """Return the blocks with the calls' shown ids and arguments."""
    if not step.aliases and not step.arguments:
        return blocks
    aliases, shortened, index, shown = dict(step.aliases), dict(step.arguments), -1, []
    for block in blocks:
        if block.get("type") == "tool_use":
            index += 1
            block = {**block, "id": aliases.get(index, block.get("id"))}
            if index in shortened:
                block["input"] = arguments_object(shortened[index])
        shown.append(block)
    return shown


def _results(step: ToolResults) -> list[Wire]:
    carriers = list({id(a.entry): a.entry for a in step.answers if a.entry is not None}.values())
    own = [carrier for carrier in carriers if carrier.message.dialect == "anthropic"]
    rests = [rest for rest in step.trailing if isinstance(rest, MessageStep) and rest.entry not in own]
    asides = [rest for rest in step.trailing if isinstance(rest, DerivedText)]
    results: list[Wire] = [_result(answer) for answer in step.answers]
    others: list[Wire] = []
    for carrier in own:
        content = sent(carrier.message.wire)["content"]
        others += [
            _own_block(block)
            for block in content
            if not (isinstance(block, dict) and block.get("type") == "tool_result") and not _blank(block)
        ]
    blocks = [*results, *others, *({"type": "text", "text": aside.text} for aside in asides)]
    extra: Wire = {}
    if len(carriers) == len(own) == 1:
        wire = sent(own[0].message.wire)
        if wire["content"] == blocks:
            wires = [wire]
        else:
            extra = {key: value for key, value in wire.items() if key not in ("role", "content")}
            wires = [{"role": "user", **extra, "content": blocks}]
    else:
        wires = [{"role": "user", "content": blocks}]
    for rest in rests:
        wires += _say(rest)
    return wires


def _result(answer: ToolResult) -> Wire:
    entry = answer.entry
    if entry is not None and entry.message.dialect == "anthropic":
        own = [b for b in sent(entry.message.wire)["content"] if isinstance(b, dict) and b.get("type") == "tool_result"]
        block: Wire = own[answer.index]
        if answer.verbatim:
            return _own_block(block)
        block = {key: value for key, value in block.items() if key != "cache_control"}
        return {**block, "tool_use_id": answer.call_id, "content": _result_content(answer)}
    wire: Wire = {"type": "tool_result", "tool_use_id": answer.call_id, "content": _result_content(answer)}
    if answer.is_error:
        wire["is_error"] = True
    return wire


def _result_content(answer: ToolResult) -> Any:
    if not answer.images:
        return answer.text
    images = [block for block in map(_block, answer.images) if block is not None]
    return [{"type": "text", "text": answer.text}, *images] if answer.text.strip() else images or answer.text


def _block(part: Part) -> Wire | None:
    match part:
        case TextPart(text=text):
            return {"type": "text", "text": text} if text.strip() else None
        case ToolCallPart(id=id, name=name, arguments=arguments):
            return {"type": "tool_use", "id": id, "name": name, "input": arguments_object(arguments)}
        case ImagePart(data=data, url=url, media_type=media_type):
            if data is not None:
                source: Wire = {"type": "base64", "media_type": media_type or "image/png", "data": data}
                return {"type": "image", "source": source}
            return None if url is None else {"type": "image", "source": {"type": "url", "url": url}}
        case _:
            return None


def arguments_object(arguments: str) -> Wire:
    """Return call arguments as the object that this provider requires; other text goes under one key."""
    try:
        value = json.loads(arguments, parse_constant=_no_constant) if arguments.strip() else {}
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return {"arguments": arguments}
    return value if isinstance(value, dict) else {"arguments": value}


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _blank(block: object) -> bool:
    if isinstance(block, str):
        return not block.strip()
    return isinstance(block, dict) and block.get("type") == "text" and not str(block.get("text", "")).strip()


# -- read back ---------------------------------------------------------------------------------------------------


def _units(wires: Iterable[Any]) -> Iterator[Unit]:
    return message_units(wires, "messages")


def parse(context: Wire, heads: Iterable[str], nonce: str) -> Iterator[Unit]:
    """Yield the units of a request."""
    yield from blocks_of(context.get("system"), "system", "head", {"role": "system"})
    yield from _units(listed(context.get("messages"), "messages"))


FORMAT = ProviderFormat(
    render=render,
    parse=parse,
    message_units=_units,
    arguments=("system", "messages", "tools"),
    as_tool=as_anthropic_tool,
    dialect="anthropic",
    has_marks=True,
)
