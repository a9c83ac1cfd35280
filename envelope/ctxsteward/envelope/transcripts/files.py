"""Read files of transcripts: recognize the layout, and give each transcript's value to its format's reader.

Three layouts: one JSON document (an array of messages, a request, a run, an array of any of these), JSONL with a
transcript on each line, and JSONL with a message on each line. Only the last is streamed (`read_lines`). If the first
line is a whole JSON value and another line follows, the file is JSONL.

The format of a JSON value is recognized by its shape alone; a format named by the caller must agree.

    message     an object with `role` or `parts`: one line of a JSONL transcript, or one element of an array
    chat        an array of messages, or a request body {"messages": […], "system"?, "tools"?}; Gemini's is
                {"contents": […], "systemInstruction"?, "tools"?}, with both also in `config`, that of OpenAI's
                responses {"input": [items], "instructions"?, "tools"?}
    tau-bench   {"task_id", "trial", "reward", "info", "traj": [messages]}
    swe-agent   {"history": […]} of a `.traj` file
    locomo      {"sample_id", "conversation": {"speaker_a", "speaker_b", "session_1": […], …}}

`openai`, `openai-responses`, `anthropic` and `gemini` are all `chat`; their messages differ. `TRANSCRIPT_FORMATS` has
the other formats.

**SWE-agent** `.traj` files: the agent's `history` is rewritten as clean OpenAI chat messages. Two generations are read.
The newer one has `tool_calls`, and results in role `tool` with `tool_call_ids` (a list). In the older one the
assistant's content has a thought and a fenced action, also given in `thought` and `action`, and the observation comes
back as a user message. They become a call ``call_<position in history>`` with the arguments ``{"command": action}`` and
a result in role `tool`. SWE-agent's own keys (agent, thought, action, message_type, cache_control, …) are left out.

The first user message outside a demonstration is the task. A demonstration (`is_demo`) stays an entry, with phase
`demo`; all other entries of such a file have phase `task`. An assistant message without an action makes no call, and
the user message after it stays one. Shape: SWE-agent/SWE-agent, `sweagent/types.py` and the run files it publishes.

**LoCoMo** conversations: dated sessions of two speakers; `speaker_a` is the user, `speaker_b` the assistant.
``{"sample_id", "conversation": {"speaker_a", "speaker_b", "session_1_date_time": "1:56 pm on 8 May, 2023", "session_1":
[{"speaker", "dia_id", "text", "blip_caption"?}, …], …}}``. A turn's content is ``Speaker: text``, plus `` [image:
caption]``; its id is the `dia_id`, its time that of the session. Sessions are read in the order of their numbers; a
date without a session is skipped. Questions, summaries and observations are not part of the transcript. Shape:
snap-research/LoCoMo, `data/locomo10.json`.

>>> iso_date("1:56 pm on 8 May, 2023")
'2023-05-08T13:56:00'

Raises `InvalidTranscript` and `InputTooLarge`, naming the file, the line (from 1) or index (from 0), and the field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ctxsteward.schemas import Message
from ctxsteward.schemas.errors import InputTooLarge, InvalidTranscript
from ctxsteward.schemas.message import Wire

from .strict_json import InputLine, JsonInput, at, checked, decode, is_cut_short, memory_input, open_input, show
from .transcript import (
    Transcript,
    TranscriptEntry,
    TranscriptValue,
    inferred,
    read_chat,
    read_lines,
    read_run,
    tools_inferred,
)

_SESSION = re.compile(r"session_([0-9]{1,6})", re.ASCII)
_DATE = re.compile(
    r"\s*([0-9]{1,2}):([0-9]{2})\s*([ap])\.?m\.?\s+on\s+([0-9]{1,2})\s+([a-z]{3})[a-z]*\.?,?\s+([0-9]{4})\s*",
    re.ASCII | re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def read_sample(item: TranscriptValue) -> Transcript:
    """Return the transcript of one sample; its session is ``<stem>-<sample_id>``."""
    assert isinstance(item.value, dict)
    sample_id = item.value.get("sample_id")
    if sample_id is not None and not isinstance(sample_id, int | str):
        raise InvalidTranscript(item.source, at(item.place, "sample_id"), f"found {show(sample_id)}", "expected text")
    where, conversation = at(item.place, "conversation"), item.value["conversation"]
    if not isinstance(conversation, dict):
        raise InvalidTranscript(item.source, where, f"found {show(conversation)}", "expected an object of sessions")
    entries = tuple(_entries(conversation, item.source, where))
    if not entries:
        raise InvalidTranscript(item.source, where, "no messages", "expected `session_1` with at least one turn")
    return Transcript(
        source=item.source,
        format="locomo",
        session=item.session if sample_id is None else f"{item.stem}-{sample_id}",
        open_entries=entries.__iter__,
    )


def iso_date(text: str) -> str | None:
    """Return a LoCoMo date in ISO 8601, or None if it is no such date."""
    match = _DATE.fullmatch(text)
    if match is None or match[5].lower() not in _MONTHS or not 1 <= int(match[1]) <= 12:
        return None
    hour = int(match[1]) % 12 + (12 if match[3].lower() == "p" else 0)
    month = _MONTHS.index(match[5].lower()) + 1
    try:
        return datetime(int(match[6]), month, int(match[4]), hour, int(match[2])).isoformat()
    except ValueError:
        return None


def _entries(conversation: Wire, source: str, where: str) -> Iterator[TranscriptEntry]:
    user = _text(conversation, "speaker_a", source, where)
    speakers = {_text(conversation, "speaker_b", source, where): "assistant", user: "user"}
    for key in sorted(filter(_SESSION.fullmatch, conversation), key=lambda key: int(key.removeprefix("session_"))):
        turns, date_key = conversation[key], f"{key}_date_time"
        if not isinstance(turns, list):
            raise InvalidTranscript(source, at(where, key), f"found {show(turns)}", "expected an array of turns")
        ts = _date(conversation, date_key, source, where)
        for index, turn in enumerate(turns):
            yield _entry(turn, speakers, ts, source, f"{at(where, key)}[{index}]")


def _entry(turn: object, speakers: dict[str, str], ts: str | None, source: str, where: str) -> TranscriptEntry:
    if not isinstance(turn, dict):
        raise InvalidTranscript(source, where, f"found {show(turn)}", "expected a turn with `speaker` and `text`")
    speaker = _text(turn, "speaker", source, where)
    if speaker not in speakers:
        hint = f"expected {' or '.join(map(repr, speakers))}, the conversation's speakers"
        raise InvalidTranscript(source, at(where, "speaker"), f"found {speaker!r:.60}", hint)
    role, content = speakers[speaker], f"{speaker}: {_text(turn, 'text', source, where)}"
    if turn.get("blip_caption") is not None:
        content += f" [image: {_text(turn, 'blip_caption', source, where)}]"
    return TranscriptEntry(
        wire=checked({"role": role, "content": content}, source, where).wire,
        id=None if turn.get("dia_id") is None else _text(turn, "dia_id", source, where),
        ts=ts,
        principal=speaker if role == "user" else None,
    )


def _date(conversation: Wire, key: str, source: str, where: str) -> str | None:
    if conversation.get(key) is None:
        return None
    text = _text(conversation, key, source, where)
    date = iso_date(text)
    if date is None:
        raise InvalidTranscript(source, at(where, key), f"found {text!r:.60}", "expected e.g. '1:56 pm on 8 May, 2023'")
    return date


def _text(node: Wire, key: str, source: str, where: str) -> str:
    value = node.get(key)
    if not isinstance(value, str):
        found = f"found {show(value)}" if key in node else "is missing"
        raise InvalidTranscript(source, at(where, key), found, "expected text")
    return value


_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""A tool name that providers accept."""


