"""Messages, log entries and tool groups: which messages belong together, and how broken pairs are repaired.

A `NewMessage` is a message with its metadata, as a caller hands it to a session. Both are checked before a write.

A *group* is an assistant message with its tool calls and all their results, or a single other message. Providers refuse
a call without its result and a result without its call, so a group is shown or compacted as one. A history that breaks
the pairing is repaired when it is rendered, with a finding, and never refused: an unanswered call gets a placeholder
result, a result without a call is shown as fenced text, a reused or missing id gets an alias. These decisions are made
once, when a message is appended (`place`), and stored with it.

An unreadable original gets a stand-in (`fill`) with its place, role and tool pairs, and none of its words. Nothing of a
damaged record is ever shown. The *shape* that it claims (role, tool calls, tool results) serves as a hint, because a
wrong shape harms nobody: `place` judges it against the history like any other message, its calls get our ids, and later
messages that depended on it are placed anew. A record that claims nothing gets its shape from its neighbours: the
speaker before it, and the results after it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from pydantic import ValidationError

from ctxsteward.schemas import ContextError, ImagePart, InputError, Message, TextPart, ToolCallPart
from ctxsteward.schemas.documents import Outcome
from ctxsteward.schemas.message import (
    OpaquePart,
    ThinkingPart,
    Wire,
    control_fields,
    decode_wire,
    encode_wire,
    is_item_run,
)
from ctxsteward.schemas.profile import instant
from ctxsteward.store.journal.events import PLAIN, MessageAppended, PinStrength, Placement
from ctxsteward.store.names import MAX_META_CHARS, unseen

if TYPE_CHECKING:
    from ..tokens.tokenizer import Counter


# OpenAI takes ids of at most 40 characters, Anthropic these characters.
_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_TEXT_KINDS = ("text", "input_text", "output_text", "refusal", "message")
"""Types of blocks and items that are text."""


class LogEntry:
    """A message in the log with its ordinal and reference."""

    __slots__ = ("_controls", "_message", "_tokens", "event", "is_new", "is_shortened", "ordinal")

    def __init__(self, event: MessageAppended, message: Message | None = None, *, is_new: bool = False) -> None:
        self.event: MessageAppended = event
        self.is_new: bool = is_new
        """Whether the `Session.append` or `extend` that returned the entry wrote it; False if its id was known."""
        self.is_shortened: bool = False
        """Whether `message` is a shortened form of the original (`saying`)."""
        self.ordinal: int = event.ordinal
        self._message = message
        self._tokens = event.tokens
        self._controls: tuple[str, ...] | None = None

    @property
    def ref(self) -> str:
        return f"§{self.ordinal}"

    @property
    def unix_seconds(self) -> float | None:
        """When the message was written; None where that is not known: earlier versions took times in any form."""
        seconds = instant(self.event.ts)
        return None if seconds == float("-inf") else seconds

    @property
    def message(self) -> Message:
        if self._message is None:
            self._message = decode_wire(self.event.wire)
        return self._message

    def saying(self, text: str) -> LogEntry:
        """Return an entry with this text in place of the message's own and with the same calls; it is no original."""
        wire, content = self.message.wire, self.message.wire.get("content")
        if self.message.dialect == "gemini":
            are_texts = [isinstance(part, TextPart) for part in self.message.parts]
            at = are_texts.index(True)
            rest = [part for part, is_text in zip(wire["parts"][at:], are_texts[at:], strict=True) if not is_text]
            wire = {**wire, "parts": [*wire["parts"][:at], {"text": text}, *rest]}
        elif isinstance(content, list):
            are_texts = [isinstance(block, str) or block.get("type") in _TEXT_KINDS for block in content]
            at = are_texts.index(True)
            rest = [block for block, is_text in zip(content[at:], are_texts[at:], strict=True) if not is_text]
            wire = {**wire, "content": [*content[:at], {"type": "text", "text": text}, *rest]}
        else:
            wire = {**wire, "content": text}
        other = LogEntry(self.event, Message.from_wire(wire), is_new=self.is_new)
        other._tokens = {}
        other.is_shortened = True
        return other

    @property
    def controls(self) -> tuple[str, ...]:
        """Fields of the original that only an operator may set; they are sent to no provider."""
        if self._controls is None:
            self._controls = control_fields(self.message.wire)
        return self._controls

    def tokens(self, counter: Counter) -> int:
        """Return the tokens of the whole original, as stored with it or counted once."""
        found = self._tokens.get(counter.name)
        if found is None:
            found = counter.message(self.message)
            self._tokens = {**self._tokens, counter.name: found}
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogEntry) and other.event == self.event

    def __hash__(self) -> int:
        return hash(self.ordinal)

    def __repr__(self) -> str:
        return f"Entry({self.ref}, {self.message.role})"


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A tool call that waits for its result."""

    id: str
    """Id in the message; empty if it has none."""
    alias: str
    """Id in the rendered request."""
    name: str = field(default="", compare=False)
    """Name of the tool, which matches Gemini's results without an id."""


