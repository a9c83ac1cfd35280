"""Reading a request of any provider into units, in the order in which the model sees them.

The arguments of a request that are not context (model, temperature …) are left out; those that are context but have no
place in this provider's request are units of the channel ``argument``. A head that is one text is taken apart at the
sections that are expected in it; a text prompt at its labelled lines.

Raises `InputError` where something is no request. Source: the providers' published API references.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ctxsteward.schemas import InputError, Wire

from .units import SNAKE, Channel, Unit, blocks_of, canonical, tool_units, unit_of, unmarked

CONTEXT_ARGUMENTS = frozenset(
    (
        "system", "system_instruction", "systemInstruction", "instructions", "tools", "functions", "messages", "input",
        "contents", "prompt", "previous_response_id", "conversation", "cached_content", "cachedContent",
        "mcp_servers", "documents", "history", "context",
    )
)  # fmt: skip
"""Arguments that put something before the model; every other argument of a request is none of the auditor's."""

OWN_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "openai-chat": ("messages", "tools"),
    "openai-responses": ("instructions", "input", "tools"),
    "anthropic": ("system", "messages", "tools"),
    "gemini": ("contents", "system_instruction", "tools"),
    "text": ("prompt",),
}
"""Where each provider's context stands."""

_WRAPPERS = ("config", "extra_body", "extra_json", "generate_content_config")
_OPERATOR_ROLES = ("system", "developer")
_OPENING = re.compile(r"<([^\s<>/]{1,64}) ([^\n>]*)>\n")
JOINT = "\n\n"
"""What stands between the sections of a head that is one text."""
ATTACHED = "attached"
"""Frame of a text in such a head that is not set off by joints."""
CUT = " (cut)"
"""Ends the frame of a prompt's last span where the prompt has no proper end."""


def context_of(payload: Wire) -> Wire:
    """The arguments of a request that are context, those wrapped in a config or extra body included."""
    found = {name: value for name, value in payload.items() if name in CONTEXT_ARGUMENTS}
    for wrapper in _WRAPPERS:
        inner = payload.get(wrapper)
        if isinstance(inner, dict):
            for name, value in inner.items():
                if name in CONTEXT_ARGUMENTS:
                    found[name if name not in found else f"{wrapper}.{name}"] = value
    return found


def read_units(payload: Wire, provider: str, *, heads: Iterable[str] = (), nonce: str = "") -> list[Unit]:
    """The units of a request; `heads` are the sections to look for in a head that is one text, `nonce` the marks."""
    context = {SNAKE.get(name, name): value for name, value in context_of(payload).items()}
    own = OWN_ARGUMENTS[provider]
    units = list(tool_units(context.get("tools")))
    match provider:
        case "text":
            units = list(_prompt(context.get("prompt"), nonce))
        case "openai-responses":
            units += _head_text(context.get("instructions"), "instructions", heads)
            units += read_messages(_items(context.get("input"), "input"), "input")
        case "gemini":
            units += _head_text(_gemini_head(context.get("system_instruction")), "system_instruction", heads)
            units += read_messages(_items(context.get("contents"), "contents"), "contents")
        case "anthropic":
            units += blocks_of(context.get("system"), "system", "head", {"role": "system"})
            units += read_messages(_items(context.get("messages"), "messages"), "messages")
        case _:
            units += read_messages(_items(context.get("messages"), "messages"), "messages")
    for name, value in context.items():
        if name not in own and value not in (None, "", [], {}):
            units.append(Unit("argument", name, value if isinstance(value, str) else canonical(value), name))
    return units


def _items(value: object, name: str) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if not isinstance(value, (list, tuple)):
        raise InputError(f"sent: `{name}` is {type(value).__name__}; expected a list of messages")
    return list(value)


def read_messages(wires: Iterable[Any], name: str) -> Iterator[Unit]:
    """The units of messages, response items or Gemini's contents, as their argument's name says."""
    return _contents(wires) if name == "contents" else _messages(wires, name)