def read_trajectory(item: TranscriptValue) -> Transcript:
    """Return the transcript of one `.traj` file."""
    assert isinstance(item.value, dict)
    where, history = at(item.place, "history"), item.value["history"]
    if not isinstance(history, list) or not history:
        raise InvalidTranscript(item.source, where, f"found {show(history)}", "expected an array of messages")
    has_demo = any(isinstance(step, dict) and step.get("is_demo") is True for step in history)
    system: list[str] = []
    entries: list[TranscriptEntry] = []
    for is_demo, message in _messages(history, item.source, where):
        if not entries and not is_demo and message.role in ("system", "developer"):
            system.append(message.text)
        else:
            phase = ("demo" if is_demo else "task") if has_demo else None
            entries.append(TranscriptEntry(wire=message.wire, phase=phase))
    stubs = inferred(entry.wire for entry in entries)
    return Transcript(
        source=item.source,
        format="swe-agent",
        session=item.session,
        system=tuple(text for text in system if text),
        tools=tuple(stubs.values()),
        findings=tools_inferred(stubs),
        open_entries=tuple(entries).__iter__,
    )


class _PendingCalls(NamedTuple):
    """Calls that wait for their observation."""

    ids: tuple[str, ...] = ()
    comes_as_user: bool = False
    """Whether the next user message is the observation, as in the older generation."""


