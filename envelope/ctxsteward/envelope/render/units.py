"""Parts shared by the formats of all providers: units of requests that are read back, and tool schemas.

A unit is a system text, a tool schema, a content block, a tool call, a tool result or a span of a text prompt. It has a
`text` (arguments and other objects as canonical JSON), and a `frame`: canonical JSON of everything else (role, type,
ids, unknown fields). Two requests of one provider are compared by units, in the order in which the model reads them.
Units cover everything that an envelope governs, so equal units mean equal context. They leave out arguments that an
envelope does not decide (model, temperature …); `ungoverned` names those.

The same context gives the same units: cache marks are left out; a string equals a list of one text block; Gemini's
camelCase equals snake_case. A head that is one text is split at the sections expected in it.

A tool schema (name, description, JSON Schema of the arguments) in the provider's own form goes back unchanged, built-in
tools included. A function is translated. A tool without a form elsewhere (another provider's built-in or free-text
tool) is left out, and `render.request.dropped_fields` reports it.

`ProviderFormat` says how a provider's requests are rendered and read. Each provider's module has the rest.

Raises `InputError` for a value that is no JSON, no request or no list of tools. Source: the providers' published API
references.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from ctxsteward.schemas import InputError
from ctxsteward.schemas.message import Wire

from ..layout.composition import PromptLayout
from ..layout.fragments import DerivedText, Fragment, MessageStep, ToolResult, ToolResults
from .cache_plan import CachePlan

T = TypeVar("T")
Channel = Literal["head", "tools", "dynamic", "argument"]

_TEXT_KEYS = (
    "text",
    "input_text",
    "thinking",
    "content",
    "output",
    "arguments",
    "input",
    "args",
    "response",
    "data",
    "source",
    "image_url",
    "refusal",
)
_HUMP = re.compile(r"(?<=[a-z0-9])[A-Z]")
_INNER = ("function", "custom", "function_call", "function_response", "inline_data", "file_data")


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of a request."""

    channel: Channel
    frame: str
    text: str
    path: str
    """Place in the payload."""
    call_id: str = ""
    """Id of the call that a tool result answers, else empty."""
    opens: bool = True
    """Whether it is the first unit of a message."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Key by which two units are compared."""
        return (self.channel, self.frame, self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFormat:
    """Functions that write a provider's requests and read them back."""

    render: Callable[[PromptLayout, CachePlan | None], Wire]
    """Return the request's arguments, with or without cache marks."""
    parse: Callable[[Wire, Iterable[str], str], Iterable[Unit]]
    """Yield the units of a request's context except tools, given arguments, the head's texts and the nonce."""
    message_units: Callable[[Iterable[Any]], Iterable[Unit]] | None
    """Yield the units of rendered messages; None if a prompt is one text."""
    arguments: tuple[str, ...]
    """Arguments that carry its context."""
    as_tool: Callable[[Wire], Wire | None] | None
    """Return a tool's schema in its form, or None if it has no form for it; None if the provider takes no tools."""
    dialect: str | None = None
    """Dialect of messages that go back unchanged."""
    has_marks: bool = False
    """Whether requests carry cache marks."""


def snake_case(name: str) -> str:
    """Return a name of Gemini's camelCase in snake case; other names stay.

    >>> snake_case("functionCall")
    'function_call'
    """
    return _HUMP.sub(lambda hump: f"_{hump[0].lower()}", name)


def snake_keys(value: Wire) -> Wire:
    """Return an object with its keys in snake case."""
    return {snake_case(key): item for key, item in value.items()}


def canonical(value: object) -> str:
    """Return JSON with sorted keys; raise `InputError` for a value that is no JSON."""
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"sent: not a JSON value ({type(error).__name__}); pass the request's arguments") from None


