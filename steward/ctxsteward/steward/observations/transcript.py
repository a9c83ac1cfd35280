"""A replayed transcript: its messages in order, with principal and trust, without secrets.

`ingest` makes it, and harvesters read it. Its text is redacted; spans of evidence are byte ranges of the redacted text.
Ordinals are those of a session: leading system messages take none. A tool result is a text of its own inside its
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
"""Formats in which an assistant works for the person, with or without tool calls."""
Role = Literal["user", "assistant", "tool", "system"]
Dated = Literal["messages", "started", "file", "undated"]
"""Source of a transcript's times. messages: at least one message has a time. started: the metadata have the start.
file: only the time of the file or object is known. undated: no time is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedCall:
    """A tool call of an assistant message."""

    id: str
    name: str
    arguments: str
    """JSON text as the model wrote it, redacted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedUtterance:
    """One text of one message: a person's, the assistant's, or one tool result."""

    ordinal: int
    ref: str
    """``§7``; ``§7.2`` for the second result inside one message."""
    role: Role
    text: str
    trust: Trust
    principal: str | None
    """The person behind it (for assistant and tool text, the person the conversation is with), or None if unknown."""
    ts: str | None = None
    """Time of the message, or the best known time (`ReplayedTranscript.dated`)."""
    calls: tuple[ReplayedCall, ...] = ()
    """Tool calls of an assistant message."""
    call_id: str | None = None
    """Id of the call that a tool result answers."""
    tool: str | None = None
    """Name of the tool of a tool result."""
    is_error: bool = False
    """Whether the transcript flags a tool result as an error."""
    confirming_fields: tuple[str, ...] = ()
    """Fields of a tool result that may confirm people's claims, as the operator declares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedTranscript:
    """One transcript, ready to be harvested."""

    source: str
    """Name that is the same every night: path in its folder, key of its object, or ``store``."""
    session: str
    principal: str | None
    """The user, or the task; None for an unknown user."""
    format: str
    digest: str
    """SHA-256 of the input with the extractor's settings; inside the process only."""
    utterances: tuple[ReplayedUtterance, ...]
    project: str | None = None
    started: str | None = None
    dated: Dated = "undated"
    profile_version: int | None = None
    """Version of the governed profile that the session used, if known."""
    shown: frozenset[str] = frozenset()
    """Ids of records that the session was shown, to which it can lend no support."""
    succeeded: bool | None = None
    """Whether the task was solved; None if unknown."""
    task: str | None = None
    eval_failures: tuple[str, ...] = ()
    """Scorers of an eval that failed on the transcript, with their reason."""
    is_task_run: bool = False
    """Whether an agent of the operator works on a task, without users of the public."""

    @property
    def principals(self) -> tuple[str | None, ...]:
        """The principal and everybody who spoke, in order (`in_order`)."""
        return in_order({self.principal, *(said.principal for said in self.utterances)}, self.session)

    def users(self) -> Iterator[ReplayedUtterance]:
        """Return the messages of people."""
        return (said for said in self.utterances if said.role == "user")


def speaker_order(principal: str | None, session: str) -> tuple[str, bool]:
    """Return the key that sorts the principals of a session.

    An unknown speaker is sorted as the session's name, which the first stored form wrote for an unknown speaker: the
    order of principals decides the bytes of an artifact.
    """
    return (session, False) if principal is None else (principal, True)


def in_order(principals: Iterable[str | None], session: str) -> tuple[str | None, ...]:
    """Return the principals of one session, each once, in order.

    >>> in_order(["zoe", None, "s-1", "ann"], "s-1")
    ('ann', None, 's-1', 'zoe')
    """
    return tuple(sorted(set(principals), key=lambda principal: speaker_order(principal, session)))
