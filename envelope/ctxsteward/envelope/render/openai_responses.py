"""OpenAI responses: ``{"instructions": …, "input": [items], "tools": […]}``. Source: the published API reference.

`messages_of_items` turns a list of items into the messages that a session takes. A run of output items (reasoning,
messages, calls) becomes one assistant message with the unchanged items, and an output of a call a tool message. Such a
message goes back as the same items, with ids and encrypted reasoning. If its calls are shown differently, it goes back
without its reasoning, which the provider takes only whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ctxsteward.schemas import ImagePart, InputError, Message, Part, TextPart
from ctxsteward.schemas.message import Wire, message_of_item, sent

from ..history.tool_groups import LogEntry
from ..layout.composition import PromptLayout
from ..layout.fragments import Fragment, MessageStep, ToolResult
from .cache_plan import CachePlan
from .openai_chat import image_url, with_breakpoints
from .units import (
    ProviderFormat,
    Unit,
    as_responses_tool,
    head_units,
    listed,
    message_units,
    translated,
    wires_of_steps,
)

NAME = "openai-responses"


def render(prompt: PromptLayout, cache: CachePlan | None) -> Wire:
    """Return the arguments of ``client.responses.create`` except the model."""
    head = [fragment.text for fragment in prompt.head.fragments]
    request: Wire = {"input": prompt.dynamic.messages(NAME, items_of)}
    if cache is not None and cache.key:
        ends = prompt.dynamic.repeated(NAME, items_of)
        request |= with_breakpoints("input", request["input"], ends, cache, "input_text")
        if cache.is_prewarm:  # explicit: the end of this request is not where the next one goes on
            request["prompt_cache_options"] = {"mode": "explicit", "prewarm": True}
    if head:
        request["instructions"] = "\n\n".join(head)
    if prompt.head.tools:
        request["tools"] = translated(prompt.head.tools, as_responses_tool)
    return request


OwnItems = Callable[[LogEntry], list[Wire] | None]
"""Port: return the items that a message came as, or None to make them from the message."""


def items_of(fragment: Fragment, kept: OwnItems = lambda entry: None) -> list[Wire]:
    """Return the items of a fragment; an unchanged message's items come from `kept` if it has them."""
    return wires_of_steps(fragment, _text, lambda step: _say(step, kept), lambda answers: _results(answers, kept))


def _say(step: MessageStep, kept: OwnItems) -> list[Wire]:
    message = step.entry.message
    if not (step.without_results or step.aliases or step.arguments or step.entry.is_shortened):
        own = kept(step.entry)
        if own is None and message.dialect == "responses":
            own = own_items(message.wire)
        if own is not None:
            return own
    blocks = _said(message)
    items: list[Wire] = [{"role": message.role, "content": blocks}] if blocks else []
    return items + [_call(id, name, arguments) for id, name, arguments in step.calls]


def _said(message: Message) -> list[Wire]:
    return _blocks(message.parts, message.role)


def _call(id: str, name: str, arguments: str) -> Wire:
    return {"type": "function_call", "call_id": id, "name": name, "arguments": arguments or "{}"}


def own_items(wire: Wire) -> list[Wire] | None:
    """Return the items that a message came as, or None if it came otherwise or also has blocks of another provider."""
    wire = sent(wire)
    content = wire.get("content")
    if wire["role"] == "tool":
        return [_own_output(wire)] if str(wire.get("type")).endswith("_output") else None
    if not isinstance(content, list) or "tool_calls" in wire:
        return [wire] if isinstance(content, str) and "tool_calls" not in wire else None
    kinds = [block.get("type") if isinstance(block, dict) else None for block in content]
    if wire["role"] != "assistant":
        return [wire] if all(str(kind).startswith("input_") for kind in kinds) else None
    if all(kind in ("output_text", "refusal") for kind in kinds):
        return [wire]
    return None if any(kind in _BLOCK_KINDS for kind in kinds) else list(content)


def _own_output(wire: Wire) -> Wire:
    """Return the item that a tool message came as."""
    content = wire["content"]
    output = content[0] if wire["type"] in _ONE_OBJECT and isinstance(content, list) and content else content
    rest = {key: value for key, value in wire.items() if key not in ("role", "type", "tool_call_id", "content")}
    return {"type": wire["type"], "call_id": wire["tool_call_id"], "output": output, **rest}