def blocks_of(content: object, path: str, channel: Channel, frame: Wire) -> Iterator[Unit]:
    """Yield the units of a message's content, which is a text or blocks."""
    call_id = str(frame.get("tool_call_id", ""))
    if isinstance(content, str):
        yield Unit(channel, canonical({**frame, "type": "text"}), content, path, call_id)
    elif isinstance(content, list) and content:
        for number, block in enumerate(content):
            yield unit_of(block, f"{path}[{number}]", channel, frame, opens=number == 0)
    elif content is not None or channel == "dynamic":
        yield Unit(channel, canonical({**frame, "content": content}), "", path, call_id)


def unit_of(block: object, path: str, channel: Channel, frame: Wire, *, opens: bool = True) -> Unit:
    """Return a block as a unit: its main text, and everything else as frame."""
    if isinstance(block, str):
        block = {"type": "text", "text": block}
    if not isinstance(block, dict):
        return Unit(channel, canonical({**frame, "is": "no block"}), canonical(block), path, opens=opens)
    shown = unmarked(block)
    inner_name = next((key for key in _INNER if isinstance(shown.get(key), dict)), None)
    body: Wire = snake_keys(shown[inner_name]) if inner_name else shown
    if inner_name:
        shown = {key: value for key, value in shown.items() if key != inner_name}
    main = next((key for key in _TEXT_KEYS if key in body), None)
    text = "" if main is None else _text(body[main], response=inner_name == "function_response")
    rest: Wire = {key: value for key, value in body.items() if key != main}
    if inner_name:
        rest = {**shown, inner_name: rest}
    if rest.get("type") in ("input_text", "output_text"):
        rest["type"] = "text"
    plain = main is None or isinstance(body[main], str) or text == _only_text(body[main])
    where = (main or "") if plain else f"{main}, JSON"
    kind = {"type": "text", **rest} if main == "text" and plain and not inner_name else {**rest, "in": where}
    clash = {key: value for key, value in frame.items() if key in kind}
    framed = {**frame, **kind, "of": clash} if clash else {**frame, **kind}
    return Unit(channel, canonical(framed), text, path, _answered(shown, body, inner_name), opens)


def _answered(block: Wire, body: Wire, inner_name: str | None) -> str:
    """Return the id of the call that a tool result answers; empty for any other block."""
    if inner_name == "function_response":
        return str(body.get("id", ""))
    return str(block.get("tool_use_id") or (block.get("call_id", "") if "output" in block else ""))


def _text(value: object, *, response: bool) -> str:
    """Return a block's main value as text; a list of one text block, or a response of one output, gives that text."""
    if isinstance(value, str):
        return value
    if response and isinstance(value, dict) and set(value) == {"output"} and isinstance(value["output"], str):
        return value["output"]
    only = _only_text(value)
    if only is not None:
        return only
    listed = (
        [unmarked(block) if isinstance(block, dict) else block for block in value] if isinstance(value, list) else value
    )
    return canonical(listed)


