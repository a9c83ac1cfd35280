"""Tool declarations of a transcript: the file's own, or open stubs made from the names that were called.

A transcript often holds the calls and not the declarations. A stub has the dialect of the message that
called, an empty description and a schema that allows anything, so that a payload rebuilt from the
transcript is valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ctxsteward.schemas import Finding, InvalidTranscript, Wire

from .places import at, show

_NAMES_SHOWN = 12


def declared(value: object, source: str, where: str) -> tuple[Wire, ...]:
    """The `tools` of a request body, verbatim; null and a missing key are none."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidTranscript(source, where, f"found {show(value)}", "expected an array of tool declarations")
    for index, tool in enumerate(value):
        if not isinstance(tool, dict):
            raise InvalidTranscript(source, at(where, f"[{index}]"), f"found {show(tool)}", "expected a declaration")
    return tuple(value)


def called(wire: Wire) -> Iterator[Wire]:
    """A stub for each call in a message; what is not well formed is left to the message's own check."""
    calls = wire.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        if isinstance(name, str):
            yield {
                "type": "function",
                "function": {"name": name, "description": "", "parameters": _anything()},
            }
    content = wire.get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_use" and isinstance(block.get("name"), str):
            yield {"name": block["name"], "description": "", "input_schema": _anything()}


def inferred(wires: Iterable[Wire]) -> dict[str, Wire]:
    """Stubs by name, in the order of the first call."""
    stubs: dict[str, Wire] = {}
    for wire in wires:
        for stub in called(wire):
            stubs.setdefault(stub_name(stub), stub)
    return stubs


def stub_name(stub: Wire) -> str:
    """The name that a stub of `called` declares."""
    name: str = stub["name"] if "name" in stub else stub["function"]["name"]
    return name


def tools_inferred(stubs: dict[str, Wire]) -> tuple[Finding, ...]:
    """The finding that goes with stubs; none without them."""
    if not stubs:
        return ()
    names = ", ".join(list(stubs)[:_NAMES_SHOWN]) + (", …" if len(stubs) > _NAMES_SHOWN else "")
    text = f"the file declares no tools; open stubs stand for the {len(stubs)} called: {names}"
    return (Finding(kind="tools_inferred", field="tools", text=text),)


def _anything() -> Wire:
    return {"type": "object", "properties": {}, "additionalProperties": True}