def items_of_message(message: Message) -> list[Wire]:
    """Return the items of a message: those that it came as, else new ones.

    >>> items_of_message(Message.from_wire({"role": "tool", "tool_call_id": "c1", "content": "noon"}))
    [{'type': 'function_call_output', 'call_id': 'c1', 'output': 'noon'}]
    """
    own = own_items(message.wire)
    if own is not None:
        return own
    if message.tool_results:
        return [
            {"type": "function_call_output", "call_id": result.call_id, "output": result.text}
            for result in message.tool_results
        ]
    blocks = _said(message)
    calls = [_call(call.id, call.name, call.arguments) for call in message.tool_calls]
    return [*([{"role": message.role, "content": blocks}] if blocks else []), *calls]


def _results(answers: Sequence[ToolResult], kept: OwnItems) -> list[Wire]:
    items: list[Wire] = []
    images: list[Wire] = []
    for answer in answers:
        if answer.entry is not None and answer.verbatim:
            own = kept(answer.entry)
            if own is None and answer.entry.message.dialect == "responses":
                own = own_items(answer.entry.message.wire)
            if own is not None:
                items += own
                continue
        items.append({"type": "function_call_output", "call_id": answer.call_id, "output": answer.text})
        images += _blocks(answer.images, "user")
    # A user message between two outputs would end the turn of the calls before the second is given.
    return [*items, {"role": "user", "content": images}] if images else items


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


# -- items as messages --------------------------------------------------------------------------------------------

_BLOCK_KINDS = frozenset((None, "text", "tool_use", "thinking", "output_text", "refusal", "image_url"))
_ONE_OBJECT = frozenset(("computer_call_output",))
"""Outputs that are one object; the content of a tool message has it as a block."""


def messages_of_items(items: Iterable[object]) -> list[Wire]:
    """Return the messages of these items (dicts, or objects of the SDK), for `Session.follow`.

    >>> call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "now", "arguments": "{}"}
    >>> done = {"type": "function_call_output", "call_id": "c1", "output": "noon"}
    >>> [message["role"] for message in messages_of_items([{"role": "user", "content": "?"}, call, done])]
    ['user', 'assistant', 'tool']
    """
    return [_of_group(group) for group in item_groups(items)]


def item_groups(items: Iterable[object]) -> list[list[Wire]]:
    """Return groups of items that form one message each: a run of output items, or one other item."""
    groups: list[list[Wire]] = []
    in_run = False
    for item in items:
        wire = _item_wire(item)
        is_output = _is_output(wire)
        if is_output and in_run:
            groups[-1].append(wire)
        else:
            groups.append([wire])
        in_run = is_output
    return groups


def _is_output(wire: Wire) -> bool:
    """Return whether an item belongs to a run: a model's message, reasoning or call."""
    return wire.get("role") in (None, "assistant") and not str(wire.get("type") or "message").endswith("_output")


def _of_group(group: list[Wire]) -> Wire:
    if _is_output(group[0]):
        return _of_run(group)
    return message_of_item(group[0]) if group[0].get("role") is None else _of_speaker(group[0])


def _item_wire(item: object) -> Wire:
    dump = getattr(item, "model_dump", None)
    wire = dump(mode="json", exclude_unset=True) if dump is not None else item
    if not isinstance(wire, dict):
        raise InputError(f"an item of `input` is {type(item).__name__}; expected a dict with `type` or `role`")
    return wire


def _of_run(run: list[Wire]) -> Wire:
    """Return the assistant message with these output items."""
    if len(run) == 1 and "role" in run[0] and "id" not in run[0]:
        return _of_speaker(run[0])
    return {"role": "assistant", "content": [item if "type" in item else {"type": "message", **item} for item in run]}


def _of_speaker(wire: Wire) -> Wire:
    return {key: value for key, value in wire.items() if key != "type"}


# -- read back ---------------------------------------------------------------------------------------------------


def _units(wires: Iterable[Any]) -> Iterator[Unit]:
    return message_units(wires, "input")


def parse(context: Wire, heads: Iterable[str], nonce: str) -> Iterator[Unit]:
    """Yield the units of a request."""
    yield from head_units(context.get("instructions"), "instructions", heads)
    yield from _units(listed(context.get("input"), "input"))


FORMAT = ProviderFormat(
    render=render,
    parse=parse,
    message_units=_units,
    arguments=("instructions", "input", "tools"),
    as_tool=as_responses_tool,
    dialect="responses",
)