def _only_text(value: object) -> str | None:
    """Return the text of a list of one text block, else None."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        block = unmarked(value[0])
        if set(block) == {"type", "text"} and isinstance(block["text"], str):
            text: str = block["text"]
            return text
    return None


_MARKS = {
    "cache_control": ({"type": "ephemeral"}, ("5m", "1h")),
    "prompt_cache_breakpoint": ({"mode": "explicit"}, ("30m", "12h")),
}
"""Cache marks of providers, and the lifetimes that a mark may name as its `ttl`."""


def unmarked(block: Wire) -> Wire:
    """Return a block without its cache marks; a mark with unknown content stays, so that the auditor finds it."""
    for name, (mark, lifetimes) in _MARKS.items():
        if name in block:
            known = [None, mark, *({**mark, "ttl": lifetime} for lifetime in lifetimes)]
            block = {key: value for key, value in block.items() if key != name or block[name] not in known}
    return block


# -- writing ------------------------------------------------------------------------------------------------------


def wires_of_steps(
    fragment: Fragment,
    text: Callable[[str], list[T]],
    message: Callable[[MessageStep], list[T]],
    results: Callable[[Sequence[ToolResult]], list[T]],
) -> list[T]:
    """Write a fragment's derived texts, messages and tool results in order with the provider's functions."""
    written: list[T] = []
    for step in fragment.steps:
        match step:
            case DerivedText():
                written += text(step.text)
            case MessageStep():
                written += message(step)
            case ToolResults():
                written += results(step.answers)
                for rest in step.trailing:
                    written += text(rest.text) if isinstance(rest, DerivedText) else message(rest)
    return written


def one_reply(wires: Iterable[Wire]) -> list[Wire]:
    """Join consecutive assistant messages of a group: the items of a reply may be separate entries."""
    joined: list[Wire] = []
    for wire in wires:
        if joined and wire["role"] == joined[-1]["role"] == "assistant":
            first = joined[-1]
            calls = [*first.get("tool_calls", ()), *wire.get("tool_calls", ())]
            content = _both(first.get("content"), wire.get("content"))
            joined[-1] = {**first, **wire, "content": content, **({"tool_calls": calls} if calls else {})}
        else:
            joined.append(wire)
    return joined


def _both(first: Any, second: Any) -> Any:
    if not first or not second:
        return first or second
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n{second}"
    one, other = ([{"type": "text", "text": of}] if isinstance(of, str) else of for of in (first, second))
    return [*one, *other]


# -- tools -------------------------------------------------------------------------------------------------------


def tool_units(tools: object) -> Iterator[Unit]:
    """Yield one unit a tool schema; Gemini's declarations one by one."""
    if tools is None:
        return
    if not isinstance(tools, (list, tuple)):
        raise InputError(f"sent: `tools` is {type(tools).__name__}; expected a list of tool schemas")
    for index, tool in enumerate(tools):
        shown = snake_keys(unmarked(tool)) if isinstance(tool, dict) else tool
        declared = shown.get("function_declarations") if isinstance(shown, dict) else None
        if isinstance(declared, list):
            rest = {key: value for key, value in shown.items() if key != "function_declarations"}
            for number, entry in enumerate(declared):
                snake = snake_keys(entry) if isinstance(entry, dict) else entry
                yield _tool(snake, f"tools[{index}].function_declarations[{number}]")
            if not rest:
                continue
            shown = rest
        yield _tool(shown, f"tools[{index}]")


def _tool(tool: object, path: str) -> Unit:
    inner = tool.get("function", tool) if isinstance(tool, dict) else None
    name = inner.get("name") if isinstance(inner, dict) else None
    return Unit("tools", f"tool {name}" if isinstance(name, str) else "tool", canonical(tool), path)


OPERATOR_ROLES = ("system", "developer")
JOINT = "\n\n"
"""Text between the sections of a head that is one text."""
ATTACHED = "attached"
"""Frame of a text in such a head that joints do not separate."""
CUT = " (cut)"
"""End of the frame of a prompt's last span if the prompt has no proper end."""


@cache
def governed_arguments() -> dict[str, Any]:
    """Return the table that says which arguments an envelope governs."""
    return tomllib.loads(Path(__file__).with_name("arguments.toml").read_text(encoding="utf-8"))


def context_of(payload: Wire) -> Wire:
    """Return the governed arguments of a request, including those wrapped in a config or extra body.

    They put text before the model, change how it sees tools or the form of its answer (unless they have the default
    value), or are unknown and could have words.
    """
    found: Wire = {}
    for path, name, value in _arguments(payload):
        if is_governed(name, value):
            key = path if name in found else name
            found[key] = value
    return found


def ungoverned(payload: Wire) -> tuple[str, ...]:
    """Return the names of a request's arguments that an envelope does not govern, in order."""
    return tuple(path for path, name, value in _arguments(payload) if not is_governed(name, value))


def is_governed(name: str, value: object) -> bool:
    """Return whether an argument with this value affects the context that an envelope decides."""
    table = governed_arguments()
    if name in table["context"]:
        return True
    if value is None or (isinstance(value, str | list | dict) and not value):
        return False
    if name in table["call"]:
        return value not in table["call"][name]
    return name not in table["free"] and _may_carry_words(value)


