"""Read the transcripts in one file, each with its metadata.

`pipeline` reads files with it. A JSONL file with a transcript on each line is read line by line, and a bad line is
refused alone; other files are read as a whole. A transcript has task and reward of a tau-bench run, and `SessionMeta`
from a sidecar (``chat.jsonl.session.json`` or ``chat.session.json`` for ``chat.jsonl``) or else from the top-level key
``ctxsteward``. Only metadata decide whether a transcript is harvested, never its text. So an unknown key or a bad value
is an error, because it might have meant that the transcript must not be used. Times are ISO 8601.

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
"""`origin` of transcripts that the steward wrote itself."""
MAX_SHOWN = 1_000
MAX_FAILURES = 100


def _visible(name: str) -> str:
    if (char := unseen(name)) is not None:
        raise ValueError(f"{name!r:.60} holds {char}, which nobody can see")
    if name.isspace():
        raise ValueError("a name of blanks")
    return name


class SessionMeta(BaseModel):
    """Metadata of one transcript; unset fields are unknown."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    schema_version: Literal[1] = 1
    session: Name | None = None
    """Id of the session, instead of the one made from the file's name."""
    principal: Annotated[Name, AfterValidator(_visible)] | None = None
    """User of the session."""
    project: Name | None = None
    status: Literal["open", "closed", "deleted"] = "closed"
    origin: Name = "application"
    """Writer of the transcript; ``steward`` for the steward's own output."""
    profile_version: Annotated[StrictInt, Field(ge=1)] | None = None
    shown: Annotated[tuple[EntryId, ...], Field(max_length=MAX_SHOWN)] = ()
    """Ids of records that the session was shown."""
    eval_failures: Annotated[
        tuple[Annotated[StrictStr, Field(min_length=1, max_length=280), OneLine], ...], Field(max_length=MAX_FAILURES)
    ] = ()
    """Scorers that failed on the transcript, with their reason."""
    started: Timestamp | None = None
    """Start of the session, the time of messages without their own."""
    succeeded: StrictBool | None = None
    """Whether the task was solved; short for the same in `outcome`."""
    outcome: Outcome | None = None
    """End of the session, such as ``{"reward": 1.0}`` or ``{"thumbs": "down", "escalated": true}``."""
    task: Name | None = None
    """Task of the run; runs of one task are not independent."""

    @property
    def verdict(self) -> bool | None:
        """Whether the session succeeded by its metadata."""
        return self.succeeded if self.succeeded is not None or self.outcome is None else self.outcome.verdict


UNKNOWN = SessionMeta()


def read_metadata(data: bytes, source: str) -> SessionMeta:
    """Parse the bytes of a sidecar."""
    return checked_metadata(decode(data, source, ""), source)


def checked_metadata(value: object, source: str, where: str = "") -> SessionMeta:
    """Check the metadata of a JSON value at `where` in `source`."""
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
    """``line 3``, or empty if the file is not read by lines."""
    digest: str
    """SHA-256 of the bytes and place; in process only."""
    task: str | None = None
    reward: float | None = None
    inline: object = None
    """Value of the key ``ctxsteward``, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedLine:
    """One line that is not a transcript."""

    place: str
    error: InputError


def transcripts_of(data: bytes, name: str) -> Iterator[FileTranscript | RefusedLine]:
    """Yield all transcripts of a file's bytes. Raises `InputError` if the file as a whole is refused."""
    first_two = list(islice(memory_input(data, name).lines(), 2))
    if len(first_two) < 2 or not any(_is_transcript_line(line, name) for line in first_two):
        yield from _whole(data, name, place="")
        return
    taken: set[str] = set()
    stem = PurePosixPath(name).stem or name
    for position, line in enumerate(memory_input(data, name).lines()):
        place = f"line {line.number}"
        try:
            transcripts = list(_whole(line.data, name, place))
        except InputError as error:
            yield RefusedLine(place=place, error=error)
            continue
        for item in transcripts:
            session = item.transcript.session
            session = f"{stem}-{position}" if session == stem else session
            session = f"{session}-{position}" if session in taken else session
            taken.add(session)
            yield replace(item, transcript=replace(item.transcript, session=session))


def _is_transcript_line(line: InputLine, name: str) -> bool:
    start = line.data.lstrip()[:1]
    if start not in (b"{", b"["):
        return False
    try:
        value = decode(line.data, name, "")
    except InvalidTranscript:
        return False
    return bool(value) and (isinstance(value, list) or (isinstance(value, dict) and "role" not in value))


def _whole(data: bytes, name: str, place: str) -> Iterator[FileTranscript]:
    digest = hashlib.sha256(data).hexdigest()
    values: list[Any] | None = None
    for index, transcript in enumerate(parse_transcripts(data, name, format="auto")):
        if values is None:  # not before the parser has accepted the bytes
            values = _values(data)
        value = values[index] if index < len(values) else None
        item = FileTranscript(transcript=transcript, place=place, digest=f"{digest}[{index}]")
        yield _with_run(item, value) if isinstance(value, dict) else item


def _values(data: bytes) -> list[Any]:
    """Return the JSON values of a file's transcripts, or an empty list if they have nothing but messages."""
    if not (b'"traj"' in data or f'"{INLINE_KEY}"'.encode() in data):
        return []
    try:
        value = json.loads(data)
    except ValueError:  # the file has a message on each line
        return []
    if isinstance(value, list):
        return value if is_transcript_list(value) else []
    return [value] if isinstance(value, dict) and "role" not in value else []


def _with_run(item: FileTranscript, value: dict[str, Any]) -> FileTranscript:
    """Add the metadata, the task and the reward in a transcript's JSON value."""
    inline = value.get(INLINE_KEY)
    if item.transcript.format not in formats_with("has_reward"):
        return replace(item, inline=inline)
    task, reward = value.get("task_id"), value.get("reward")
    if isinstance(reward, bool) or not isinstance(reward, int | float):
        reward = None
    return replace(item, inline=inline, task=str(task), reward=reward)
