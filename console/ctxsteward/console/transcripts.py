"""Transcripts into sessions: which one of a file, under which id, and never the same message twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxsteward.envelope import Profile, Session, Store
    from ctxsteward.envelope.counting import Counter
    from ctxsteward.envelope.readers import Transcript, TranscriptEntry


class Chosen(NamedTuple):
    """One transcript of a file that may hold several."""

    transcript: Transcript
    of: int
    """How many the file holds."""


def choose_transcript(path: str, format: str, run: int) -> Chosen:
    """The transcript at a 0-based place of a file; raises `InvalidTranscript`, `InputTooLarge`."""
    from ctxsteward.envelope.readers import read_transcripts
    from ctxsteward.schemas import InvalidTranscript

    chosen, count = None, 0
    for transcript in read_transcripts(path, format=format):
        if count == run:
            chosen = transcript
        count += 1
    if chosen is None:
        found = f"it holds {count} transcripts, none is number {run}"
        raise InvalidTranscript(path, "", found, f"take --run 0 to {count - 1}")
    return Chosen(chosen, count)


def open_session(
    store: Store, transcript: Transcript, id: str, *, tenant: str, profile: Profile | None, counter: Counter
) -> Session:
    """Open or create a session under this id with the transcript's own system messages and tools."""
    return store.session(
        id, tenant=tenant, profile=profile, tools=transcript.tools, system=transcript.system, counter=counter
    )


def append_entry(session: Session, entry: TranscriptEntry, position: int) -> None:
    """Append a message under its file's id, or its 1-based position: the same one twice is one message."""
    session.append(
        entry.wire,
        id=entry.id or f"#{position}",
        ts=entry.ts,
        principal=entry.principal,
        phase=entry.phase,
    )


def append_missing(session: Session, transcript: Transcript) -> int:
    """Append what the session does not hold yet; return how many that were.

    Raises `InputError` where the session holds another conversation.
    """
    from ctxsteward.schemas import InputError
    from ctxsteward.schemas.message import encode_wire

    held = len(session)
    for position, entry in enumerate(transcript.entries(), 1):
        if position > held:
            append_entry(session, entry, position)
        elif session.entry(position).event.wire != encode_wire(entry.wire):
            raise InputError(
                f"{transcript.source}: message {position} is not §{position} of session {session.id!r}, "
                "which holds another conversation; give this one its own --session ID"
            )
    return len(session) - held


def unused_id(store: Store, id: str, tenant: str) -> str:
    """The id itself, or with ``@2``, ``@3`` … if a session under it already holds messages."""
    return next(name for name in _numbered(id) if not _holds_messages(store, name, tenant))


def _numbered(id: str) -> Iterator[str]:
    yield id
    number = 2
    while True:
        yield f"{id}@{number}"
        number += 1


def _holds_messages(store: Store, id: str, tenant: str) -> bool:
    return store.exists(id, tenant=tenant) and len(store.session(id, tenant=tenant)) > 0
