"""The transcripts in one file, each with what is known of it beside its messages: whose, whether over, how it went.

`pipeline` reads files with it. A JSONL file with a transcript on each line is taken line by line, and a bad line is
refused alone; everything else is read as a whole. Beside the messages stand the task and reward of a tau-bench run, and
`SessionMeta`: from a sidecar (of ``chat.jsonl``: ``chat.jsonl.session.json``, or ``chat.session.json``), else from the
top-level key ``ctxsteward``. These fields alone decide whether a transcript is harvested, never its text, so an unknown
key or a bad value is refused with the field: what cannot be read might have said that it is not to be used. Times are
ISO 8601.

>>> read_metadata(b'{"principal": "ada", "succeeded": true}', "chat.jsonl.session.json").principal
'ada'

Raises `InvalidTranscript`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, ValidationError

from ctxsteward.envelope.transcripts.files import formats_with, is_transcript_list, parse_transcripts
from ctxsteward.envelope.transcripts.strict_json import InputLine, decode, memory_input, show
from ctxsteward.envelope.transcripts.transcript import Transcript
from ctxsteward.schemas import InputError
from ctxsteward.schemas.documents import Outcome
from ctxsteward.schemas.errors import InvalidTranscript
from ctxsteward.schemas.profile import EntryId, OneLine, Timestamp
from ctxsteward.schemas.recommendation import Name
from ctxsteward.store.names import unseen

INLINE_KEY = "ctxsteward"
OWN = "steward"
"""Value of `origin` in what the steward wrote itself."""
MAX_SHOWN = 1_000
MAX_FAILURES = 100


def _seen(name: str) -> str:
    if (char := unseen(name)) is not None:
        raise ValueError(f"{name!r:.60} holds {char}, which nobody can see")
    if name.isspace():
        raise ValueError("a name of blanks")
    return name


class SessionMeta(BaseModel):
    """Metadata of one transcript; what is not set is not known."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    schema_version: Literal[1] = 1
    session: Name | None = None
    """Its id, in place of the one made from the file's name."""
    principal: Annotated[Name, AfterValidator(_seen)] | None = None
    """The user it is with."""
    project: Name | None = None
    status: Literal["open", "closed", "deleted"] = "closed"
    origin: Name = "application"
    """Who wrote it: ``steward`` is the steward's own output."""
    profile_version: Annotated[StrictInt, Field(ge=1)] | None = None
    shown: Annotated[tuple[EntryId, ...], Field(max_length=MAX_SHOWN)] = ()
    """Ids of records that it was shown."""
    eval_failures: Annotated[
        tuple[Annotated[StrictStr, Field(min_length=1, max_length=280), OneLine], ...], Field(max_length=MAX_FAILURES)
    ] = ()
    """Scorers that failed on it, with their reason."""
    started: Timestamp | None = None
    """When it began: the time of messages that have none of their own."""
    succeeded: StrictBool | None = None
    """Whether its task was solved: in short for the same in `outcome`."""
    outcome: Outcome | None = None
    """How it ended: ``{"reward": 1.0}``, ``{"thumbs": "down", "escalated": true}``."""
    task: Name | None = None
    """Its task: runs of one task are tries at the same thing."""

    @property
    def verdict(self) -> bool | None:
        """Whether it succeeded, as its metadata say."""
        return self.succeeded if self.succeeded is not None or self.outcome is None else self.outcome.verdict


UNKNOWN = SessionMeta()


def read_metadata(data: bytes, source: str) -> SessionMeta:
    """The metadata of a sidecar's bytes."""
    return checked_metadata(decode(data, source, ""), source)


def checked_metadata(value: object, source: str, where: str = "") -> SessionMeta:
    """The metadata of a JSON value, which stands at `where` in `source`."""
    if not isinstance(value, dict):
        raise InvalidTranscript(source, where, f"found {show(value)}", "expected an object of session metadata")
    try:
        return SessionMeta.model_validate_json(json.dumps(value))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join([*([where] if where else ()), *map(str, first["loc"])])
        known = ", ".join(SessionMeta.model_fields)
        hint = f"the keys are {known}" if first["type"] == "extra_forbidden" else "correct it, or leave it out"
        raise InvalidTranscript(source, field, first["msg"], hint) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTranscript:
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
class RefusedLine:
    """One line that is no transcript."""

    place: str
    error: InputError


def transcripts_of(data: bytes, name: str, *, format: str = "auto") -> Iterator[FileTranscript | RefusedLine]:
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
            yield RefusedLine(place=place, error=error)
            continue
        for item in found:
            session = item.transcript.session
            session = f"{stem}-{position}" if session == stem else session
            session = f"{session}-{position}" if session in taken else session
            taken.add(session)
            yield replace(item, transcript=replace(item.transcript, session=session))


def _has_transcript_lines(data: bytes, name: str) -> bool:
    """Whether each line is a transcript: one of the first two is, and there are two."""
    first_two = list(islice(memory_input(data, name).lines(), 2))
    return len(first_two) == 2 and any(_is_transcript_line(line, name) for line in first_two)


def _is_transcript_line(line: InputLine, name: str) -> bool:
    start = line.data.lstrip()[:1]
    if start not in (b"{", b"["):
        return False
    try:
        value = decode(line.data, name, "")
    except InvalidTranscript:
        return False
    return bool(value) and (isinstance(value, list) or (isinstance(value, dict) and "role" not in value))


def _whole(data: bytes, name: str, format: str, place: str) -> Iterator[FileTranscript]:
    digest = hashlib.sha256(data).hexdigest()
    facts: list[Any] | None = None
    for index, transcript in enumerate(parse_transcripts(data, name, format=format)):
        if facts is None:
            facts = _facts(data)
        fact = facts[index] if index < len(facts) else None
        found = FileTranscript(transcript=transcript, place=place, digest=f"{digest}[{index}]")
        yield _with_facts(found, fact) if isinstance(fact, dict) else found


def _facts(data: bytes) -> list[Any]:
    """The JSON values behind the transcripts of a file that may say more than messages; else nothing."""
    if not (b'"traj"' in data or f'"{INLINE_KEY}"'.encode() in data):
        return []
    try:
        value = json.loads(data)  # not the strict parser: that one has accepted these bytes already
    except ValueError:  # a message on each line
        return []
    if isinstance(value, list):
        return value if is_transcript_list(value) else []
    return [value] if isinstance(value, dict) and "role" not in value else []


def _with_facts(found: FileTranscript, value: dict[str, Any]) -> FileTranscript:
    inline = value.get(INLINE_KEY)
    if found.transcript.format not in formats_with("has_reward"):
        return replace(found, inline=inline)
    task, reward = value.get("task_id"), value.get("reward")
    if isinstance(reward, bool) or not isinstance(reward, int | float):
        reward = None
    return replace(found, inline=inline, task=str(task), reward=reward)
