"""The transcripts in one file, each with what its file says of it beside the messages.

A JSONL file with a transcript on each line is taken line by line: a bad line is that line's refusal, and the others
are read. Everything else is read as a whole. Sessions are named as the readers name them.

Beside the messages stand the task and reward of a tau-bench run, and metadata under ``ctxsteward``. The plain parser
may look for them: what it is given has been through the strict one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from ctxsteward.envelope.readers import Transcript, parse_transcripts
from ctxsteward.envelope.readers.detect import is_transcript_list
from ctxsteward.envelope.readers.json_input import Line, memory_input
from ctxsteward.envelope.readers.strict_json import decode
from ctxsteward.schemas import InputError, InvalidTranscript

from .metadata import INLINE_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One transcript of a file."""

    transcript: Transcript
    place: str
    """``line 3``, or nothing where the file is not read by lines."""
    digest: str
    """SHA-256 of its bytes and place; in process only."""
    task: str | None = None
    reward: float | None = None
    inline: object = None
    """The value of ``ctxsteward``; None where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """One line that is no transcript."""

    place: str
    error: InputError


def transcripts_of(data: bytes, name: str, *, format: str = "auto") -> Iterator[Found | Refused]:
    """All transcripts of a file's bytes. Raises `InputError` where the file as a whole is refused."""
    if not _has_transcript_lines(data, name):
        yield from _whole(data, name, format, place="")
        return
    taken: set[str] = set()
    stem = PurePosixPath(name).stem or name
    for position, line in enumerate(memory_input(data, name).lines()):
        place = f"line {line.number}"
        try:
            found = list(_whole(line.data, name, format, place))
        except InputError as error:
            yield Refused(place=place, error=error)
            continue
        for one in found:
            session = one.transcript.session
            session = f"{stem}-{position}" if session == stem else session
            session = f"{session}-{position}" if session in taken else session
            taken.add(session)
            yield replace(one, transcript=replace(one.transcript, session=session))


def _has_transcript_lines(data: bytes, name: str) -> bool:
    """Whether each line is a transcript: one of the first two is, and there are two."""
    first_two = list(islice(memory_input(data, name).lines(), 2))
    return len(first_two) == 2 and any(_is_transcript_line(line, name) for line in first_two)


def _is_transcript_line(line: Line, name: str) -> bool:
    start = line.data.lstrip()[:1]
    if start not in (b"{", b"["):
        return False
    try:
        value = decode(line.data, name, "")
    except InvalidTranscript:
        return False
    return bool(value) and (isinstance(value, list) or (isinstance(value, dict) and "role" not in value))


def _whole(data: bytes, name: str, format: str, place: str) -> Iterator[Found]:
    digest = hashlib.sha256(data).hexdigest()
    facts: list[Any] | None = None
    for index, transcript in enumerate(parse_transcripts(data, name, format=format)):
        if facts is None:
            facts = _facts(data)
        fact = facts[index] if index < len(facts) else None
        found = Found(transcript=transcript, place=place, digest=f"{digest}[{index}]")
        yield _with_facts(found, fact) if isinstance(fact, dict) else found


def _facts(data: bytes) -> list[Any]:
    """The JSON values behind the transcripts of a file that may say more than messages; else nothing."""
    if not (b'"traj"' in data or f'"{INLINE_KEY}"'.encode() in data):
        return []
    try:
        value = json.loads(data)
    except ValueError:  # a message on each line
        return []
    if isinstance(value, list):
        return value if is_transcript_list(value) else []
    return [value] if isinstance(value, dict) and "role" not in value else []


def _with_facts(found: Found, value: dict[str, Any]) -> Found:
    inline = value.get(INLINE_KEY)
    if found.transcript.format != "tau-bench":
        return replace(found, inline=inline)
    task, reward = value.get("task_id"), value.get("reward")
    if isinstance(reward, bool) or not isinstance(reward, int | float):
        reward = None
    return replace(found, inline=inline, task=str(task), reward=reward)
