"""Messages on their way into a log: each gets an ordinal and its place in the history; the same `id` is one entry.

A batch is tried on a copy of the state and written at once: all of it, or nothing. What others appended first is read,
and the rest goes behind it. Raises `Conflict`, `Erased` for a principal that was forgotten, and what a journal raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ctxsteward.schemas import Erased, Finding, Message

from .events import PLAIN, Appended
from .groups import Entry, place
from .incoming import NewMessage
from .originals import Originals
from .replica import Replica
from .state import State


class Taken(NamedTuple):
    """A message that was read and counted."""

    wire: str
    """Its bytes, as they are kept."""
    message: Message
    tokens: dict[str, int]
    """By tokenizer."""
    new: NewMessage
    """What stands beside it."""


class Appending:
    """Writes messages behind a replica."""

    def __init__(self, replica: Replica, originals: Originals) -> None:
        self._replica, self._originals = replica, originals

    def one(self, taken: Taken) -> Entry:
        """Append a message."""
        return self._replica.retried(lambda: self._one(taken))

    def batch(self, batch: Sequence[Taken]) -> list[Entry]:
        """Append messages in one write."""
        return self._replica.retried(lambda: self._batch(batch))

    def _one(self, taken: Taken) -> Entry:
        if taken.new.id is not None and (known := self._known(taken)) is not None:
            return known
        replica = self._replica
        entry = self._entry(replica.state, taken)
        replica.write((entry.event,))
        replica.state.add(entry)
        return entry

    def _batch(self, batch: Sequence[Taken]) -> list[Entry]:
        state = self._replica.state.copy()
        entries: list[Entry] = []
        fresh: list[Appended] = []
        ids: dict[str, Entry] = {}
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

    def _known(self, taken: Taken, ids: Mapping[str, Entry] | None = None) -> Entry | None:
        """The entry of its id, in `ids` or in the log; a finding where that says something else."""
        id = taken.new.id
        if id is None:
            return None
        known = (ids or {}).get(id) or self._originals.by_id(id)
        if known is not None and known.event.wire != taken.wire and not known.event.damaged and not known.event.erased:
            text = f"id {known.event.id!r} was appended again with another content; the first one stays"
            self._replica.noticed.findings.append(Finding(kind="id_reused", ref=known.ref, text=text))
        return None if known is None else Entry(known.event, known._message)

    def _entry(self, state: State, taken: Taken) -> Entry:
        """The message at its place behind this state."""
        wire, message, tokens, new = taken
        if new.principal is not None and (gone := self._replica.forgotten.get(new.principal)) is not None:
            what = f"principal {new.principal!r} of session {self._replica.id!r}"
            raise Erased(what, who=gone.who, when=gone.when, why=gone.why)
        ordinal = state.ordinal + 1
        placement = place(state, message, ordinal)
        results = len(message.tool_results) if placement is not PLAIN else 0
        event = Appended(
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
        return Entry(event, message, is_new=True)
