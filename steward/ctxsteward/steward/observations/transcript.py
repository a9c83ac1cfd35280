"""A replayed transcript: its messages in order, with principal and trust, without secrets.

`ingest` makes one, the harvesters read it. Text is the text *after* redaction; spans of evidence are byte ranges of it.
Ordinals count as a session does: leading system messages take none. A tool result is a text of its own inside its
message, with its own reference (``§7.2``).

Source: the layered-envelope design (replay); the state design (trust labels).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from ctxsteward.envelope.transcripts.files import formats_with
from ctxsteward.schemas.summary import Trust

TASK_FORMATS = formats_with("is_task_run")
"""Formats in which an assistant works for the person, whether it called a tool or not."""
Role = Literal["user", "assistant", "tool", "system"]
Dated = Literal["messages", "started", "file", "undated"]
"""Where the times of a transcript are from. messages: at least one has its own. started: its metadata say when it
began. file: only the time is known when its file or object was written. undated: no time is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedCall:
    """A tool call of an assistant message."""

    id: str
    name: str
    arguments: str
    """JSON text as the model wrote it, redacted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedUtterance:
    """One text of one message: what somebody said, or what one tool call gave back."""

    ordinal: int
    ref: str
    """``§7``; ``§7.2`` for the second result inside one message."""
    role: Role
    text: str
    trust: Trust
    principal: str | None
    """The person behind it (for assistant and tool text, the person the conversation is with), or None if unknown."""
    ts: str | None = None
    """Its own time, else the best that is known of it (`ReplayedTranscript.dated`)."""
    calls: tuple[ReplayedCall, ...] = ()
    """Tool calls of an assistant message."""
    call_id: str | None = None
    """Id of the call that a tool result answers."""
    tool: str | None = None
    """Name of the tool of a tool result."""
    is_error: bool = False
    """Whether the transcript flags a tool result as an error."""
    confirming_fields: tuple[str, ...] = ()
    """Of a tool result: fields whose values may confirm what a person claims, as the operator declares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedTranscript:
    """One transcript, ready to be harvested."""

    source: str
    """A name that is stable from night to night: path in its folder, key of its object, or ``store``."""
    session: str
    principal: str | None
    """The user or task it is with; None for an unknown user."""
    format: str
    digest: str
    """SHA-256 of what was read, with the extractor's settings; inside the process only."""
    utterances: tuple[ReplayedUtterance, ...]
    project: str | None = None
    started: str | None = None
    dated: Dated = "undated"
    profile_version: int | None = None
    """The version of the governed profile that this session was under, where known."""
    shown: frozenset[str] = frozenset()
    """Ids of records that this session was shown: it can lend them no support."""
    succeeded: bool | None = None
    """Whether its transcript says that the task was solved."""
    task: str | None = None
    """Its task, where it is told."""
    eval_failures: tuple[str, ...] = ()
    """Scorers that failed on it, with their reason, where it was an eval's."""
    is_task_run: bool = False
    """Whether it is a run of the operator's own (an agent's at a task): nobody of the public speaks in it."""

    @property
    def principals(self) -> tuple[str | None, ...]:
        """Who it is with, and everybody who spoke, in their order (`in_order`)."""
        return in_order({self.principal, *(said.principal for said in self.utterances)}, self.session)

    def users(self) -> Iterator[ReplayedUtterance]:
        """What people said."""
        return (said for said in self.utterances if said.role == "user")


def speaker_order(principal: str | None, session: str) -> tuple[str, bool]:
    """A key to sort principals of one session by.

    An unknown speaker stands where the session's name would: the first stored form wrote that name for an unknown
    speaker, and the order of principals decides the bytes of an artifact.
    """
    return (session, False) if principal is None else (principal, True)


def in_order(principals: Iterable[str | None], session: str) -> tuple[str | None, ...]:
    """Principals of one session, each once, in their order.

    >>> in_order(["zoe", None, "s-1", "ann"], "s-1")
    ('ann', None, 's-1', 'zoe')
    """
    return tuple(sorted(set(principals), key=lambda principal: speaker_order(principal, session)))
