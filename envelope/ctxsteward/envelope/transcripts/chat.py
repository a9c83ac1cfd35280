"""Readers of OpenAI chat and Anthropic messages: an array, a request body, a JSONL file, or a tau-bench run.

A request body is ``{"messages": […], "system"?: text | blocks, "tools"?: […]}``; its other keys (model, temperature)
are not the transcript's. The wire dicts are verbatim. Which provider wrote them is decided by the first message that
only one of them would write (`tool_calls`, role `tool`: OpenAI; `tool_use`, `thinking`: Anthropic), else by the
request's `system` or `tools`, else it is openai.

A JSONL file with a message on each line (`read_lines`) is passed over twice: first lightly, for the format, the leading
system messages and the names of the tools called (only lines that can matter are parsed), then by `entries()`, which
checks every line.

A tau-bench run (`read_run`) is ``{"task_id", "trial", "reward", "info", "traj": [OpenAI chat messages]}``. The reward
is not part of the transcript. A run that crashed has an empty `traj`: it is a transcript without entries, with the
finding `empty_run`.

Shapes: the providers' published API references; sierra-research/tau-bench, `EnvRunResult`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from ctxsteward.schemas import MAX_MESSAGE_BYTES, Finding, InvalidMessage, InvalidTranscript, Message, Wire

from .strict_json import InputLine, JsonInput, at, checked, decode, show
from .transcript import Transcript, TranscriptEntry, called, declared, inferred, stub_name, tools_inferred

MAX_LINE_BYTES = 2 * MAX_MESSAGE_BYTES
"""A line that holds one message: escapes (``\\u4e2d``) may double what the message itself may have."""


@dataclass(frozen=True, slots=True)
class TranscriptValue:
    """One transcript's JSON value and where in the file it stands."""

    source: str
    place: str
    """``line 3``, ``[2]``, or nothing for a whole document."""
    value: object
    stem: str
    """The file's name without folder and suffix."""
    position: int | None
    """0-based where a file holds many transcripts, else None."""

    @property
    def session(self) -> str:
        return self.stem if self.position is None else f"{self.stem}-{self.position}"


MessagePlace = tuple[str, Message]
"""Where a message of a transcript stands, and the message."""


def read_chat(item: TranscriptValue, format: str) -> Transcript:
    """The transcript of an array of messages or a request body."""
    source, body = item.source, item.value if isinstance(item.value, dict) else {"messages": item.value}
    prefix = "messages" if isinstance(item.value, dict) or not item.place.startswith("[") else ""
    places = message_places(body["messages"], source, at(item.place, prefix))
    tools = declared(body.get("tools"), source, at(item.place, "tools"))
    system = _request_system(body.get("system"), source, at(item.place, "system"))
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
    """A transcript of checked messages that are already in memory."""
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
    """Check an array of messages, each at ``where[index]``; none at all is refused."""
    if not isinstance(value, list):
        raise InvalidTranscript(source, where, f"found {show(value)}", "expected an array of messages")
    if not value:
        raise InvalidTranscript(source, where, "no messages", "pass a transcript with at least one message")
    places = ((f"{where}[{index}]", wire) for index, wire in enumerate(value))
    return [(place, checked(wire, source, place)) for place, wire in places]


def lift_system(places: list[MessagePlace]) -> tuple[tuple[str, ...], list[MessagePlace]]:
    """The texts of the leading system and developer messages, and the messages after them."""
    count = 0
    while count < len(places) and _is_system(places[count][1]):
        count += 1
    texts = tuple(message.text for _, message in places[:count])
    return tuple(text for text in texts if text), places[count:]


def read_lines(raw: JsonInput, format: str, stem: str) -> Transcript:
    """The transcript of a JSONL file of messages; its entries stream from disk."""
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
    """Whether a line may call a tool or, while that is open, may be of one provider only."""
    if b"tool_calls" in data or b"tool_use" in data:
        return True
    return not is_decided and (b'"type"' in data or b'"tool' in data)


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
    """The provider that alone would write one of these messages; None if either would."""
    for where, message in places:
        if message.dialect == "shared" or not message.parts:
            continue
        if format not in ("auto", message.dialect):
            found = f"an {message.dialect} message"
            raise InvalidTranscript(source, where, found, f"read it with format='auto' or '{message.dialect}'")
        return message.dialect
    return None


def _hinted(body: Wire, tools: tuple[Wire, ...]) -> str:
    anthropic = body.get("system") is not None or any("input_schema" in tool for tool in tools)
    return "anthropic" if anthropic else "openai"


def _request_system(value: object, source: str, where: str) -> tuple[str, ...]:
    """Anthropic's `system`: a text, or text blocks, each one text of its own."""
    if value is None:
        return ()
    if not isinstance(value, str | list):
        raise InvalidTranscript(source, where, f"found {show(value)}", "expected text or an array of text blocks")
    try:
        message = Message.from_wire({"role": "system", "content": value})
    except InvalidMessage as error:
        path = at(where, error.field.removeprefix("content"))
        raise InvalidTranscript(source, path, f"found {error.found}", f"expected {error.expected}") from error
    return tuple(part.text for part in message.parts if part.kind == "text" and part.text)


def read_run(item: TranscriptValue) -> Transcript:
    """The transcript of one run; its session is ``<stem>-task<task_id>-trial<trial>``."""
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
