"""Messages on their way into a log: each gets an ordinal and its place in the history; the same `id` is one entry.

A batch is tried on a copy of the state and written at once: all of it, or nothing. What others appended first is read,
and the rest goes behind it. Raises `Conflict`, `Erased` for a principal that was forgotten, and what a journal raises.

What a caller hands a session: a message and what stands beside it, checked before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ctxsteward.schemas import Erased, Finding, InputError, Message
from ctxsteward.schemas.message import encode_wire
from ctxsteward.store.journal.events import PLAIN, MessageAppended, PinStrength
from ctxsteward.store.names import MAX_META_CHARS, unseen

from .log_view import SessionLogView
from .originals import Originals
from .state import State
from .tool_groups import LogEntry, place

MAX_NOTE_NAME_CHARS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """A message to add, and what `Session.append` takes beside it."""

    message: object
    id: str | None = None
    phase: str | None = None
    pin: PinStrength | None = None
    ts: str | None = None
    principal: str | None = None
    origin: str | None = None


def check_meta(new: NewMessage) -> None:
    """What stands beside a message is text that can be stored."""
    for name in ("id", "phase", "ts", "principal", "origin"):
        value = getattr(new, name)
        if value is None:
            continue
        if not isinstance(value, str) or not value or len(value) > MAX_META_CHARS:
            raise InputError(f"`{name}` is {value!r:.60}; write a text of 1 to {MAX_META_CHARS} characters, or None")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InputError(f"`{name}` holds a lone surrogate; write well-formed Unicode") from None
    if new.principal is not None:
        _check_principal(new.principal)
    if new.pin not in (None, "keep", "soft"):
        raise InputError(f"`pin` is {new.pin!r:.60}; write 'keep', 'soft' or None")


def _check_principal(name: str) -> None:
    """A name that others can read: characters that nobody sees would make one person many."""
    if (char := unseen(name)) is not None:
        raise InputError(f"`principal` {name!r:.60} holds {char}, which nobody can see; write the name without it")
    if name.isspace():
        raise InputError(f"`principal` is {name!r:.60}; write a name that can be seen, or None")


def check_note(name: str, text: object) -> None:
    """A note has a short name and is text that can be stored."""
    if not name or not name.replace("-", "").replace("_", "").isalnum() or len(name) > MAX_NOTE_NAME_CHARS:
        raise InputError(
            f"note name {name[:70]!r} is not usable; take letters, digits, - and _, at most {MAX_NOTE_NAME_CHARS}"
        )
    if not isinstance(text, str):
        raise InputError(f"note {name!r} is {type(text).__name__}; a note is text")
    encode_wire({"role": "user", "content": text})


class ParsedMessage(NamedTuple):
    """A message that was read and counted."""

    wire: str
    """Its bytes, as they are kept."""
    message: Message
    tokens: dict[str, int]
    """By tokenizer."""
    new: NewMessage
    """What stands beside it."""


class MessageAppender:
    """Writes messages behind a replica."""

    def __init__(self, replica: SessionLogView, originals: Originals) -> None:
        self._replica, self._originals = replica, originals

    def one(self, taken: ParsedMessage) -> LogEntry:
        """Append a message."""
        return self._replica.retried(lambda: self._one(taken))

    def batch(self, batch: Sequence[ParsedMessage]) -> list[LogEntry]:
        """Append messages in one write."""
        return self._replica.retried(lambda: self._batch(batch))

    def _one(self, taken: ParsedMessage) -> LogEntry:
        if taken.new.id is not None and (known := self._known(taken)) is not None:
            return known
        replica = self._replica
        entry = self._entry(replica.state, taken)
        replica.write((entry.event,))
        replica.state.add(entry)
        return entry

    def _batch(self, batch: Sequence[ParsedMessage]) -> list[LogEntry]:
        state = self._replica.state.copy()
        entries: list[LogEntry] = []
        fresh: list[MessageAppended] = []
        ids: dict[str, LogEntry] = {}
        for taken in batch:
            entry = self._known(taken, ids)
            if entry is None:
                entry = self._entry(state, taken)
                state.add(entry)
                fresh.append(entry.event)
                if taken.new.id is not None:
                    ids[taken.new.id] = entry
            entries.append(entry)
        self._replica.write(fresh)
        self._replica.state = state
        return entries

    def _known(self, taken: ParsedMessage, ids: Mapping[str, LogEntry] | None = None) -> LogEntry | None:
        """The entry of its id, in `ids` or in the log; a finding where that says something else."""
        id = taken.new.id
        if id is None:
            return None
        known = (ids or {}).get(id) or self._originals.by_id(id)
        if known is not None and known.event.wire != taken.wire and not known.event.damaged and not known.event.erased:
            text = f"id {known.event.id!r} was appended again with another content; the first one stays"
            self._replica.noticed.findings.append(Finding(kind="id_reused", ref=known.ref, text=text))
        return None if known is None else LogEntry(known.event, known._message)

    def _entry(self, state: State, taken: ParsedMessage) -> LogEntry:
        """The message at its place behind this state."""
        wire, message, tokens, new = taken
        if new.principal is not None and (gone := self._replica.forgotten.get(new.principal)) is not None:
            what = f"principal {new.principal!r} of session {self._replica.id!r}"
            raise Erased(what, who=gone.who, when=gone.when, why=gone.why)
        ordinal = state.ordinal + 1
        placement = place(state, message, ordinal)
        results = len(message.tool_results) if placement is not PLAIN else 0
        event = MessageAppended(
            ordinal=ordinal,
            wire=wire,
            placement=placement,
            tokens=tokens,
            outputs=state.outputs + results if results else 0,
            address=self._replica.log.address(new.principal, wire),
            id=new.id,
            phase=new.phase,
            pin=new.pin,
            ts=new.ts,
            principal=new.principal,
            origin=new.origin,
        )
        return LogEntry(event, message, is_new=True)
