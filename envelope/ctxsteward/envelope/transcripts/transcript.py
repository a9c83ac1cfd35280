"""A transcript as every reader returns it: the operator's texts at the start, then the messages in order.

`Transcript.entries()` opens a fresh iterator each time. A file that is one JSON document is checked as a whole when it
is read. A JSONL file of messages streams from disk, and each line is checked when it is reached, so `entries()` may
raise `InvalidTranscript` or `InputTooLarge` halfway.

Leading system and developer messages are in `Transcript.system` and take no ordinal: an operator passed the file, so
they are the operator's words. A later one is an ordinary entry.

Tool declarations come from the file, else they are open stubs with the names of the called tools, because a transcript
often has calls without declarations. A stub has the dialect of the calling message, an empty description and a schema
that allows anything, so that a payload rebuilt from the transcript is valid.

This module reads OpenAI chat, Anthropic and Gemini messages: an array, a request body, a JSONL file, or a tau-bench
run.

A request body is ``{"messages": […], "system"?: text | blocks, "tools"?: […]}``, or Gemini's ``{"contents": […],
"systemInstruction"?: text | content, "tools"?: […]}``, or that of OpenAI's responses, ``{"input": [items],
"instructions"?: text, "tools"?: […]}``; its other keys (model, temperature) are not part of the transcript. The wire
dicts are verbatim. The provider is decided by the first message that only one provider would write (`tool_calls`, role
`tool`: OpenAI; `tool_use`, `thinking`: Anthropic; `parts`: Gemini), else by the request's `contents`, `system` or
`tools`, else it is openai.

A JSONL file with a message on each line (`read_lines`) is read twice: first for the format, the leading system messages
and the names of the called tools (only lines that can matter are parsed), then by `entries()`, which checks every line.

A tau-bench run (`read_run`) is ``{"task_id", "trial", "reward", "info", "traj": [OpenAI chat messages]}``. The reward
is not part of the transcript. A crashed run has an empty `traj`; it gives a transcript without entries, with the
finding `empty_run`.

Shapes: the providers' published API references; sierra-research/tau-bench, `EnvRunResult`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from ctxsteward.schemas import Finding, InvalidMessage, Message
from ctxsteward.schemas.errors import InvalidTranscript
from ctxsteward.schemas.message import MAX_MESSAGE_BYTES, Wire, gemini_field, is_gemini

from .strict_json import InputLine, JsonInput, at, checked, decode, show


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptEntry:
    """One message with the metadata that its file has."""

    wire: Wire
    """The provider's dict, verbatim for chat formats. Treat it as read-only."""
    id: str | None = None
    """The file's own id of the message, unique within the transcript."""
    ts: str | None = None
    """ISO 8601, without an offset if the file has none."""
    principal: str | None = None
    phase: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """One conversation of a file."""

    source: str
    """The file's name as given."""
    format: str
    """openai, openai-responses, anthropic, gemini, tau-bench, swe-agent or locomo, as recognized; never `auto`."""
    session: str
    """A suggested session id, different for each transcript of a file."""
    system: tuple[str, ...] = ()
    """The operator's messages from the start of the transcript, in order; empty ones are left out."""
    tools: tuple[Wire, ...] = ()
    """Declarations from the file, else open stubs of the called tools (finding `tools_inferred`)."""
    findings: tuple[Finding, ...] = ()
    open_entries: Callable[[], Iterator[TranscriptEntry]] = field(repr=False, compare=False)
    """Opens a fresh iterator; call `entries()` instead."""

    def entries(self) -> Iterator[TranscriptEntry]:
        """Return an iterator over all messages; each call starts anew."""
        return self.open_entries()


_NAMES_SHOWN = 12


def declared(value: object, source: str, where: str) -> tuple[Wire, ...]:
    """Return the `tools` of a request body, verbatim; null or a missing key gives none."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidTranscript(source, where, f"found {show(value)}", "expected an array of tool declarations")
    for index, tool in enumerate(value):
        if not isinstance(tool, dict):
            raise InvalidTranscript(source, at(where, f"[{index}]"), f"found {show(tool)}", "expected a declaration")
    return tuple(value)


def called(wire: Wire) -> Iterator[Wire]:
    """Yield a stub for each call in a message; malformed calls are left to the message's own check."""
    calls = wire.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        if isinstance(name, str):
            yield {
                "type": "function",
                "function": {"name": name, "description": "", "parameters": _anything()},
            }
    if wire.get("type") == "function_call":
        wire = {"content": [wire]}
    parts = wire["parts"] if is_gemini(wire) else ()
    for part in parts if isinstance(parts, list) else ():
        held = gemini_field(part) if isinstance(part, dict) and part else None
        call = held.value if held is not None and held.kind == "function_call" else None
        if isinstance(call, dict) and isinstance(name := call.get("name"), str):
            yield {"name": name, "description": "", "parameters_json_schema": _anything()}
    content = wire.get("content")
    for block in content if isinstance(content, list) else ():
        name = block.get("name") if isinstance(block, dict) else None
        if isinstance(name, str) and block.get("type") == "tool_use":
            yield {"name": name, "description": "", "input_schema": _anything()}
        elif isinstance(name, str) and block.get("type") == "function_call":
            yield {"type": "function", "name": name, "description": "", "parameters": _anything()}


