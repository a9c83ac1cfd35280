"""Files of transcripts: find out how one is laid out, hand each transcript's value to its format's reader.

Three layouts: one JSON document (an array of messages, a request, a run, an array of any of these), JSONL
with a transcript on each line, and JSONL with a message on each line, which alone is streamed
(`chat.read_lines`). The first line decides: if it is JSON on its own and is followed by another line, the
file is JSONL.

Raises `InvalidTranscript` and `InputTooLarge`, naming the file, the line (from 1) or index (from 0), and
the field.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ctxsteward.schemas import InputTooLarge, InvalidTranscript

from .chat import Item, read_chat, read_lines
from .detect import is_transcript_list, known_format, shape_of
from .json_input import JsonInput, Line, memory_input, open_input
from .locomo import read_sample
from .places import show
from .strict_json import decode, is_cut_short
from .swe_agent import read_trajectory
from .tau_bench import read_run
from .transcript import Transcript

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
        yield _read(Item(raw.source, place, decode(line.data, raw.source, place), stem, position), format)


def _of_document(value: object, source: str, stem: str, format: str) -> Iterator[Transcript]:
    if isinstance(value, dict) and shape_of(value, format, source, "") == "message":
        value = [value]
    if isinstance(value, list) and (is_transcript_list(value) or format not in ("auto", "openai", "anthropic")):
        if not value:
            raise InvalidTranscript(source, "", "an empty array", "pass a file with at least one transcript")
        for index, one in enumerate(value):
            yield _read(Item(source, f"[{index}]", one, stem, index), format)
    else:
        yield _read(Item(source, "", value, stem, None), format)


def _read(item: Item, format: str) -> Transcript:
    match shape_of(item.value, format, item.source, item.place):
        case "tau-bench":
            return read_run(item)
        case "swe-agent":
            return read_trajectory(item)
        case "locomo":
            return read_sample(item)
        case "chat":
            return read_chat(item, format)
        case "message":
            raise InvalidTranscript(
                item.source,
                item.place,
                f"found {show(item.value)}",
                "expected a transcript, as in the line before",
            )


def _goes_on(first: Line) -> bool:
    """Whether a JSON value that begins in the first line may end in a later one: the file is one document."""
    try:
        decode(first.data, "", "")
    except InvalidTranscript as error:
        return is_cut_short(error, first.data)
    return False


def _document(raw: JsonInput, first: Line, second: Line | None) -> object:
    """The whole as one value; if it is none, a second line that is one says JSONL."""
    try:
        return raw.document()
    except (InvalidTranscript, InputTooLarge):
        if second is not None and first.data.lstrip().startswith(b"{") and _is_object(second):
            decode(first.data, raw.source, f"line {first.number}")
        raise


def _is_object(line: Line) -> bool:
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
