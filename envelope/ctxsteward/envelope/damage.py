"""Stand-ins for originals that cannot be read: the place, the role and the tool pairs stay, the words do not.

Nothing of a damaged record is ever shown. What it claims about its *shape* (role, tool calls, tool results) is taken as
a hint, because a wrong shape harms nobody: `place` judges it against the history like any other message, ids of its
calls are replaced by ours, and messages after it are placed anew where they leaned on what is gone. Where it claims
nothing, the shape comes from its neighbours: who spoke before, which results follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ctxsteward.schemas import ContextError, Message, Wire
from ctxsteward.schemas.message import decode_wire, encode_wire

from .events import Appended
from .groups import Entry, Group, History, OpenCall, answered_by, calls_of, place

DAMAGED_NAME = "damaged"
"""Goes for the name of a tool whose call cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """A message that cannot be read."""

    ordinal: int
    said: Message | None = None
    """What the record claims to be: looked at for its shape alone."""
    joins: bool = False
    """It is known to belong to the tool group before it."""


def claimed(wire: str | None) -> Message | None:
    """The message that a damaged record claims to hold, if it is one at all."""
    if not wire:
        return None
    try:
        return decode_wire(wire)
    except (ContextError, ValueError, RecursionError, TypeError, AttributeError):
        return None


def stand_in_text(ordinal: int) -> str:
    return f"[§{ordinal}: the original is damaged and cannot be shown]"


def fill(history: History, hole: Hole, before: str | None, after: Sequence[Message], outputs: int = 0) -> Entry:
    """The stand-in at this place of a history; `before` is the role before it, `after` what follows in its group."""
    shown = decode_wire(encode_wire(_shape(hole, history.open_calls, before, after)))
    ids = {call.id for call in shown.tool_calls}
    placement = place(_Brief(history.open_calls, history.call_ids | ids), shown, hole.ordinal)
    results = len(shown.tool_results)
    event = Appended(
        ordinal=hole.ordinal,
        wire=encode_wire(shown),
        placement=replace(placement, findings=(*placement.findings, "original_damaged")),
        outputs=outputs + results if results else 0,
        damaged=True,
    )
    return Entry(event, shown)


def refit(history: History, entry: Entry) -> Entry:
    """A message behind a stand-in, placed anew where the history is no longer what it was."""
    placement = place(history, entry.message, entry.ordinal)
    return entry if placement == entry.event.placement else Entry(replace(entry.event, placement=placement))


def mended(rows: Sequence[Entry | Hole], before: str | None) -> Group:
    """The group of these messages, holes filled; `before` is the role before it."""
    if not any(isinstance(row, Hole) for row in rows):
        return Group(tuple(row for row in rows if isinstance(row, Entry)))
    history = _Brief()
    entries: list[Entry] = []
    for index, row in enumerate(rows):
        after = [later.message for later in rows[index + 1 :] if isinstance(later, Entry)]
        if isinstance(row, Hole):
            entry = fill(history, _fitting(row, index, len(rows)), before, after)
        else:
            entry = refit(history, row)
        calls = calls_of(entry) if entry.message.tool_calls else []
        done = answered_by(entry)
        history.open_calls = [call for call in history.open_calls if call.alias not in done] + calls
        history.call_ids |= {call.alias for call in calls}
        entries.append(entry)
        before = entry.message.role
    return Group(tuple(entries))


def _fitting(hole: Hole, index: int, size: int) -> Hole:
    """A hole in a group of this size: a claim that contradicts the group is no hint."""
    said = hole.said
    if index:
        joins = said is not None and (bool(said.tool_results) or said.role in ("system", "developer"))
        return replace(hole, said=said if joins else None, joins=True)
    return hole if size == 1 or (said is not None and said.tool_calls) else replace(hole, said=None)


@dataclass(slots=True)
class _Brief:
    """The little of a history that placing needs."""

    open_calls: list[OpenCall] = field(default_factory=list)
    call_ids: set[str] = field(default_factory=set)


def _shape(hole: Hole, open_calls: Sequence[OpenCall], before: str | None, after: Sequence[Message]) -> Wire:
    said, text = hole.said, stand_in_text(hole.ordinal)
    answered = [result.call_id for message in after for result in message.tool_results]
    if said is None:
        waiting = [call.id for call in open_calls if call.id not in answered]
        if open_calls or hole.joins:
            return _results(text, waiting[:1], "tool") if waiting else {"role": "system", "content": text}
        if answered:
            return _calls(text, list(dict.fromkeys(answered)))
        return {"role": "assistant" if before in ("user", "tool") else "user", "content": text}
    if said.tool_calls:
        return _calls(text, [call.id for call in said.tool_calls])
    if said.tool_results:
        spoken = said.role == "user" and len(said.parts) > len(said.tool_results)
        return _results(text, [result.call_id for result in said.tool_results], said.role, spoken=spoken)
    return {"role": said.role, "content": text}


def _calls(text: str, ids: Sequence[str]) -> Wire:
    function = {"name": DAMAGED_NAME, "arguments": "{}"}
    calls = [{"id": id, "type": "function", "function": function} for id in ids]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def _results(text: str, ids: Sequence[str], role: str, *, spoken: bool = False) -> Wire:
    if role == "tool":
        return {"role": "tool", "tool_call_id": ids[0], "content": text}
    blocks: list[Wire] = [{"type": "tool_result", "tool_use_id": id, "content": text} for id in ids]
    if spoken:
        blocks.append({"type": "text", "text": text})
    return {"role": "user", "content": blocks}
