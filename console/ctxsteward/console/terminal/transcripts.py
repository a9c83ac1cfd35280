"""Appending transcripts of a file to sessions: choice of transcript and session id, and no message twice."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import chain, count, islice

from ctxsteward.envelope import Counter, EnvelopeBuilder, Profile, Session, Store
from ctxsteward.envelope.history.tool_groups import NewMessage
from ctxsteward.envelope.transcripts.files import parse_transcripts, read_transcripts
from ctxsteward.envelope.transcripts.strict_json import MAX_PIPE_BYTES
from ctxsteward.envelope.transcripts.transcript import Transcript
from ctxsteward.evals.replay import new_message
from ctxsteward.schemas import InputError
from ctxsteward.schemas.errors import InputTooLarge, InvalidTranscript
from ctxsteward.schemas.message import encode_wire

BATCH_MESSAGES = 1_000
BACKLOG_MESSAGES = 10_000


def read_file(path: str, format: str) -> Iterator[Transcript]:
    """Read the transcripts of a file, or of stdin for ``-``; raise `InvalidTranscript` or `InputTooLarge`."""
    if path != "-":
        return read_transcripts(path, format=format)
    data = sys.stdin.buffer.read(MAX_PIPE_BYTES + 1)
    if len(data) > MAX_PIPE_BYTES:
        raise InputTooLarge("stdin", len(data), MAX_PIPE_BYTES)
    return parse_transcripts(data, "-", format=format)


def choose_transcript(path: str, format: str, run: int) -> tuple[Transcript, int]:
    """Return transcript number `run` of a file, from 0, and the number of its transcripts.

    Raise `InvalidTranscript` or `InputTooLarge`.
    """
    chosen, number = None, 0
    for transcript in read_file(path, format):
        if number == run:
            chosen = transcript
        number += 1
    if chosen is None:
        found = f"none of its {number} transcripts is number {run}"
        raise InvalidTranscript(path, "", found, f"take --run 0 to {number - 1}" if number > 1 else "leave out --run")
    return chosen, number


def open_session(
    store: Store, transcript: Transcript, id: str, *, tenant: str, profile: Profile | None, counter: Counter
) -> Session:
    """Open or create a session under this id with the transcript's own system messages and tools."""
    return store.session(
        id, tenant=tenant, profile=profile, tools=transcript.tools, system=transcript.system, counter=counter
    )


def append_missing(
    session: Session, transcript: Transcript, builder: EnvelopeBuilder, tell: Callable[[str], None] = lambda _: None
) -> int:
    """Append the messages that the session lacks; return their number.

    A build after every `BACKLOG_MESSAGES` compacts the backlog, so that a million turns take bounded memory.
    Raise `InputError` if the session contains another conversation.
    """
    held = len(session)
    rows = _missing(session, transcript, held)
    waiting = 0
    while batch := list(islice(rows, BATCH_MESSAGES)):
        if waiting + len(batch) > BACKLOG_MESSAGES:
            builder.build(session)
            waiting = 0
        session.extend(batch)
        waiting += len(batch)
        tell(f"message {len(session):,}")
    return len(session) - held


def _missing(session: Session, transcript: Transcript, held: int) -> Iterator[NewMessage]:
    for number, entry in enumerate(transcript.entries(), 1):
        if number > held:
            yield new_message(entry, number)
        elif session.entry(number).event.wire != encode_wire(entry.wire):
            raise InputError(
                f"{transcript.source}: message {number} is not §{number} of session {session.id!r}, "
                "which holds another conversation; give this one its own --session ID"
            )


def unused_id(store: Store, id: str, tenant: str) -> str:
    """Return the id, or the id with ``@2``, ``@3`` … if a session with it already has messages."""
    names = chain([id], (f"{id}@{number}" for number in count(2)))
    return next(
        name for name in names if not (store.exists(name, tenant=tenant) and len(store.session(name, tenant=tenant)))
    )