def _messages(history: list[object], source: str, where: str) -> Iterator[tuple[bool, Message]]:
    """Yield pairs of whether it is a demonstration and a message; a result for several calls gives one each."""
    waiting, was_demo = _PendingCalls(), False
    for position, step in enumerate(history):
        place = f"{where}[{position}]"
        original = checked(step, source, place)
        is_demo = original.wire.get("is_demo") is True
        wires, waiting = _rewritten(original.wire, position, waiting if is_demo == was_demo else _PendingCalls())
        was_demo = is_demo
        for wire in wires:
            yield is_demo, original if wire == original.wire else checked(wire, source, place)


def _rewritten(step: Wire, position: int, waiting: _PendingCalls) -> tuple[list[Wire], _PendingCalls]:
    """Return the clean messages of a step, and the calls that wait for an observation after it."""
    role, content = step["role"], _clean(step.get("content"))
    if role == "assistant" and step.get("tool_calls"):
        ids = tuple(call["id"] for call in step["tool_calls"] if isinstance(call.get("id"), str))
        return [{"role": role, "content": content, "tool_calls": step["tool_calls"]}], _PendingCalls(ids)
    if role == "assistant" and _has_text(step.get("action")):
        return [_thought_and_action(step, position)], _PendingCalls((f"call_{position}",), comes_as_user=True)
    if role == "assistant":
        return [{"role": role, "content": content}], _PendingCalls()
    if role == "tool" or (role == "user" and waiting.comes_as_user):
        ids = _answered(step) or waiting.ids or ("",)
        still = tuple(id for id in waiting.ids if id not in ids)
        return [{"role": "tool", "tool_call_id": id, "content": content} for id in ids], _PendingCalls(still)
    return [{"role": role, "content": content}], waiting


def _thought_and_action(step: Wire, position: int) -> Wire:
    action: str = step["action"]
    thought = step.get("thought")
    first_word = action.split(maxsplit=1)[0]
    function = {
        "name": first_word if _NAME.fullmatch(first_word) else "bash",
        "arguments": json.dumps({"command": action}, ensure_ascii=False),
    }
    call = {"id": f"call_{position}", "type": "function", "function": function}
    return {"role": "assistant", "content": thought if _has_text(thought) else None, "tool_calls": [call]}


def _answered(step: Wire) -> tuple[str, ...]:
    ids = step.get("tool_call_ids")
    if isinstance(ids, list):
        return tuple(id for id in ids if isinstance(id, str))
    single = step.get("tool_call_id")
    return (single,) if isinstance(single, str) else ()


def _clean(content: object) -> object:
    """Return content without the cache marks that SWE-agent puts into its blocks."""
    if not isinstance(content, list):
        return content
    return [
        {key: value for key, value in block.items() if key != "cache_control"} if isinstance(block, dict) else block
        for block in content
    ]


def _has_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


