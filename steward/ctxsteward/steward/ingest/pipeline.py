"""Turn one item into its transcripts: replayed, skipped, or quarantined with a reason.

`night.batch_harvest` calls both functions. `load` reads an item where the source can be reached. `ingest` is a function
of bytes and settings, so it may run in a worker process, followed by the harvesters. Neither raises because of a
transcript's content.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from ctxsteward.envelope.transcripts.files import formats_with
from ctxsteward.schemas import Erased, InputError
from ctxsteward.schemas.errors import Damaged, InputTooLarge, InvalidTranscript
from ctxsteward.schemas.message import decode_wire

from ..observations.transcript import ReplayedTranscript
from .items import (
    MAX_ITEM_BYTES,
    SIDECAR_SUFFIX,
    LoadedItem,
    QuarantinedItem,
    Reason,
    SkippedItem,
    is_named_like_sidecar,
)
from .redaction import Redactor
from .replayer import TranscriptMessage, replay, said_by, said_in
from .sources import TranscriptSource
from .transcripts import (
    OWN,
    UNKNOWN,
    FileTranscript,
    RefusedLine,
    SessionMeta,
    checked_metadata,
    read_metadata,
    transcripts_of,
)

VERSION = "ingest/2"
"""Part of every digest, so that a new version reads everything again."""
PEOPLE_FORMATS = formats_with("is_between_people")
"""Formats of talk between two people."""
MAX_NAME_CHARS = 200
MAX_DETAIL_CHARS = 400

Outcome = ReplayedTranscript | SkippedItem | QuarantinedItem


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestSettings:
    """How transcripts are read; part of their digests."""

    redactor: Redactor | None = field(default_factory=Redactor)
    """None: texts are not redacted."""
    internal_tools: frozenset[str] = frozenset()
    """Names of tools whose results are the operator's own text."""
    confirming_tools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Tools that only read, by name, with the fields of their answers that may confirm a claim."""

    @property
    def digest(self) -> str:
        """SHA-256 of the settings and of this module's version."""
        # "auto" stands for a former setting, so that digests stay the same.
        parts: list[object] = [VERSION, "auto", repr(self.redactor), *sorted(self.internal_tools)]
        if self.confirming_tools:
            parts.append(sorted((name, sorted(fields)) for name, fields in self.confirming_tools.items()))
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def load(
    source: TranscriptSource, name: str, version: str, *, cap_bytes: int = MAX_ITEM_BYTES
) -> LoadedItem | SkippedItem | QuarantinedItem:
    """Read one item. Raises `StoreError` if the source does not answer; then the item stays due."""
    label = "store" if source.uri == "store" else name
    if label == name and is_named_like_sidecar(name):
        # Otherwise a misspelled name would lose the metadata of the sidecar, such as `deleted`.
        hint = f"name it as its transcript with `{SIDECAR_SUFFIX}` behind, such as chat.jsonl{SIDECAR_SUFFIX}"
        error = InvalidTranscript(name, "", "it is beside no transcript, or beside several of its stem", hint)
        return QuarantinedItem(source=label, name=name, reason="orphan_metadata", detail=_line(error, None))
    try:
        return source.read(name, version, cap_bytes=cap_bytes)
    except Erased:
        return SkippedItem(source=label, name=name, reason="deleted")
    except InputTooLarge as error:
        return QuarantinedItem(source=label, name=name, reason="too_large", detail=_line(error, None))
    except (InvalidTranscript, Damaged) as error:
        return QuarantinedItem(source=label, name=name, reason="unreadable", detail=_line(error, None))


def ingest(loaded: LoadedItem, settings: IngestSettings) -> tuple[Outcome, ...]:
    """Read all transcripts of an item; a bad file, or a bad line of a JSONL file, is one `QuarantinedItem`."""
    try:
        return tuple(_log(loaded, settings) if loaded.layout == "log" else _file(loaded, settings))
    except InputError as error:
        return (_quarantined(loaded, "invalid", error, settings),)
    except _BadMetadata as refusal:
        return (_quarantined(loaded, "bad_metadata", refusal.error, settings),)


class _BadMetadata(Exception):
    def __init__(self, error: InputError) -> None:
        self.error = error


def _file(loaded: LoadedItem, settings: IngestSettings) -> Iterator[Outcome]:
    sidecar = None
    if loaded.sidecar is not None:
        sidecar = _metadata(loaded.sidecar, loaded.sidecar_name)
        if (skipped := _skipped(loaded, sidecar)) is not None:
            yield skipped
            return
    for position, item in enumerate(transcripts_of(loaded.data, loaded.name)):
        if isinstance(item, RefusedLine):
            yield _quarantined(loaded, "invalid", item.error, settings, item.place)
        else:
            yield _of_file(loaded, item, sidecar, settings)
        if sidecar is not None and sidecar.session is not None and position:
            hint = "one sidecar cannot name them all; leave `session` out"
            error = InvalidTranscript(loaded.sidecar_name, "session", "the file holds several", hint)
            raise _BadMetadata(error)


