"""Replay a transcript: its messages in order, each text with its reference, trust and principal.

`pipeline` calls `replay` for each transcript of an item.

References are those of a session (`Session.extend`): a message is ``§7``; tool results in a user message are ``§7.1``,
``§7.2``. Trust depends only on structure: text of a user is `user`, text of the model is `assistant`, a tool's result
is `tool_external` unless the operator declared the tool as internal. A system message among the entries, and text
injected from elsewhere, has the least trust. Messages of a demonstration take their ordinals but are left out, because
nobody said them.

The principal of a transcript comes from its metadata, else from the first user that it names, else from its task
(trials of one task are not independent). Otherwise it is None, an unknown speaker; all unknown speakers together count
as one voice (`reconcile.draft`).

The time of a message is its own (``ts``, ``timestamp``, ``created_at``, ``created``; ISO 8601 or Unix seconds), else
that of the message before it, because messages are in order. Messages before the first time get the session's
``started``, else that first time. If no message has a time and ``started`` is missing, they get the time of their file.
The clock is never used: without any source they stay undated, and are counted (`ReplayedTranscript.dated`).

Source: the layered-envelope design (replay); the state design (trust labels).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from math import inf
from types import MappingProxyType
from typing import NamedTuple

from ctxsteward.envelope.transcripts.files import formats_with
from ctxsteward.envelope.transcripts.transcript import Transcript
from ctxsteward.schemas import Message, ToolCallPart, ToolResultPart
from ctxsteward.schemas.documents import Outcome
from ctxsteward.schemas.message import Wire, take_wire
from ctxsteward.schemas.profile import instant
from ctxsteward.schemas.summary import TRUST, Trust

from ..observations.transcript import (
    TASK_FORMATS,
    Dated,
    ReplayedCall,
    ReplayedTranscript,
    ReplayedUtterance,
    Role,
)
from .redaction import Redactor, redacted_json
from .transcripts import UNKNOWN, SessionMeta

LEAST: Trust = TRUST[-1]
NO_TOOLS: Mapping[str, tuple[str, ...]] = MappingProxyType({})
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool"}


class TranscriptMessage(NamedTuple):
    """A message with the time, principal and origin that its log or file has."""

    ordinal: int
    role: str
    text: str
    calls: tuple[ToolCallPart, ...] = ()
    results: tuple[ToolResultPart, ...] = ()
    ts: str | None = None
    principal: str | None = None
    is_injected: bool = False
    """Whether it comes from outside this conversation."""
    is_demo: bool = False


def said_in(transcript: Transcript) -> Iterator[TranscriptMessage]:
    """Yield the messages of a transcript, numbered as in a session: leading system messages take no ordinal."""
    may_show = transcript.format in formats_with("has_demonstrations")
    for ordinal, entry in enumerate(transcript.entries(), 1):
        message = _plain(ordinal, entry.wire) or said_by(ordinal, take_wire(entry.wire)[1])
        yield message._replace(
            ts=entry.ts or _time_of(entry.wire),
            principal=entry.principal,
            is_demo=may_show and entry.phase == "demo",
        )


_TIME_KEYS = ("ts", "timestamp", "created_at", "created")
_MILLISECONDS_FROM = 1e11
"""Numbers from here on (beyond the year 5000 in seconds) are milliseconds."""


def _time_of(wire: Wire) -> str | None:
    """Return the time in a chat message, or None if it is missing or unreadable."""
    for key in _TIME_KEYS:
        time = wire.get(key)
        if isinstance(time, str) and instant(time) != -inf:
            return time
        if isinstance(time, int | float) and not isinstance(time, bool) and time > 0:
            return _iso(time / 1_000 if time >= _MILLISECONDS_FROM else time)
    return None


def _iso(seconds: float) -> str | None:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def dated(
    messages: Iterable[TranscriptMessage], started: str | None, written_seconds: float | None
) -> tuple[list[TranscriptMessage], Dated]:
    """Give each message the best known time; return the messages and the source of their times.

    >>> two = [TranscriptMessage(1, "user", "a"), TranscriptMessage(2, "user", "b", ts="2026-05-01")]
    >>> messages, source = dated(two, "2026-04-30", None)
    >>> [message.ts for message in messages], source
    (['2026-04-30', '2026-05-01'], 'messages')
    """
    messages = [message if instant(message.ts) != -inf else message._replace(ts=None) for message in messages]
    first = next((message.ts for message in messages if message.ts), None)
    written = None if written_seconds is None else _iso(written_seconds)
    last = started or first or written
    with_times = []
    for message in messages:
        last = message.ts or last
        with_times.append(message if message.ts or last is None else message._replace(ts=last))
    source: Dated = "messages" if first else "started" if started else "file" if written else "undated"
    return with_times, source


def said_by(ordinal: int, message: Message) -> TranscriptMessage:
    """Convert a typed message."""
    return TranscriptMessage(ordinal, message.role, message.text, message.tool_calls, message.tool_results)


def _plain(ordinal: int, wire: Wire) -> TranscriptMessage | None:
    """Convert a checked message with one plain text, as most are, without `take_wire`; None for other messages."""
    content, role = wire.get("content"), wire.get("role")
    if not isinstance(content, str) or not isinstance(role, str) or wire.get("tool_calls") is not None:
        return None
    return TranscriptMessage(ordinal, role, content) if role != "tool" else None


def replay(
    messages: Iterable[TranscriptMessage],
    meta: SessionMeta = UNKNOWN,
    *,
    source: str,
    session: str,
    format: str,
    digest: str,
    task: str | None = None,
    reward: float | None = None,
    written_seconds: float | None = None,
    redact: Redactor | None = None,
    internal_tools: frozenset[str] = frozenset(),
    confirming_tools: Mapping[str, tuple[str, ...]] = NO_TOOLS,
) -> ReplayedTranscript:
    """Return a transcript for the harvest; errors of the iterated messages pass through.

    `task` and `reward` are those of the file's run, `written_seconds` is the time of the file.
    """
    messages, times = dated(messages, meta.started, written_seconds)
    session = meta.session or session
    principal = meta.principal or next(filter(None, (message.principal for message in messages)), None)
    if principal is None and task is not None:
        principal = f"task-{task}"
    over = redact.over(_texts(messages)) if redact else None

    def plain(text: str) -> str:
        return over(text) if over else text

    def plain_json(text: str) -> str:
        return redacted_json(text, redact, over) if redact and text else text

    internal = internal_tools | confirming_tools.keys()
    tools: dict[str, str] = {}
    """Names of the tools called so far, by call id; a reused id has the name of the later call."""
    utterances: list[ReplayedUtterance] = []
    for said in messages:
        if said.is_demo:
            continue
        tools |= {call.id: call.name for call in said.calls}
        for number, result in enumerate(said.results, 1):
            tool = tools.get(result.call_id, result.name)
            is_internal = tool is not None and tool in internal and not said.is_injected
            utterances.append(
                ReplayedUtterance(
                    ordinal=said.ordinal,
                    ref=f"§{said.ordinal}" if said.role == "tool" else f"§{said.ordinal}.{number}",
                    role="tool",
                    text=plain(result.text),
                    trust="tool_internal" if is_internal else LEAST,
                    principal=principal,
                    ts=said.ts,
                    call_id=result.call_id,
                    tool=tool,
                    is_error=result.is_error,
                    confirming_fields=confirming_tools.get(tool or "", ())
                    if is_internal and not result.is_error
                    else (),
                )
            )
        calls = tuple(
            ReplayedCall(id=call.id, name=call.name, arguments=plain_json(call.arguments)) for call in said.calls
        )
        if said.text or calls:
            role = _ROLES.get(said.role, "system")
            utterances.append(
                ReplayedUtterance(
                    ordinal=said.ordinal,
                    ref=f"§{said.ordinal}",
                    role=role,
                    text=plain(said.text),
                    trust=_trust(said, role),
                    # metadata with a principal name the only user
                    principal=said.principal or principal if role == "user" and not meta.principal else principal,
                    ts=said.ts,
                    calls=calls,
                )
            )
    reached = None if reward is None else Outcome(reward=reward).verdict
    return ReplayedTranscript(
        source=source,
        session=session,
        principal=principal,
        format=format,
        digest=digest,
        utterances=tuple(utterances),
        project=meta.project,
        started=meta.started or next((said.ts for said in messages), None),
        dated=times,
        profile_version=meta.profile_version,
        shown=frozenset(meta.shown),
        succeeded=reached if meta.verdict is None else meta.verdict,
        task=meta.task or task,
        eval_failures=meta.eval_failures,
        is_task_run=format in TASK_FORMATS,
    )


def _texts(messages: Iterable[TranscriptMessage]) -> Iterator[str]:
    for message in messages:
        if not message.is_demo:
            yield message.text
            yield from (result.text for result in message.results)
            yield from (call.arguments for call in message.calls)


def _trust(said: TranscriptMessage, role: Role) -> Trust:
    if said.is_injected or role == "system":
        return LEAST
    return "user" if role == "user" else "assistant"