class TranscriptFormat(NamedTuple):
    """A format other than plain messages: how to recognize and read it, and special traits of its transcripts."""

    key: str
    """Key of a JSON object that identifies it."""
    called: str
    read: Callable[[TranscriptValue], Transcript]
    is_task_run: bool = False
    """Whether the assistant works on a task even if it called no tool."""
    is_between_people: bool = False
    """Whether both speakers are people, the second in the assistant's role; messages begin with the speaker's name."""
    has_demonstrations: bool = False
    """Whether entries of the phase `demo` come first as examples."""
    has_reward: bool = False
    """Whether its runs name their task and its result: `task_id`, `reward`."""


TRANSCRIPT_FORMATS: dict[str, TranscriptFormat] = {
    "tau-bench": TranscriptFormat("traj", "a tau-bench run", read_run, is_task_run=True, has_reward=True),
    "swe-agent": TranscriptFormat(
        "history", "a SWE-agent run", read_trajectory, is_task_run=True, has_demonstrations=True
    ),
    "locomo": TranscriptFormat("conversation", "a LoCoMo sample", read_sample, is_between_people=True),
}

_CHAT_FORMATS = ("openai", "openai-responses", "anthropic", "gemini")
FORMATS = ("auto", *_CHAT_FORMATS, *TRANSCRIPT_FORMATS)
"""Valid values of `format`. `Transcript.format` is never `auto`."""

_MARKS: dict[str, str] = {
    "role": "message",
    **{row.key: name for name, row in TRANSCRIPT_FORMATS.items()},
    "messages": "chat",
    "contents": "chat",
    "input": "chat",
    "parts": "message",
}
_NAMES = {
    "message": "a message",
    "chat": "a list of messages or a request",
    **{name: row.called for name, row in TRANSCRIPT_FORMATS.items()},
}
_OWN = {name: f"{row.called} with `{row.key}`" for name, row in TRANSCRIPT_FORMATS.items()}
_CHAT = "a message with `role`, or a request with `messages`"
_EXPECTED = {
    "auto": f"a message with `role`, a request with `messages`, {', '.join(list(_OWN.values())[:-1])}, "
    f"or {list(_OWN.values())[-1]}",
    **_OWN,
    "openai": _CHAT,
    "openai-responses": "a message with `role`, or a request with `input`",
    "anthropic": _CHAT,
    "gemini": "a content with `parts`, or a request with `contents`",
}


def formats_with(trait: str) -> frozenset[str]:
    """Return the names of the formats with this trait, a boolean field of `TranscriptFormat`."""
    return frozenset(name for name, row in TRANSCRIPT_FORMATS.items() if getattr(row, trait))


def known_format(name: str) -> str:
    """Return the name, or raise `InvalidTranscript` with the known ones."""
    if name not in FORMATS:
        raise InvalidTranscript("format", "", f"unknown format {name!r:.40}", f"expected one of {', '.join(FORMATS)}")
    return name


def shape_of(value: object, format: str, source: str, where: str) -> str:
    """Return the shape of one value; raise `InvalidTranscript` if it does not fit a given format."""
    shapes = ["chat"] if isinstance(value, list) else []
    if isinstance(value, dict):
        shapes = [shape for mark, shape in _MARKS.items() if mark in value]
    wanted = ("message", "chat") if format in _CHAT_FORMATS else (format,)
    for shape in shapes:
        if format == "auto" or shape in wanted:
            return shape
    hint = f"expected {_EXPECTED[format]}"
    if shapes:
        hint += f"; this is {_NAMES[shapes[0]]}: read it with format='auto'"
    raise InvalidTranscript(source, where, f"found {show(value)}", hint)


def is_transcript_list(value: list[object]) -> bool:
    """Return whether an array is a list of transcripts, not one array of messages."""
    return not any(isinstance(item, dict) and not {"role", "parts"}.isdisjoint(item) for item in value) and any(
        isinstance(item, list) or (isinstance(item, dict) and not _MARKS.keys().isdisjoint(item)) for item in value
    )


STDIN = "-"


