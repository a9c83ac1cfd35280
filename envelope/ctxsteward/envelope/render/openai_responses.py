"""OpenAI responses: ``{"instructions": …, "input": [items], "tools": […]}``. Source: the published API reference.

`messages_of_items` turns a list of items into the messages that a session takes: a run of output items (reasoning,
messages, calls) is one assistant message that holds them as they came, an output of a call is a tool message. A message
that came so goes back as the same items, ids and encrypted reasoning included; one whose calls are shown otherwise goes
back without its reasoning, which a provider takes whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ctxsteward.schemas import ImagePart, InputError, Message, Part, TextPart, Wire, sent

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
    if message.dialect == "responses" and not (step.without_results or step.aliases or step.arguments):
        own = _own_items(message)
        if own is not None:
            return own
    blocks = _blocks(message.parts, message.role)
    items: list[Wire] = [{"role": message.role, "content": blocks}] if blocks else []
    items += [
        {"type": "function_call", "call_id": id, "name": name, "arguments": arguments or "{}"}
        for id, name, arguments in step.calls
    ]
    return items


def _own_items(message: Message) -> list[Wire] | None:
    """The items that a message came as; None where it holds blocks of another provider, too."""
    wire = sent(message.wire)
    kinds = [block.get("type") if isinstance(block, dict) else None for block in wire["content"]]
    if message.role != "assistant":
        return [wire] if all(str(kind).startswith("input_") for kind in kinds) else None
    if all(kind in ("output_text", "refusal") for kind in kinds):
        return [wire]
    return None if any(kind in _BLOCK_KINDS for kind in kinds) else list(wire["content"])


def _own_output(answer: ToolResult) -> Wire | None:
    """The item that a tool result came as; None where it is shown otherwise."""
    if answer.entry is None or not answer.verbatim or answer.entry.message.dialect != "responses":
        return None
    wire = sent(answer.entry.message.wire)
    content = wire["content"]
    output = content[0] if wire["type"] in _ONE_OBJECT and isinstance(content, list) and content else content
    rest = {key: value for key, value in wire.items() if key not in ("role", "type", "tool_call_id", "content")}
    return {"type": wire["type"], "call_id": wire["tool_call_id"], "output": output, **rest}


def _results(answers: Sequence[ToolResult]) -> list[Wire]:
    items: list[Wire] = []
    for answer in answers:
        own = _own_output(answer)
        if own is not None:
            items.append(own)
            continue
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


# -- items as messages --------------------------------------------------------------------------------------------

_BLOCK_KINDS = frozenset((None, "text", "tool_use", "thinking", "output_text", "refusal", "image_url"))
_ONE_OBJECT = frozenset(("computer_call_output",))
"""Outputs that are one object: as the content of a tool message it is a block."""


def messages_of_items(items: Iterable[object]) -> list[Wire]:
    """The messages that these items (dicts, or objects of the SDK) are, for `Session.follow`.

    >>> call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "now", "arguments": "{}"}
    >>> done = {"type": "function_call_output", "call_id": "c1", "output": "noon"}
    >>> [message["role"] for message in messages_of_items([{"role": "user", "content": "?"}, call, done])]
    ['user', 'assistant', 'tool']
    """
    messages: list[Wire] = []
    run: list[Wire] = []
    for item in items:
        wire = _item_wire(item)
        role, kind = wire.get("role"), str(wire.get("type") or "message")
        if role not in (None, "assistant") or kind.endswith("_output"):
            messages += [*_of_run(run), _of_output(wire) if role is None else _of_speaker(wire)]
            run = []
        else:
            run.append(wire)
    return messages + _of_run(run)


def _item_wire(item: object) -> Wire:
    dump = getattr(item, "model_dump", None)
    wire = dump(mode="json", exclude_unset=True) if dump is not None else item
    if not isinstance(wire, dict):
        raise InputError(f"an item of `input` is {type(item).__name__}; expected a dict with `type` or `role`")
    return wire


def _of_run(run: list[Wire]) -> list[Wire]:
    """Output items as the assistant message that holds them."""
    if not run:
        return []
    if len(run) == 1 and "role" in run[0] and "id" not in run[0]:
        return [_of_speaker(run[0])]
    return [{"role": "assistant", "content": [item if "type" in item else {"type": "message", **item} for item in run]}]


def _of_speaker(wire: Wire) -> Wire:
    return {key: value for key, value in wire.items() if key != "type"}


def _of_output(item: Wire) -> Wire:
    """The output of a call as a tool message; its other fields stay beside."""
    output = item.get("output")
    content = output if isinstance(output, str) or output is None else output if isinstance(output, list) else [output]
    rest = {key: value for key, value in item.items() if key not in ("type", "call_id", "output")}
    call_id = str(item.get("call_id") or "")
    return {"role": "tool", "type": item["type"], "tool_call_id": call_id, "content": content, **rest}


# -- read back ---------------------------------------------------------------------------------------------------


def _units(wires: Iterable[Any]) -> Iterator[Unit]:
    return message_units(wires, "input")


def parse(context: Wire, heads: Iterable[str], nonce: str) -> Iterator[Unit]:
    """The units of a request."""
    yield from head_units(context.get("instructions"), "instructions", heads)
    yield from _units(listed(context.get("input"), "input"))


FORMAT = ProviderFormat(
    render=render, parse=parse, message_units=_units, arguments=("instructions", "input", "tools"),
    as_tool=as_responses_tool, dialect="responses",
)  # fmt: skip
