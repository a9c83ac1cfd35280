"""Entries and tool groups: what of a history moves together, and how a broken one is repaired.

A *group* is an assistant message with its tool calls and all their results, or a single other message. Providers
refuse a call without its result and a result without its call, so a group is shown or compacted as one. A history that
breaks the pairing is repaired when it is rendered, with a finding, and never refused: an unanswered call gets a
placeholder result, a result without a call is shown as fenced text, a reused or missing id gets an alias.
Decisions are taken once, when a message is appended (`place`), and stored with it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ctxsteward.schemas import ImagePart, Message, OpaquePart, TextPart, ToolCallPart
from ctxsteward.schemas.message import control_fields, decode_wire

from .events import PLAIN, Appended, Placement

if TYPE_CHECKING:
    from .counting import Counter

# OpenAI takes ids of at most 40 characters, Anthropic these characters.
_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")

FINDING_TEXTS = {
    "tool_call_without_result": "a tool call was followed by another message; a placeholder result stands in",
    "tool_result_without_call": "a tool result answers no open call; it is shown as fenced text",
    "tool_call_id_replaced": "a tool call's id was missing, unusable or already taken; it goes by another",
    "empty_assistant_message": "an assistant message says nothing and calls nothing; it is not shown",
    "original_damaged": "an original is damaged or missing and cannot be shown; a line that says so stands in",
    "untrusted_system_message": "a system message arrived by append; it is shown as fenced text, not as the operator's",
    "control_field": "a message names what only an operator sets; the provider is not sent it, the original keeps it",
}


class Entry:
    """A message in the log: its ordinal, its reference, the original."""

    __slots__ = ("_controls", "_message", "_tokens", "event", "is_new", "ordinal")

    def __init__(self, event: Appended, message: Message | None = None, *, is_new: bool = False) -> None:
        self.event = event
        self.is_new = is_new
        """Of what `Session.append` and `extend` return: whether that call wrote it. False: its id was there already."""
        self.ordinal = event.ordinal
        self._message = message
        self._tokens = event.tokens
        self._controls: tuple[str, ...] | None = None

    @property
    def ref(self) -> str:
        return f"§{self.ordinal}"

    @property
    def message(self) -> Message:
        if self._message is None:
            self._message = decode_wire(self.event.wire)
        return self._message

    @property
    def controls(self) -> tuple[str, ...]:
        """Fields of the original that only an operator sets; no provider is sent them."""
        if self._controls is None:
            self._controls = control_fields(self.message.wire)
        return self._controls

    def tokens(self, counter: Counter) -> int:
        """Tokens of the whole original; stored with it, or counted once."""
        found = self._tokens.get(counter.name)
        if found is None:
            found = counter.message(self.message)
            self._tokens = {**self._tokens, counter.name: found}
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entry) and other.event == self.event

    def __hash__(self) -> int:
        return hash(self.ordinal)

    def __repr__(self) -> str:
        return f"Entry({self.ref}, {self.message.role})"


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A tool call that waits for its result."""

    id: str
    """As the message has it; empty where it has none."""
    alias: str
    """As we render it."""


class Group:
    """Messages that move as one, oldest first."""

    __slots__ = ("cache", "entries", "ordinals")

    def __init__(self, entries: tuple[Entry, ...]) -> None:
        self.entries = entries
        self.ordinals = (entries[0].ordinal,) if len(entries) == 1 else tuple([entry.ordinal for entry in entries])
        self.cache: dict[object, object] | None = None
        """Fragments by (shape, counter): a cache of pure results, never state."""

    @property
    def first(self) -> int:
        return self.ordinals[0]

    @property
    def last(self) -> int:
        return self.ordinals[-1]

    def with_entry(self, entry: Entry) -> Group:
        return Group((*self.entries, entry))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and other.entries == self.entries

    def __hash__(self) -> int:
        return hash(self.ordinals)

    def __repr__(self) -> str:
        return f"Group({', '.join(f'§{n}' for n in self.ordinals)})"


def calls_of(entry: Entry) -> list[OpenCall]:
    """The calls of an assistant entry, by the ids they are rendered with."""
    aliases = dict(entry.event.placement.aliases)
    return [OpenCall(call.id, aliases.get(index, call.id)) for index, call in enumerate(entry.message.tool_calls)]


def answered_by(entry: Entry) -> set[str]:
    return {alias for _, alias in entry.event.placement.answers}


def unanswered(group: Group) -> list[OpenCall]:
    """Calls of the group that have no result in it."""
    head = group.entries[0]
    if not head.message.tool_calls:
        return []
    answered: set[str] = set()
    for entry in group.entries[1:]:
        answered |= answered_by(entry)
    return [call for call in calls_of(head) if call.alias not in answered]


def says_something(message: Message) -> bool:
    """Whether an assistant message has anything a provider would accept."""
    return any(
        (isinstance(part, TextPart) and part.text.strip()) or isinstance(part, (OpaquePart, ImagePart, ToolCallPart))
        for part in message.parts
    )


def is_user_turn(message: Message) -> bool:
    """Whether this is a person speaking (not only tool results carried in a user message)."""
    return message.role == "user" and any(isinstance(part, (TextPart, ImagePart, OpaquePart)) for part in message.parts)


class History(Protocol):
    """What `place` needs to know of the log so far."""

    open_calls: list[OpenCall]
    call_ids: set[str]


def place(history: History, message: Message, ordinal: int) -> Placement:
    """Decide how a message fits; the answer is stored with it and never revised."""
    role = message.role
    if role in ("user", "assistant") and not message.tool_calls and not message.tool_results:
        if role == "assistant" and not says_something(message):
            kinds = ("empty_assistant_message",)
            return Placement(findings=(*kinds, "tool_call_without_result") if history.open_calls else kinds)
        return Placement(findings=("tool_call_without_result",)) if history.open_calls else PLAIN
    if role in ("system", "developer"):
        return Placement(joins=bool(history.open_calls), findings=("untrusted_system_message",))
    if message.tool_results:
        return _place_results(history, message)
    return _place_calls(history, message, ordinal)


def _place_results(history: History, message: Message) -> Placement:
    waiting = list(history.open_calls)
    answers: list[tuple[int, str]] = []
    orphans: list[int] = []
    for index, result in enumerate(message.tool_results):
        call = next((call for call in waiting if call.id == result.call_id), None)
        if call is None:
            orphans.append(index)
        else:
            waiting.remove(call)
            answers.append((index, call.alias))
    return Placement(
        joins=bool(history.open_calls),
        answers=tuple(answers),
        orphans=tuple(orphans),
        findings=("tool_result_without_call",) if orphans else (),
    )


def _place_calls(history: History, message: Message, ordinal: int) -> Placement:
    findings = ["tool_call_without_result"] if history.open_calls else []
    aliases: list[tuple[int, str]] = []
    taken: set[str] = set()
    for index, call in enumerate(message.tool_calls):
        if call.id in history.call_ids or call.id in taken or not _SAFE_ID.fullmatch(call.id):
            alias = f"call_{ordinal}_{index + 1}"
            while alias in history.call_ids or alias in taken:
                alias += "x"
            aliases.append((index, alias))
            taken.add(alias)
        else:
            taken.add(call.id)
    if aliases:
        findings.append("tool_call_id_replaced")
    if not aliases and not findings:
        return PLAIN
    return Placement(aliases=tuple(aliases), findings=tuple(findings))