def inferred(wires: Iterable[Wire]) -> dict[str, Wire]:
    """Return stubs by name, in the order of the first call."""
    stubs: dict[str, Wire] = {}
    for wire in wires:
        for stub in called(wire):
            stubs.setdefault(stub_name(stub), stub)
    return stubs


def stub_name(stub: Wire) -> str:
    """Return the name that a stub of `called` declares."""
    name: str = stub["name"] if "name" in stub else stub["function"]["name"]
    return name


def tools_inferred(stubs: dict[str, Wire]) -> tuple[Finding, ...]:
    """Return the finding about stubs, or none without stubs."""
    if not stubs:
        return ()
    names = ", ".join(list(stubs)[:_NAMES_SHOWN]) + (", …" if len(stubs) > _NAMES_SHOWN else "")
    text = f"the file declares no tools; open stubs stand for the {len(stubs)} called: {names}"
    return (Finding(kind="tools_inferred", field="tools", text=text),)


def _anything() -> Wire:
    return {"type": "object", "properties": {}, "additionalProperties": True}


# -- chat ------------------------------------------------------------------------------------------------------------


MAX_LINE_BYTES = 2 * MAX_MESSAGE_BYTES
"""Limit of a line with one message: escapes (``\\u4e2d``) may double the size of the message."""


@dataclass(frozen=True, slots=True)
class TranscriptValue:
    """One transcript's JSON value and its place in the file."""

    source: str
    place: str
    """``line 3``, ``[2]``, or empty for a whole document."""
    value: object
    stem: str
    """The file's name without folder and suffix."""
    position: int | None
    """0-based position in a file of many transcripts, else None."""

    @property
    def session(self) -> str:
        return self.stem if self.position is None else f"{self.stem}-{self.position}"


MessagePlace = tuple[str, Message]
"""The place of a message in its file, and the message."""


_HEADS = {
    "messages": ("system",),
    "contents": ("systemInstruction", "system_instruction"),
    "input": ("instructions",),
}
"""Keys of a request's system text, by the key of its messages."""


def read_chat(item: TranscriptValue, format: str) -> Transcript:
    """Return the transcript of an array of messages or a request body."""
    source, body = item.source, item.value if isinstance(item.value, dict) else {"messages": item.value}
    key = next(name for name in _HEADS if name in body)
    if key == "contents" and isinstance(config := body.get("config"), dict):
        body = {**config, **body}
    prefix = key if isinstance(item.value, dict) or not item.place.startswith("[") else ""
    places = message_places(body[key], source, at(item.place, prefix))
    tools = declared(body.get("tools"), source, at(item.place, "tools"))
    head = next((name for name in _HEADS[key] if name in body), _HEADS[key][0])
    system = _request_system(body.get(head), source, at(item.place, head))
    lifted, rest = lift_system(places)
    decided = _decide(format, places, source) or (_hinted(body, tools) if format == "auto" else format)
    return chat_transcript(
        source=source,
        format=decided,
        session=item.session,
        system=system + lifted,
        tools=tools,
        messages=rest,
    )


def chat_transcript(
    *,
    source: str,
    format: str,
    session: str,
    system: tuple[str, ...],
    messages: Iterable[MessagePlace],
    tools: tuple[Wire, ...] = (),
) -> Transcript:
    """Return a transcript of checked messages that are already in memory."""
    entries = tuple(TranscriptEntry(wire=message.wire) for _, message in messages)
    stubs = {} if tools else inferred(entry.wire for entry in entries)
    return Transcript(
        source=source,
        format=format,
        session=session,
        system=system,
        tools=tools or tuple(stubs.values()),
        findings=tools_inferred(stubs),
        open_entries=entries.__iter__,
    )


def message_places(value: object, source: str, where: str) -> list[MessagePlace]:
    """Check an array of messages, each at ``where[index]``; refuse an empty one."""
    if not isinstance(value, list):
        raise InvalidTranscript(source, where, f"found {show(value)}", "expected an array of messages")
    if not value:
        raise InvalidTranscript(source, where, "no messages", "pass a transcript with at least one message")
    places = ((f"{where}[{index}]", wire) for index, wire in enumerate(value))
    return [(place, checked(wire, source, place)) for place, wire in places]


def lift_system(places: list[MessagePlace]) -> tuple[tuple[str, ...], list[MessagePlace]]:
    """Return the texts of the leading system and developer messages, and the messages after them."""
    count = 0
    while count < len(places) and _is_system(places[count][1]):
        count += 1
    texts = tuple(message.text for _, message in places[:count])
    return tuple(text for text in texts if text), places[count:]


