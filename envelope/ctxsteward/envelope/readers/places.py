"""Where in a file something is: ``line 4``, ``messages[3].content``, ``line 4, messages[3]``.

>>> at("line 4", "messages[3]")
'line 4, messages[3]'
>>> at("line 4, messages[3]", "role")
'line 4, messages[3].role'
>>> at("[1]", "traj[3]")
'[1].traj[3]'
"""

from __future__ import annotations

from collections.abc import Iterator

from ctxsteward.schemas import InputTooLarge, InvalidMessage, InvalidTranscript, Message


def at(place: str, path: str) -> str:
    """A path inside a place."""
    if not place or not path:
        return place or path
    if place.startswith("line ") and "," not in place:
        return f"{place}, {path}"
    return f"{place}{path}" if path.startswith("[") else f"{place}.{path}"


def inside(value: object) -> Iterator[tuple[str, object]]:
    """Every node of a JSON value with its path, depth first, in document order."""
    stack: list[tuple[str, object]] = [("messages" if _is_message_list(value) else "", value)]
    while stack:
        path, node = stack.pop()
        yield path, node
        children: list[tuple[str, object]] = []
        if isinstance(node, dict):
            children = [(at(path, _step(key)), child) for key, child in node.items()]
        elif isinstance(node, list):
            children = [(f"{path}[{index}]", child) for index, child in enumerate(node)]
        stack.extend(reversed(children))


def printable(text: str) -> str:
    """The text with a question mark for each lone surrogate, which no stream would print."""
    return text.encode("utf-8", "replace").decode()


def show(value: object) -> str:
    """What a JSON value is, in words, for a refusal.

    >>> show({"a": 1, "b": 2}), show([]), show(5), show(None)
    ('an object with `a`, `b`', 'an array of 0', 'the number 5', 'null')
    """
    match value:
        case dict():
            keys = ", ".join(f"`{key:.30}`" for key in list(value)[:6])
            return f"an object with {keys or 'no keys'}"
        case list():
            return f"an array of {len(value)}"
        case str():
            return f"the text {value[:40]!r}"
        case bool() | None:
            return {True: "true", False: "false", None: "null"}[value]
        case _:
            return f"the number {value}"[:60]


def checked(wire: object, source: str, where: str) -> Message:
    """The typed view of a message, or a refusal that says where it stands in the file."""
    if not isinstance(wire, dict):
        raise InvalidTranscript(source, where, f"found {show(wire)}", "expected a message with `role` and `content`")
    if not isinstance(wire.get("role", ""), str):
        raise InvalidTranscript(source, at(where, "role"), f"found {show(wire['role'])}", "expected a role's name")
    try:
        return Message.from_wire(wire)
    except InvalidMessage as error:
        raise InvalidTranscript(
            source, at(where, error.field), f"found {error.found}", f"expected {error.expected}"
        ) from error
    except InputTooLarge as error:
        raise InputTooLarge(f"{source}: {where}", error.size_bytes, error.cap_bytes) from error


def _step(key: str) -> str:
    return key if key.isidentifier() and key.isascii() else f"[{ascii(key)[:40]}]"


def _is_message_list(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) and "role" in item for item in value[:1])