class ToolGroup:
    """Messages that are shown or compacted together, oldest first."""

    __slots__ = ("cache", "entries", "ordinals")

    def __init__(self, entries: tuple[LogEntry, ...]) -> None:
        self.entries: tuple[LogEntry, ...] = entries
        self.ordinals: tuple[int, ...] = (
            (entries[0].ordinal,) if len(entries) == 1 else tuple([entry.ordinal for entry in entries])
        )
        self.cache: dict[object, object] | None = None
        """Fragments by (shape, counter): cached results of pure functions, never state."""

    @property
    def first(self) -> int:
        return self.ordinals[0]

    @property
    def last(self) -> int:
        return self.ordinals[-1]

    def with_entry(self, entry: LogEntry) -> ToolGroup:
        return ToolGroup((*self.entries, entry))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolGroup) and other.entries == self.entries

    def __hash__(self) -> int:
        return hash(self.ordinals)

    def __repr__(self) -> str:
        return f"Group({', '.join(f'§{n}' for n in self.ordinals)})"


def calls_of(entry: LogEntry) -> list[OpenCall]:
    """Return the calls of an assistant entry, with the ids they are rendered with."""
    aliases = dict(entry.event.placement.aliases)
    calls = enumerate(entry.message.tool_calls)
    return [OpenCall(call.id, aliases.get(index, call.id), call.name) for index, call in calls]


def answered_by(entry: LogEntry) -> set[str]:
    return {alias for _, alias in entry.event.placement.answers}


def unanswered(group: ToolGroup) -> list[OpenCall]:
    """Return the calls of the group that have no result in it."""
    calls = [call for entry in group.entries if entry.message.tool_calls for call in calls_of(entry)]
    if not calls:
        return []
    answered: set[str] = set()
    for entry in group.entries[1:]:
        answered |= answered_by(entry)
    return [call for call in calls if call.alias not in answered]


def says_something(message: Message) -> bool:
    """Return whether an assistant message has content that a provider would accept."""
    return any(
        (isinstance(part, TextPart) and part.text.strip()) or isinstance(part, (OpaquePart, ImagePart, ToolCallPart))
        for part in message.parts
    )


def said_by(message: Message) -> str:
    """Return a message's text and calls, without its tool results."""
    calls = [f"{part.name} {part.arguments}" for part in message.parts if isinstance(part, ToolCallPart)]
    return "\n".join(part for part in (message.text, *calls) if part)


def text_of(message: Message) -> str:
    """Return all text of a message by lines, for probes and spans: text, call names and arguments, tool results."""
    results = [result.text for result in message.tool_results]
    return "\n".join(part for part in (said_by(message), *results) if part)


def is_user_turn(message: Message) -> bool:
    """Return whether a person speaks in this message; tool results in a user message alone do not count."""
    return message.role == "user" and any(isinstance(part, (TextPart, ImagePart, OpaquePart)) for part in message.parts)


def goes_on(group: ToolGroup | None, message: Message) -> bool:
    """Return whether a message is another item of the reply that begins the newest group.

    OpenAI's responses API gives the items of a reply one by one: parallel calls, and reasoning, which it takes back
    only with the item after it. A reply ends with a result or with a message of its own.
    """
    if group is None or not is_item_run(message) or not is_item_run(last := group.entries[-1].message):
        return False
    return bool(unanswered(group)) or all(isinstance(part, ThinkingPart) for part in last.parts)


def place(
    open_calls: Sequence[OpenCall], call_ids: Set[str], message: Message, ordinal: int, *, joins: bool = False
) -> Placement:
    """Decide how a message fits the history; the decision is stored with it and never revised.

    `open_calls` wait for their results, `call_ids` are those in the window; `joins` means that it continues a reply.
    """
    role = message.role
    if joins:
        return replace(_place_calls((), call_ids, message, ordinal), joins=True)
    if is_item_run(message) and message.parts and all(isinstance(part, ThinkingPart) for part in message.parts):
        return Placement(findings=("tool_call_without_result",)) if open_calls else PLAIN
    if role in ("user", "assistant") and not message.tool_calls and not message.tool_results:
        if role == "assistant" and not says_something(message):
            kinds = ("empty_assistant_message",)
            return Placement(findings=(*kinds, "tool_call_without_result") if open_calls else kinds)
        return Placement(findings=("tool_call_without_result",)) if open_calls else PLAIN
    if role in ("system", "developer"):
        return Placement(joins=bool(open_calls), findings=("untrusted_system_message",))
    if message.tool_results:
        return _place_results(open_calls, message)
    return _place_calls(open_calls, call_ids, message, ordinal)