def _messages(wires: Iterable[Any], name: str) -> Iterator[Unit]:
    for index, wire in enumerate(wires):
        path = f"{name}[{index}]"
        if not isinstance(wire, dict):
            yield Unit("dynamic", "no message", canonical(wire), path)
            continue
        wire = unmarked(wire)
        if "role" not in wire:
            yield unit_of(wire, path, "dynamic", {})
            continue
        channel: Channel = "head" if wire["role"] in _OPERATOR_ROLES else "dynamic"
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


def _gemini_head(value: object) -> object:
    """A system instruction: a text, ``{"parts": […]}`` or a list of either, as one text."""
    if isinstance(value, dict) and set(value) <= {"parts", "role"}:
        return _gemini_head(value.get("parts"))
    if isinstance(value, dict) and set(value) == {"text"}:
        return value["text"]
    if isinstance(value, list):
        texts = [_gemini_head(one) for one in value]
        if all(isinstance(text, str) for text in texts):
            return JOINT.join(text for text in texts if isinstance(text, str))
    return value


def _head_text(value: object, path: str, heads: Iterable[str]) -> Iterator[Unit]:
    """One text as sections: those of `heads` that stand in it, and what is between them."""
    if value is None or value == "":
        return
    if not isinstance(value, str):
        yield Unit("head", "head", canonical(value), path)
        return
    claimed: list[tuple[int, int]] = []
    for text in sorted(set(filter(None, heads)), key=len, reverse=True):
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
    """What stands between known sections: a joint, a text set off by joints, or one that hangs on a section."""
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


# -- gemini ------------------------------------------------------------------------------------------------------


def _contents(contents: Iterable[Any]) -> Iterator[Unit]:
    for index, content in enumerate(contents):
        path = f"contents[{index}]"
        if isinstance(content, dict) and isinstance(content.get("content"), str) and "parts" not in content:
            content = {"role": content.get("role"), "parts": [{"text": content["content"]}]}
        if not isinstance(content, dict) or not isinstance(content.get("parts"), list):
            yield Unit("dynamic", "no content", canonical(content), path)
            continue
        frame = {"role": "user", **{key: value for key, value in content.items() if key != "parts"}}
        channel: Channel = "head" if frame["role"] in _OPERATOR_ROLES else "dynamic"
        for number, part in enumerate(content["parts"]):
            snake = {SNAKE.get(k, k): v for k, v in part.items()} if isinstance(part, dict) else part
            yield unit_of(snake, f"{path}.parts[{number}]", channel, frame, opens=number == 0)


# -- text --------------------------------------------------------------------------------------------------------


def _prompt(prompt: object, nonce: str) -> Iterator[Unit]:
    """The spans of a text prompt, by this nonce or the one it opens with; every character is in one unit."""
    if prompt is None:
        return
    if not isinstance(prompt, str):
        raise InputError(f"sent: `prompt` is {type(prompt).__name__}; expected text")
    nonce = nonce if nonce and f"<{nonce} " in prompt else prompt_nonce(prompt)
    mark = re.compile(rf"^<{re.escape(nonce)} ([^\n]*)>\n", re.MULTILINE) if nonce else None
    marks = list(mark.finditer(prompt)) if mark else []
    start = marks[0].start() if marks else len(prompt)
    if start:
        yield Unit("head", "preamble", prompt[:start], "prompt")
    end = re.search(rf"^</{re.escape(nonce)}>\s*\Z", prompt, re.MULTILINE) if marks else None
    body_stop = end.start() if end else len(prompt)
    for index, found in enumerate(marks):
        stop = marks[index + 1].start() if index + 1 < len(marks) else body_stop
        text = prompt[found.end() : stop]
        whole = text.endswith("\n")
        yield _span(found[1], text[:-1] if whole else text, whole)
    if end:
        yield Unit("dynamic", f"end {nonce}", end[0], "prompt")


def prompt_nonce(prompt: str) -> str:
    """The nonce that a text prompt's first opening line carries; empty where there is none."""
    found = _OPENING.search(prompt)
    return found[1] if found else ""


def _span(label: str, text: str, whole: bool) -> Unit:
    word = label.split(" ")[0]
    channel: Channel = "dynamic" if word == "dynamic" else "tools" if word == "tools" else "head"
    return Unit(channel, label if whole else label + CUT, text, f"prompt <{word}>")