def _may_carry_words(value: object) -> bool:
    """Return whether an unknown argument's value could be a sentence: text that is no plain name, number or switch."""
    if isinstance(value, str):
        return _PLAIN.fullmatch(value) is None
    if isinstance(value, dict):
        return any(map(_may_carry_words, (*value, *value.values())))
    return isinstance(value, list | tuple) and any(map(_may_carry_words, value))


_PLAIN = re.compile(r"[\w.:/+-]{0,64}", re.ASCII)
"""A name, number or switch in ASCII. Other scripts do not match, because a sentence in Chinese has no space."""


def _arguments(payload: Wire) -> Iterator[tuple[str, str, Any]]:
    """Yield the path, the name in snake case and the value of every argument."""
    table = governed_arguments()
    for name, value in payload.items():
        if name in table["wrappers"] and isinstance(value, dict):
            for path, inner, each in _arguments(value):
                yield f"{name}.{path}", inner, each
        elif name in table["parts"] and isinstance(value, dict):
            for field, each in value.items():
                yield f"{name}.{field}", (f"{name}.{field}" if field == "format" else field), each
        else:
            yield name, snake_case(name), value


def listed(value: object, name: str) -> list[Any]:
    """Return an argument as a list of messages; raise `InputError` if it is none."""
    if value is None:
        return []
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if not isinstance(value, (list, tuple)):
        raise InputError(f"sent: `{name}` is {type(value).__name__}; expected a list of messages")
    return list(value)


def message_units(wires: Iterable[Any], name: str) -> Iterator[Unit]:
    """Yield the units of messages, or of response items, in the argument `name`."""
    for index, wire in enumerate(wires):
        path = f"{name}[{index}]"
        if not isinstance(wire, dict):
            yield Unit("dynamic", "no message", canonical(wire), path)
            continue
        wire = unmarked(wire)
        if "role" not in wire:
            yield unit_of(wire, path, "dynamic", {})
            continue
        channel: Channel = "head" if wire["role"] in OPERATOR_ROLES else "dynamic"
        content, calls = wire.get("content"), wire.get("tool_calls")
        rest = {key: value for key, value in wire.items() if key not in ("content", "tool_calls")}
        if rest.get("type") == "message":
            del rest["type"]
        if content or not calls or not isinstance(calls, list):
            if calls is not None and not isinstance(calls, list):
                rest["tool_calls"] = calls
            if "content" not in wire:
                rest["without"] = "content"
            yield from blocks_of(content, f"{path}.content", channel, rest)
        for number, call in enumerate(calls if isinstance(calls, list) else ()):
            opens = number == 0 and not content
            frame = {**rest, "is": "call"} if content is None or content else {**rest, "is": "call", "says": content}
            yield unit_of(call, f"{path}.tool_calls[{number}]", channel, frame, opens=opens)


# -- heads that are one text -------------------------------------------------------------------------------------


def head_units(value: object, path: str, heads: Iterable[str]) -> Iterator[Unit]:
    """Split one text into units: the sections of `heads` found in it, and the texts between them."""
    if value is None or value == "":
        return
    if not isinstance(value, str):
        yield Unit("head", "head", canonical(value), path)
        return
    claimed: list[tuple[int, int]] = []
    for text in sorted(dict.fromkeys(filter(None, heads)), key=len, reverse=True):
        at = value.find(text)
        while at >= 0:
            if all(at + len(text) <= start or at >= stop for start, stop in claimed):
                claimed.append((at, at + len(text)))
            at = value.find(text, at + len(text))
    place = 0
    for start, stop in (*sorted(claimed), (len(value), len(value))):
        yield from _gap(value[place:start], path, first=place == 0, last=start == len(value))
        if stop > start:
            yield Unit("head", "head", value[start:stop], path)
        place = stop


