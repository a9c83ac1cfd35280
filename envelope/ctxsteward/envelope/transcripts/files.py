"""Files of transcripts: find out how one is laid out, hand each transcript's value to its format's reader.

Three layouts: one JSON document (an array of messages, a request, a run, an array of any of these), JSONL with a
transcript on each line, and JSONL with a message on each line, which alone is streamed (`chat.read_lines`). The first
line decides: if it is JSON on its own and is followed by another line, the file is JSONL.

The format of a JSON value is recognized by its shape alone; a name given by the caller must agree.

    message     an object with `role`: one line of a JSONL transcript, or one element of an array
    chat        an array of messages, or a request body {"messages": […], "system"?, "tools"?}
    tau-bench   {"task_id", "trial", "reward", "info", "traj": [messages]}
    swe-agent   {"history": […]} of a `.traj` file
    locomo      {"sample_id", "conversation": {"speaker_a", "speaker_b", "session_1": […], …}}

`openai` and `anthropic` are both `chat`; their messages tell them apart (`chat.py`). `TRANSCRIPT_FORMATS` has a row for
each of the others.

Raises `InvalidTranscript` and `InputTooLarge`, naming the file, the line (from 1) or index (from 0), and the field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ctxsteward.schemas import InputTooLarge, InvalidTranscript

from .locomo import read_sample
from .strict_json import InputLine, JsonInput, decode, is_cut_short, memory_input, open_input, show
from .swe_agent import read_trajectory
from .transcript import Transcript, TranscriptValue, read_chat, read_lines, read_run


class TranscriptFormat(NamedTuple):
    """A format that is not plain messages: how it is recognized and read, and what is particular to its transcripts."""

    key: str
    """The member of a JSON object that tells it."""
    called: str
    read: Callable[[TranscriptValue], Transcript]
    is_task_run: bool = False
    """The assistant works for the person, whether it called a tool or not."""
    is_between_people: bool = False
    """Both speakers are people, the second one in the assistant's role; a message begins with its speaker's name."""
    has_demonstrations: bool = False
    """Entries of the phase `demo` were put in front to show how it is done."""
    has_reward: bool = False
    """Its runs say which task they were and how that ended: `task_id`, `reward`."""


TRANSCRIPT_FORMATS: dict[str, TranscriptFormat] = {
    "tau-bench": TranscriptFormat("traj", "a tau-bench run", read_run, is_task_run=True, has_reward=True),
    "swe-agent": TranscriptFormat(
        "history", "a SWE-agent run", read_trajectory, is_task_run=True, has_demonstrations=True
    ),
    "locomo": TranscriptFormat("conversation", "a LoCoMo sample", read_sample, is_between_people=True),
}

FORMATS = ("auto", "openai", "anthropic", *TRANSCRIPT_FORMATS)
"""What `format` may be. `Transcript.format` is never `auto`."""

_MARKS: dict[str, str] = {
    "role": "message",
    **{row.key: name for name, row in TRANSCRIPT_FORMATS.items()},
    "messages": "chat",
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
    "anthropic": _CHAT,
}


def formats_with(trait: str) -> frozenset[str]:
    """Names of the formats that have this trait, a field of `TranscriptFormat`."""
    return frozenset(name for name, row in TRANSCRIPT_FORMATS.items() if getattr(row, trait))


def known_format(name: str) -> str:
    """The name itself, or a refusal that lists the known ones."""
    if name not in FORMATS:
        raise InvalidTranscript("format", "", f"unknown format {name!r:.40}", f"expected one of {', '.join(FORMATS)}")
    return name


def shape_of(value: object, format: str, source: str, where: str) -> str:
    """The shape of one value, which a given format must fit."""
    shapes = list(_shapes(value))
    wanted = ("message", "chat") if format in ("openai", "anthropic") else (format,)
    for shape in shapes:
        if format == "auto" or shape in wanted:
            return shape
    hint = f"expected {_EXPECTED[format]}"
    if shapes:
        hint += f"; this is {_NAMES[shapes[0]]}: read it with format='auto'"
    raise InvalidTranscript(source, where, f"found {show(value)}", hint)


def is_transcript_list(value: list[object]) -> bool:
    """Whether an array holds transcripts; otherwise it is one, an array of messages."""
    return not any(isinstance(item, dict) and "role" in item for item in value) and any(
        isinstance(item, list) or (isinstance(item, dict) and not _MARKS.keys().isdisjoint(item)) for item in value
    )


def _shapes(value: object) -> list[str]:
    if isinstance(value, list):
        return ["chat"]
    if isinstance(value, dict):
        return [shape for mark, shape in _MARKS.items() if mark in value]
    return []


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
    """Read transcripts that are already in memory; `source` is what refusals call them."""
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
    if isinstance(value, list) and (is_transcript_list(value) or format not in ("auto", "openai", "anthropic")):
        if not value:
            raise InvalidTranscript(source, "", "an empty array", "pass a file with at least one transcript")
        for index, one in enumerate(value):
            yield _read(TranscriptValue(source, f"[{index}]", one, stem, index), format)
    else:
        yield _read(TranscriptValue(source, "", value, stem, None), format)


def _read(item: TranscriptValue, format: str) -> Transcript:
    shape = shape_of(item.value, format, item.source, item.place)
    if shape == "message":
        found, hint = f"found {show(item.value)}", "expected a transcript, as in the line before"
        raise InvalidTranscript(item.source, item.place, found, hint)
    return read_chat(item, format) if shape == "chat" else TRANSCRIPT_FORMATS[shape].read(item)


def _goes_on(first: InputLine) -> bool:
    """Whether a JSON value that begins in the first line may end in a later one: the file is one document."""
    try:
        decode(first.data, "", "")
    except InvalidTranscript as error:
        return is_cut_short(error, first.data)
    return False


def _document(raw: JsonInput, first: InputLine, second: InputLine | None) -> object:
    """The whole as one value; if it is none, a second line that is one says JSONL."""
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
    """Give a session id that a file uses twice its position as well."""
    seen: set[str] = set()
    for index, transcript in enumerate(transcripts):
        if transcript.session in seen:
            transcript = replace(transcript, session=f"{transcript.session}-{index}")
        seen.add(transcript.session)
        yield transcript