def _of_file(
    loaded: LoadedItem, read: FileTranscript, sidecar: SessionMeta | None, settings: IngestSettings
) -> Outcome:
    """Replay one transcript of a file, or quarantine it alone."""
    meta = sidecar or UNKNOWN
    try:
        if sidecar is None and read.inline is not None:
            meta = _metadata(read.inline, loaded.name, read.place)
        # Readers make ids that are unique in a folder; the folder's name makes them unique in the source.
        folder = PurePosixPath(loaded.name).parent.as_posix()
        session = _short(read.transcript.session if folder == "." else f"{folder}/{read.transcript.session}")
        skipped = _skipped(loaded, meta, session)
        if skipped is not None:
            return skipped
        if read.transcript.format in PEOPLE_FORMATS:
            return SkippedItem(source=loaded.source, name=loaded.name, reason="between_people", session=session)
        return _replayed(
            loaded,
            said_in(read.transcript),
            meta,
            settings,
            session=session,
            format=read.transcript.format,
            digest=_digest(settings, read.digest, loaded.sidecar or b""),
            task=read.task,
            reward=read.reward,
        )
    except _BadMetadata as refusal:
        return _quarantined(loaded, "bad_metadata", refusal.error, settings, read.place)
    except InputError as error:
        return _quarantined(loaded, "invalid", error, settings, read.place)


def _log(loaded: LoadedItem, settings: IngestSettings) -> Iterator[Outcome]:
    """Replay a session of the store, as `sources.StoreSource.read` wrote it."""
    document: dict[str, Any] = json.loads(loaded.data)
    meta = _metadata(document["meta"], f"session {loaded.name}")
    meta = meta.model_copy(
        update={
            "session": None,
            "profile_version": meta.profile_version or document["profile_version"],
            "shown": tuple(sorted({*meta.shown, *document["shown"]})),
        }
    )
    skipped = _skipped(loaded, meta, loaded.name)
    if skipped is None and document["is_anothers"]:
        skipped = SkippedItem(source=loaded.source, name=loaded.name, reason="other_profile", session=loaded.name)
    if skipped is not None:
        yield skipped
        return
    messages = (
        said_by(ordinal, decode_wire(json.dumps(wire)))._replace(
            ts=ts, principal=principal, is_injected=origin is not None
        )
        for ordinal, wire, ts, principal, origin in document["entries"]
    )
    digest = _digest(settings, hashlib.sha256(loaded.data).hexdigest(), b"")
    yield _replayed(loaded, messages, meta, settings, session=loaded.name, format="store", digest=digest)


def _replayed(
    loaded: LoadedItem,
    messages: Iterator[TranscriptMessage],
    meta: SessionMeta,
    settings: IngestSettings,
    *,
    session: str,
    format: str,
    digest: str,
    task: str | None = None,
    reward: float | None = None,
) -> Outcome:
    result = replay(
        messages,
        meta,
        source=_short(loaded.source),
        session=session,
        format=format,
        digest=digest,
        task=task,
        reward=reward,
        written_seconds=loaded.written_seconds,
        redact=settings.redactor,
        internal_tools=settings.internal_tools,
        confirming_tools=settings.confirming_tools,
    )
    if not result.utterances:
        return SkippedItem(source=loaded.source, name=loaded.name, reason="empty", session=result.session)
    return result


def _metadata(value: object, source: str, place: str = "") -> SessionMeta:
    try:
        if isinstance(value, bytes):
            return read_metadata(value, source)
        return checked_metadata(value, source, f"{place}, ctxsteward" if place else "ctxsteward")
    except InputError as error:
        raise _BadMetadata(error) from error


def _skipped(loaded: LoadedItem, meta: SessionMeta, session: str | None = None) -> SkippedItem | None:
    """Return the item to skip because of its metadata, or None to harvest it."""
    if meta.origin == OWN:
        return SkippedItem(source=loaded.source, name=loaded.name, reason="own_output", session=session)
    if meta.status == "closed":
        return None
    return SkippedItem(source=loaded.source, name=loaded.name, reason=meta.status, session=session)


def _short(name: str) -> str:
    """Return a name for evidence: one printable line of limited length."""
    line = "".join(char if char.isprintable() else "�" for char in name)
    if line == name and len(line) <= MAX_NAME_CHARS:
        return line
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]
    return f"{line[: MAX_NAME_CHARS - 33]}~{digest}"


def _digest(settings: IngestSettings, content: str, sidecar: bytes) -> str:
    parts = f"{settings.digest}\x00{content}\x00".encode() + sidecar
    return hashlib.sha256(parts).hexdigest()


def _quarantined(
    loaded: LoadedItem, reason: Reason, error: InputError, settings: IngestSettings, place: str = ""
) -> QuarantinedItem:
    detail = _line(error, settings.redactor)
    if place:  # the reader saw only this line, so its error has no place
        detail = f"{place}: {detail}"
    if isinstance(error, InputTooLarge):
        reason = "too_large"
    return QuarantinedItem(source=loaded.source, name=loaded.name, reason=reason, detail=detail)


def _line(error: Exception, redactor: Redactor | None) -> str:
    line = " ".join(str(error).split())[:MAX_DETAIL_CHARS]
    return (redactor or Redactor())(line)