def _place_results(open_calls: Sequence[OpenCall], message: Message) -> Placement:
    waiting = list(open_calls)
    answers: list[tuple[int, str]] = []
    orphans: list[int] = []
    for index, result in enumerate(message.tool_results):
        if message.dialect == "gemini" and not result.call_id:
            call = next((call for call in waiting if call.name in (result.name, DAMAGED_NAME)), None)
        else:
            call = next((call for call in waiting if call.id == result.call_id), None)
        if call is None:
            orphans.append(index)
        else:
            waiting.remove(call)
            answers.append((index, call.alias))
    return Placement(
        joins=bool(open_calls),
        answers=tuple(answers),
        orphans=tuple(orphans),
        findings=("tool_result_without_call",) if orphans else (),
    )


def _place_calls(open_calls: Sequence[OpenCall], call_ids: Set[str], message: Message, ordinal: int) -> Placement:
    findings = ["tool_call_without_result"] if open_calls else []
    aliases: list[tuple[int, str]] = []
    taken: set[str] = set()
    for index, call in enumerate(message.tool_calls):
        if call.id in call_ids or call.id in taken or not _SAFE_ID.fullmatch(call.id):
            alias = f"call_{ordinal}_{index + 1}"
            while alias in call_ids or alias in taken:
                alias += "x"
            aliases.append((index, alias))
            taken.add(alias)
        else:
            taken.add(call.id)
    if any(message.dialect != "gemini" or message.tool_calls[index].id for index, _ in aliases):
        findings.append("tool_call_id_replaced")  # a call of Gemini needs no id
    if not aliases and not findings:
        return PLAIN
    return Placement(aliases=tuple(aliases), findings=tuple(findings))


