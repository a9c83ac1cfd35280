"""A transcript as every reader returns it: what the operator said up front, then the messages in order.

`Transcript.entries()` opens a fresh iterator each time. A file that is one JSON document is checked as a
whole when it is read; a JSONL file of messages streams from disk, and each line is checked when it is
reached, so `entries()` may raise `InvalidTranscript` or `InputTooLarge` halfway.

Leading system and developer messages are in `Transcript.system` and take no ordinal: an operator passed the
file, so they are the operator's words. One that comes later is an ordinary entry.

Tool declarations are the file's own, or open stubs made from the names that were called: a transcript often
holds the calls and not the declarations. A stub has the dialect of the message that called, an empty
description and a schema that allows anything, so that a payload rebuilt from the transcript is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ctxsteward.schemas import Finding, InvalidTranscript, Wire

from .strict_json import at, show


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptEntry:
    """One message and what its file knows about it."""

    wire: Wire
    """The provider's dict, verbatim for chat formats. Treat it as read-only."""
    id: str | None = None
    """The file's own id of the message, unique within the transcript."""
    ts: str | None = None
    """ISO 8601; without an offset where the file has none."""
    principal: str | None = None
    phase: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """One conversation of a file."""

    source: str
    """The file's name as given."""
    format: str
    """openai, anthropic, tau-bench, swe-agent or locomo: what was decided, never `auto`."""
    session: str
    """A suggested session id, different for each transcript of a file."""
    system: tuple[str, ...] = ()
    """The operator's messages from the start of the transcript, in order; empty ones are left out."""
    tools: tuple[Wire, ...] = ()
    """Declared in the file, else open stubs of the names that were called (finding `tools_inferred`)."""
    findings: tuple[Finding, ...] = ()
    open_entries: Callable[[], Iterator[TranscriptEntry]] = field(repr=False, compare=False)
    """Opens a fresh iterator; `entries()` is the way to call it."""

    def entries(self) -> Iterator[TranscriptEntry]:
        """The messages from the first one on; each call starts anew."""
        return self.open_entries()


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