def read_transcripts(path: str | Path, *, format: str = "auto") -> Iterator[Transcript]:
    """Read the transcripts of a file one by one; `format` is one of `FORMATS`."""
    known_format(format)
    return _distinct(_transcripts(open_input(path), format))


def read_transcript(path: str | Path, *, format: str = "auto", index: int = 0) -> Transcript:
    """Read the transcript at a 0-based position of a file."""
    transcripts = read_transcripts(path, format=format)
    if index >= 0:
        for transcript in islice(transcripts, index, None):
            return transcript
    count = sum(1 for _ in read_transcripts(path, format=format))
    raise InvalidTranscript(str(path), f"[{index}]", f"the file has {count} transcripts", f"pass 0 to {count - 1}")


def parse_transcripts(data: bytes | str, source: str = STDIN, *, format: str = "auto") -> Iterator[Transcript]:
    """Read transcripts from memory; `source` names them in errors."""
    known_format(format)
    return _distinct(_transcripts(memory_input(data, source), format))


def _transcripts(raw: JsonInput, format: str) -> Iterator[Transcript]:
    stem = "stdin" if raw.source == STDIN else Path(raw.source).stem or raw.source
    lines = raw.lines()
    first, second = next(lines, None), next(lines, None)
    lines.close()
    if first is None:
        hint = "pass a transcript with at least one message"
        raise InvalidTranscript(raw.source, "", "nothing in it", hint)
    if second is None or _goes_on(first):
        yield from _of_document(_document(raw, first, second), raw.source, stem, format)
        return
    place = f"line {first.number}"
    if shape_of(decode(first.data, raw.source, place), format, raw.source, place) == "message":
        yield read_lines(raw, format, stem)
        return
    for position, line in enumerate(raw.lines()):
        place = f"line {line.number}"
        yield _read(TranscriptValue(raw.source, place, decode(line.data, raw.source, place), stem, position), format)


def _of_document(value: object, source: str, stem: str, format: str) -> Iterator[Transcript]:
    if isinstance(value, dict) and shape_of(value, format, source, "") == "message":
        value = [value]
    if isinstance(value, list) and (is_transcript_list(value) or format not in ("auto", *_CHAT_FORMATS)):
        if not value:
            raise InvalidTranscript(source, "", "an empty array", "pass a file with at least one transcript")
        for index, item in enumerate(value):
            yield _read(TranscriptValue(source, f"[{index}]", item, stem, index), format)
    else:
        yield _read(TranscriptValue(source, "", value, stem, None), format)


def _read(item: TranscriptValue, format: str) -> Transcript:
    shape = shape_of(item.value, format, item.source, item.place)
    if shape == "message":
        found, hint = f"found {show(item.value)}", "expected a transcript, as in the line before"
        raise InvalidTranscript(item.source, item.place, found, hint)
    return read_chat(item, format) if shape == "chat" else TRANSCRIPT_FORMATS[shape].read(item)


def _goes_on(first: InputLine) -> bool:
    """Return whether the JSON value in the first line may end in a later one, so that the file is one document."""
    try:
        decode(first.data, "", "")
    except InvalidTranscript as error:
        return is_cut_short(error, first.data)
    return False


def _document(raw: JsonInput, first: InputLine, second: InputLine | None) -> object:
    """Return the input as one JSON value.

    If it is not one value and its second line is an object, check the first line as JSONL, for an error with its place.
    """
    try:
        return raw.document()
    except (InvalidTranscript, InputTooLarge):
        if second is not None and first.data.lstrip().startswith(b"{") and _is_object(second):
            decode(first.data, raw.source, f"line {first.number}")
        raise


def _is_object(line: InputLine) -> bool:
    try:
        return isinstance(decode(line.data, "", ""), dict)
    except InvalidTranscript:
        return False


def _distinct(transcripts: Iterator[Transcript]) -> Iterator[Transcript]:
    """Append the position to a session id that the file has used before."""
    seen: set[str] = set()
    for index, transcript in enumerate(transcripts):
        if transcript.session in seen:
            transcript = replace(transcript, session=f"{transcript.session}-{index}")
        seen.add(transcript.session)
        yield transcript