def _gap(gap: str, path: str, *, first: bool, last: bool) -> Iterator[Unit]:
    """Yield the text between known sections: none for a joint, else a separate text, or one attached to a section."""
    if first and last:
        yield Unit("head", "head", gap, path)
        return
    if gap == ("" if first or last else JOINT):
        return
    before, after = first or gap.startswith(JOINT), last or gap.endswith(JOINT)
    inner = gap[0 if first else len(JOINT) :] if before else gap
    inner = inner[: len(inner) if last else -len(JOINT)] if after else inner
    if before and after and inner.strip():
        yield Unit("head", "head", inner, path)
    else:
        yield Unit("head", ATTACHED, gap, path)


_OPEN: Wire = {"type": "object", "properties": {}}
_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema", "parameters_json_schema")


Translate = Callable[[Wire], Wire | None]
"""Return a tool in this provider's form, or None if it has no form for it."""


def translated(tools: Sequence[Wire], translate: Translate) -> list[Wire]:
    """Return the tools that a provider can be given, in its form."""
    return [made for tool in tools if (made := translate(tool)) is not None]


def read_function(tool: Wire) -> Wire | None:
    """Read a function's schema, OpenAI's, nested or flat, or Anthropic's: its name, description and parameters."""
    nested = tool.get("function")
    inner: Wire = nested if isinstance(nested, dict) else tool
    if not isinstance(inner.get("name"), str) or (inner is tool and tool.get("type") not in (None, "function")):
        return None
    schema: Any = next((inner[key] for key in _SCHEMA_KEYS if isinstance(inner.get(key), dict)), _OPEN)
    return {"name": inner["name"], "description": str(inner.get("description") or ""), "parameters": schema}


def as_openai_tool(tool: Wire) -> Wire | None:
    """Return ``{"type": "function", "function": {…}}``, or OpenAI's own custom tool."""
    nested = tool.get("function")
    if isinstance(nested, dict):
        return tool if "parameters" in nested else {**tool, "function": {**nested, "parameters": _OPEN}}
    if tool.get("type") == "custom" and "custom" in tool:
        return tool
    function = read_function(tool) if "input_schema" not in tool else read_function({**tool, "type": None})
    if function is None:
        return None
    if "strict" in tool:
        function["strict"] = tool["strict"]
    return {"type": "function", "function": function}


def as_responses_tool(tool: Wire) -> Wire | None:
    """Return ``{"type": "function", "name": …}``; this endpoint's built-in and custom tools stay unchanged."""
    if tool.get("type") == "function" and "function" not in tool:
        return tool if "parameters" in tool else {**tool, "parameters": _OPEN}
    nested = tool.get("function")
    if isinstance(nested, dict) or "input_schema" in tool or "type" not in tool:
        read = read_function({**tool, "type": None})
        if read is None:
            return None
        strict = nested.get("strict", False) if isinstance(nested, dict) else False
        return {"type": "function", **read, "strict": strict}
    if tool.get("type") == "custom" and isinstance(tool.get("custom"), dict):
        return {"type": "custom", **tool["custom"]}
    return tool if "functionDeclarations" not in tool and "function_declarations" not in tool else None


def as_anthropic_tool(tool: Wire) -> Wire | None:
    """Return ``{"name": …, "input_schema": …}``, or one of Anthropic's built-in tools (their types end in a date)."""
    kind = tool.get("type")
    if "input_schema" in tool or (isinstance(kind, str) and kind[-8:].isdecimal()):
        return tool
    read = read_function(tool)
    if read is None:
        return None
    return {"name": read["name"], "description": read["description"], "input_schema": read["parameters"]}


def as_gemini_tool(tool: Wire) -> Wire | None:
    """Return a function declaration."""
    read = read_function({**tool, "type": None}) if "input_schema" in tool else read_function(tool)
    if read is None:
        return None
    return {"name": read["name"], "description": read["description"], "parameters_json_schema": read["parameters"]}


def is_gemini_tool(tool: Wire) -> bool:
    """Return whether a tool is Gemini's own object: declarations, search, code execution."""
    return bool(tool) and not {"name", "type", "function"} & set(tool)