def read_lines(raw: JsonInput, format: str, stem: str) -> Transcript:
    """Return the transcript of a JSONL file of messages; its entries stream from disk."""
    system: list[str] = []
    stubs: dict[str, Wire] = {}
    dialect, leading = None, True
    for line in raw.lines(MAX_LINE_BYTES):
        if not leading and not _matters(line.data, dialect is not None):
            continue
        wire, where = _wire(raw, line), f"line {line.number}"
        if leading or dialect is None:
            message = checked(wire, raw.source, where)
            leading = leading and _is_system(message)
            if leading:
                system.append(message.text)
                continue
            dialect = _decide(format, ((where, message),), raw.source)
        if isinstance(wire, dict):
            for stub in called(wire):
                stubs.setdefault(stub_name(stub), stub)
    return Transcript(
        source=raw.source,
        format=dialect or (format if format != "auto" else "openai"),
        session=stem,
        system=tuple(text for text in system if text),
        tools=tuple(stubs.values()),
        findings=tools_inferred(stubs),
        open_entries=partial(_stream, raw, len(system)),
    )


def _matters(data: bytes, is_decided: bool) -> bool:
    """Return whether a line may call a tool or, until the provider is decided, decide it."""
    if any(name in data for name in (b"tool_calls", b"tool_use", b"functionCall", b"function_call")):
        return True
    return not is_decided and any(name in data for name in (b'"type"', b'"tool', b'"parts"'))


def _stream(raw: JsonInput, skip: int) -> Iterator[TranscriptEntry]:
    source = raw.source
    for line in raw.lines(MAX_LINE_BYTES):
        if skip:
            skip -= 1
            continue
        yield TranscriptEntry(wire=checked(_wire(raw, line), source, f"line {line.number}").wire)


def _wire(raw: JsonInput, line: InputLine) -> object:
    return decode(line.data, raw.source, f"line {line.number}")


def _is_system(message: Message) -> bool:
    return message.role in ("system", "developer")


def _decide(format: str, places: Iterable[MessagePlace], source: str) -> str | None:
    """Return the provider that alone would write one of these messages, or None if several would."""
    for where, message in places:
        if message.dialect == "shared" or not message.parts:
            continue
        dialect = "openai-responses" if message.dialect == "responses" else message.dialect
        if dialect == "openai-responses" and format == "openai":
            return format  # blocks of responses used to be read under this name
        if format not in ("auto", dialect):
            raise InvalidTranscript(
                source, where, f"a message of {dialect}", f"read it with format='auto' or '{dialect}'"
            )
        return dialect
    return None


def _hinted(body: Wire, tools: tuple[Wire, ...]) -> str:
    if "contents" in body:
        return "gemini"
    if "input" in body:
        return "openai-responses"
    anthropic = body.get("system") is not None or any("input_schema" in tool for tool in tools)
    return "anthropic" if anthropic else "openai"


def _request_system(value: object, source: str, where: str) -> tuple[str, ...]:
    """Return the texts of a request's system text: text, text blocks (one text each), or Gemini's content."""
    if value is None:
        return ()
    if isinstance(value, dict) and "parts" in value:
        wire: Wire = {"parts": value["parts"]}
    elif isinstance(value, str | list):
        wire = {"role": "system", "content": value}
    else:
        raise InvalidTranscript(source, where, f"found {show(value)}", "expected text or an array of text blocks")
    try:
        message = Message.from_wire(wire)
    except InvalidMessage as error:
        path = at(where, error.field.removeprefix("content"))
        raise InvalidTranscript(source, path, f"found {error.found}", f"expected {error.expected}") from error
    return tuple(part.text for part in message.parts if part.kind == "text" and part.text)


def read_run(item: TranscriptValue) -> Transcript:
    """Return the transcript of one run; its session is ``<stem>-task<task_id>-trial<trial>``."""
    assert isinstance(item.value, dict)
    traj = item.value["traj"]
    crashed = traj == []
    places = [] if crashed else message_places(traj, item.source, at(item.place, "traj"))
    system, messages = lift_system(places)
    transcript = chat_transcript(
        source=item.source, format="tau-bench", session=_session(item), system=system, messages=messages
    )
    if crashed:
        finding = Finding(kind="empty_run", field="traj", text="the run has no messages; it ended before its first")
        return replace(transcript, findings=(finding,))
    return transcript


def _session(item: TranscriptValue) -> str:
    assert isinstance(item.value, dict)
    names = [item.stem]
    for key, label in (("task_id", "task"), ("trial", "trial")):
        value = item.value.get(key)
        if value is None and key == "trial":
            continue
        if not isinstance(value, int | str) or isinstance(value, bool):
            raise InvalidTranscript(
                item.source, at(item.place, key), f"found {show(value)}", "expected a number or text"
            )
        names.append(f"{label}{value}")
    return "-".join(names)