DAMAGED_NAME = "damaged"
"""Tool name of a call that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingMessage:
    """An unreadable message of the log."""

    ordinal: int
    said: Message | None = None
    """The message that the damaged record claims to have; only its shape is used."""
    joins: bool = False
    """Whether it is known to belong to the tool group before it."""


def claimed(wire: str | None) -> Message | None:
    """Return the message that a damaged record claims to have, or None if it is no message."""
    if not wire:
        return None
    try:
        return decode_wire(wire)
    except (ContextError, ValueError, RecursionError, TypeError, AttributeError):
        return None


def stand_in_text(ordinal: int) -> str:
    return f"[§{ordinal}: the original is damaged and cannot be shown]"


def fill(
    open_calls: Sequence[OpenCall],
    call_ids: Set[str],
    hole: MissingMessage,
    before: str | None,
    after: Sequence[Message],
    outputs: int = 0,
) -> LogEntry:
    """Return the stand-in for a hole. `before` is the role before it, `after` the messages behind it in its group."""
    shown = decode_wire(encode_wire(_shape(hole, open_calls, before, after)))
    ids = {call.id for call in shown.tool_calls}
    placement = place(open_calls, call_ids | ids, shown, hole.ordinal)
    results = len(shown.tool_results)
    event = MessageAppended(
        ordinal=hole.ordinal,
        wire=encode_wire(shown),
        placement=replace(placement, findings=(*placement.findings, "original_damaged")),
        outputs=outputs + results if results else 0,
        damaged=True,
    )
    return LogEntry(event, shown)


def refit(open_calls: Sequence[OpenCall], call_ids: Set[str], entry: LogEntry) -> LogEntry:
    """Place a message behind a stand-in anew, because the history before it may have changed."""
    joins = entry.event.placement.joins and is_item_run(entry.message)
    placement = place(open_calls, call_ids, entry.message, entry.ordinal, joins=joins)
    return entry if placement == entry.event.placement else LogEntry(replace(entry.event, placement=placement))


def mended(rows: Sequence[LogEntry | MissingMessage], before: str | None) -> ToolGroup:
    """Return the group of these messages with holes filled; `before` is the role before it."""
    if not any(isinstance(row, MissingMessage) for row in rows):
        return ToolGroup(tuple(row for row in rows if isinstance(row, LogEntry)))
    open_calls: list[OpenCall] = []
    call_ids: set[str] = set()
    entries: list[LogEntry] = []
    for index, row in enumerate(rows):
        after = [later.message for later in rows[index + 1 :] if isinstance(later, LogEntry)]
        if isinstance(row, MissingMessage):
            entry = fill(open_calls, call_ids, _fitting(row, index, len(rows)), before, after)
        else:
            entry = refit(open_calls, call_ids, row)
        calls = calls_of(entry) if entry.message.tool_calls else []
        done = answered_by(entry)
        open_calls = [call for call in open_calls if call.alias not in done] + calls
        call_ids |= {call.alias for call in calls}
        entries.append(entry)
        before = entry.message.role
    return ToolGroup(tuple(entries))


def _fitting(hole: MissingMessage, index: int, size: int) -> MissingMessage:
    """Return a hole in a group of this size without a claim that contradicts the group."""
    said = hole.said
    if index:
        joins = said is not None and (
            bool(said.tool_results or said.tool_calls) or said.role in ("system", "developer")
        )
        return replace(hole, said=said if joins else None, joins=True)
    return hole if size == 1 or (said is not None and said.tool_calls) else replace(hole, said=None)


def _shape(hole: MissingMessage, open_calls: Sequence[OpenCall], before: str | None, after: Sequence[Message]) -> Wire:
    claim, text = hole.said, stand_in_text(hole.ordinal)
    called = {call.id for message in after for call in message.tool_calls}
    results = [result.call_id for message in after for result in message.tool_results]
    answered = [id for id in results if id not in called]
    if claim is None:
        waiting = [call.id for call in open_calls if call.id not in answered]
        if open_calls or hole.joins:
            return _results(text, waiting[:1], "tool") if waiting else {"role": "system", "content": text}
        if answered:
            return _calls(text, list(dict.fromkeys(answered)))
        return {"role": "assistant" if before in ("user", "tool") else "user", "content": text}
    if claim.tool_calls:
        return _calls(text, [call.id for call in claim.tool_calls])
    if claim.tool_results:
        spoken = claim.role == "user" and len(claim.parts) > len(claim.tool_results)
        return _results(text, [result.call_id for result in claim.tool_results], claim.role, spoken=spoken)
    return {"role": claim.role, "content": text}


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


MAX_NOTE_NAME_CHARS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """A message to append, with the metadata that `Session.append` takes."""

    message: object
    id: str | None = None
    phase: str | None = None
    pin: PinStrength | None = None
    ts: str | None = None
    principal: str | None = None
    origin: str | None = None


def check_meta(new: NewMessage) -> None:
    """Check that the metadata of a message can be stored; raise `InputError`."""
    if new.ts is not None and (not isinstance(new.ts, str) or instant(new.ts) == float("-inf")):
        raise InputError(f"`ts` is {new.ts!r:.60}; write an ISO 8601 time such as '2026-11-20T10:00:00Z', or None")
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
        # a name with an invisible character would make one person many
        if (char := unseen(new.principal)) is not None:
            shown = f"`principal` {new.principal!r:.60}"
            raise InputError(f"{shown} holds {char}, which nobody can see; write the name without it")
        if new.principal.isspace():
            raise InputError(f"`principal` is {new.principal!r:.60}; write a name that can be seen, or None")
    if new.pin not in (None, "keep", "soft"):
        raise InputError(f"`pin` is {new.pin!r:.60}; write 'keep', 'soft' or None")


def check_note(name: str, text: object) -> None:
    """Check that a note has a short name and text that can be stored; raise `InputError`."""
    if not name or not name.replace("-", "").replace("_", "").isalnum() or len(name) > MAX_NOTE_NAME_CHARS:
        raise InputError(
            f"note name {name[:70]!r} is not usable; take letters, digits, - and _, at most {MAX_NOTE_NAME_CHARS}"
        )
    if not isinstance(text, str):
        raise InputError(f"note {name!r} is {type(text).__name__}; a note is text")
    encode_wire({"role": "user", "content": text})


def checked_outcome(told: Mapping[str, object]) -> Outcome:
    """Return the outcome with these values, without those that are None; raise `InputError`."""
    given = {name: value for name, value in told.items() if value is not None}
    reward = given.get("reward")
    try:
        return Outcome.model_validate(given | ({"reward": float(reward)} if type(reward) is int else {}))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        found = f"`{where}` is {given[where]!r:.60}: " if where in given else ""
        raise InputError(f"outcome: {found}{first['msg'].removeprefix('Value error, ')}") from error


class ParsedMessage(NamedTuple):
    """A message after parsing and counting."""

    wire: str
    """The message's JSON as it is stored."""
    message: Message
    tokens: dict[str, int]
    """Token counts by tokenizer."""
    new: NewMessage
    """The message's metadata."""
