"""`State`: everything in a session's log that an envelope depends on, as a fold over its events.

`State.apply` takes one event at a time. `State.restore` starts from a compaction, which carries the whole state, so the
cost of reading a session back depends on its window and not on its age. Both give equal states (a property test).
Budgets play no part here: `layout` decides which part of the window is shown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ctxsteward.schemas import Bullet, TextPart
from ctxsteward.store.journal.events import (
    BlankRecord,
    CompactionRefused,
    EarlierLine,
    Event,
    MessageAppended,
    NoteSet,
    ObservationsAppended,
    OutcomeTold,
    PinSet,
    PinStrength,
    RecallSelected,
    SessionHead,
    SessionOpened,
    WindowCompacted,
    bullets_of,
    facts_of,
)

from .tool_groups import (
    LogEntry,
    MissingMessage,
    OpenCall,
    ToolGroup,
    answered_by,
    calls_of,
    is_user_turn,
    mended,
    unanswered,
)


class Pin(NamedTuple):
    strength: PinStrength
    name: str | None


class HeldRule(NamedTuple):
    """A user's rule whose message has left the window."""

    ordinal: int
    text: str
    principal: str | None


class Day(NamedTuple):
    """The messages of one day, as a range of ordinals."""

    name: str
    """ISO date."""
    first: int
    last: int


def _selection(stored: list[Any] | None) -> RecallSelected | None:
    """Read the live turn's selection from a checkpoint, without its log."""
    if stored is None:
        return None
    turn, refs, _, *optional = stored
    superseded, facts, excerpts, passages, earlier = (*optional, (), (), (), (), ())[:5]
    return RecallSelected(
        turn=turn,
        refs=tuple(refs),
        log={},
        superseded={old: tuple(newer) for old, newer in superseded},
        facts=facts_of(facts),
        excerpts=dict(excerpts),
        passages={ref: tuple(shown) for ref, shown in passages},
        earlier=tuple(EarlierLine(*row) for row in earlier),
    )


def _stored_selection(chosen: RecallSelected) -> list[Any]:
    """Return a selection in a checkpoint's form, without empty fields at its end."""
    optional = [
        list(chosen.superseded.items()),
        list(map(list, chosen.facts)),
        list(map(list, chosen.excerpts.items())),
        list(chosen.passages.items()),
        list(map(list, chosen.earlier)),
    ]
    while len(optional) > 1 and not optional[-1]:
        optional.pop()
    return [chosen.turn, list(chosen.refs), {}, *optional]


LONG_REPLY_BYTES = 6
"""An old reply is shortened if it has more than this many bytes per allowed token. No tokenizer is available here, and
in every language a text with so many bytes has more tokens than allowed."""


@dataclass(slots=True, repr=False)
class State:
    """Everything in this log that an envelope depends on."""

    session: str
    position: int = 0
    """Number of events folded so far."""
    ordinal: int = 0
    outputs: int = 0
    turns: int = 0
    nonce: str = ""
    head: SessionHead = field(default_factory=SessionHead)
    head_at: tuple[str, int] | None = None
    """Session and log position of the head event in force."""
    bullets: tuple[Bullet, ...] = ()
    reserve: tuple[Bullet, ...] = ()
    """Bullets that are not shown because the newest compaction had no room for them."""
    rules: tuple[HeldRule, ...] = ()
    """Users' rules whose messages have left the window."""
    observations: tuple[Bullet, ...] = ()
    """The observation log."""
    observed_to: int = 0
    """Highest ordinal that the observation log covers."""
    groups: list[ToolGroup] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    pins: dict[int, Pin] = field(default_factory=dict)
    selection: RecallSelected | None = None
    refused: CompactionRefused | None = None
    repaired: bool = False
    """Whether a message in the window needed a repair."""
    compactions: int = 0
    compacted_to: int = 0
    """Highest ordinal that any compaction has taken out of the window."""
    left_out_tokens: int | None = 0
    """Tokens of all messages that compactions have removed from the window; None in logs of earlier versions."""
    compacted_at: int = 0
    """Ordinal of the newest message at the newest compaction; 0 before the first one."""
    masked: frozenset[int] = frozenset()
    """First ordinals of groups whose tool results are shown as one line."""
    shortened: dict[int, int] = field(default_factory=dict)
    """Token limits of groups whose text is shown as beginning and end, by their first ordinals."""
    shortened_since: tuple[int, ...] = ()
    """First ordinals of shortened groups that no compaction has reported yet."""
    reply_tokens: int = 0
    """Most tokens of an old reply's text; 0 for no limit."""
    loops_stay: bool = False
    """Whether a reply before a turn with tool results stays whole; False in logs of earlier versions."""
    heads: int = 0
    """Number of head events so far."""
    task: int = 0
    """Ordinal of the first user message of the session or phase; 0 before it."""
    phase: str | None = None
    last_user: int = 0
    last_reply: int = 0
    """Ordinal of the newest assistant message; tool results after it have not been seen by the model."""
    last_text: int = 0
    """Ordinal of the newest assistant message with text."""
    answered: int = 0
    """Ordinal of the user turn that `last_text` replied to; the two are the last raw turn."""
    open_calls: list[OpenCall] = field(default_factory=list)
    call_ids: set[str] = field(default_factory=set)
    days: list[tuple[str, int]] = field(default_factory=list)
    """Each day of the session and the ordinal of its first message; empty if messages have no times."""

    # -- folding ------------------------------------------------------------------------------------------------

    def apply(self, event: Event, found: Callable[[int], LogEntry | MissingMessage] | None = None) -> None:
        """Apply the next event of the log; `found` reads a message that a compaction shows again."""
        match event:
            case MessageAppended():
                self.add(LogEntry(event))
                return
            case SessionOpened():
                self.nonce = event.nonce
            case SessionHead():
                self.head, self.head_at = event, (self.session, self.position)
                self.heads += 1
            case NoteSet(name=name, text=text):
                self.notes.pop(name, None)
                if text:
                    self.notes[name] = text
            case PinSet(ordinal=ordinal, strength=strength, name=pin_name):
                self.pins.pop(ordinal, None)
                if strength is not None:
                    self.pins[ordinal] = Pin(strength, pin_name)
            case WindowCompacted():
                known = {entry.ordinal: entry for group in self.groups for entry in group.entries}
                self._settle(event, known.__getitem__ if found is None else lambda n: known.get(n) or found(n))
            case ObservationsAppended():
                self.observe(event)
            case CompactionRefused():
                self.refused = event
            case RecallSelected():
                self.selection = event
            case OutcomeTold():
                pass  # no envelope depends on an outcome
            case BlankRecord(was=was):
                self.skip(was)
                return
        self.position += 1

    def observe(self, event: ObservationsAppended) -> None:
        """Append the event's observations to the observation log, or to the log that replaces it."""
        standing = self.observations if event.standing is None else event.standing
        self.observations, self.observed_to = (*standing, *event.appended), event.upto

    def skip(self, kind: str) -> None:
        """Pass over a record without readable content; a compaction still counts."""
        if kind == "compaction":
            self.compactions += 1
        self.position += 1

    def add(self, entry: LogEntry) -> None:
        """Add a message (the hot path of `apply`)."""
        event = entry.event
        message, placement = entry.message, event.placement
        self.position += 1
        if placement.findings or entry.controls:
            self.repaired = True
        self.ordinal = event.ordinal
        if event.outputs:
            self.outputs = event.outputs
        if event.ts is not None and (not self.days or self.days[-1][0] != event.ts[:10]):
            self.days.append((event.ts[:10], event.ordinal))
        if event.pin is not None:
            self.pins[event.ordinal] = Pin(event.pin, None)
        if placement.joins and self.groups:
            self.groups[-1] = self.groups[-1].with_entry(entry)
            if placement.answers:
                done = answered_by(entry)
                self.open_calls = [call for call in self.open_calls if call.alias not in done]
            if message.role == "assistant":
                self._assistant(entry, self.open_calls)
        else:
            self.groups.append(ToolGroup((entry,)))
            if message.role == "assistant":
                self._assistant(entry, [])
            elif message.role == "user" or placement.orphans:
                self.open_calls = []
        if is_user_turn(message):
            self._user_turn(event)
        elif message.role == "assistant":
            self.last_reply = event.ordinal
            if message.text.strip():
                self.last_text, self.answered = event.ordinal, self.last_user

    def _assistant(self, entry: LogEntry, waiting: list[OpenCall]) -> None:
        """Add the calls of a reply; `waiting` are open calls of the same reply."""
        self.open_calls = [*waiting, *calls_of(entry)] if entry.message.tool_calls else waiting
        self.call_ids.update(call.alias for call in self.open_calls)

    def _user_turn(self, event: MessageAppended) -> None:
        self.turns += 1
        self._shorten_replies()
        self.last_user = event.ordinal
        if self.task == 0 or (event.phase is not None and event.phase != self.phase):
            self.task = event.ordinal
            self.phase = event.phase

    def _shorten_replies(self) -> None:
        """Shorten the reply before the ending turn to its beginning and end, if there is a newer reply.

        Replies are most of a chat and would push the user's words out of the window. What stands behind a shortened
        reply is written to the provider's cache again, so if the turn called tools, the reply stays until the next
        compaction: rewriting a loop's results costs more than the reply does.
        """
        if not self.reply_tokens:
            return
        turn = next((n for n in range(len(self.groups) - 1, -1, -1) if self.groups[n].last == self.last_user), 0)
        if self.loops_stay and any(len(group.entries) > 1 for group in self.groups[turn:]):
            return
        old = self.reply_before(turn)
        if old is not None and self.groups[old].last != self.last_text:
            first = self.groups[old].first
            self.shortened = {**self.shortened, first: self.reply_tokens}
            self.shortened_since += (first,)

    def reply_before(self, turn: int) -> int | None:
        """Return the index of the long reply that the user turn at this index of `groups` answers, or None."""
        for index in range(turn - 1, -1, -1):
            group = self.groups[index]
            if group.entries[0].message.role != "user":
                return index if self.will_be_short(group, self.reply_tokens) else None
        return None

    def will_be_short(self, group: ToolGroup, reply_tokens: int) -> bool:
        """Return whether a group is a reply whose text will be shown as beginning and end once it is old."""
        message = group.entries[0].message
        return (
            0 < reply_tokens < self.shortened.get(group.first, reply_tokens + 1)
            and len(group.entries) == 1
            and message.role == "assistant"
            and group.first not in self.pins
            and all(isinstance(part, TextPart) for part in message.parts)
            and len(message.text.encode()) > LONG_REPLY_BYTES * reply_tokens
        )

    @property
    def in_loop(self) -> bool:
        """Whether the model is called again in a turn that it has answered. A reply at the end is a prefill."""
        return self.last_reply > self.last_user and (self.ordinal > self.last_reply or bool(self.open_calls))

    @property
    def recalled(self) -> RecallSelected | None:
        """The selection for the live turn, or None."""
        return self.selection if self.selection is not None and self.selection.turn == self.last_user else None

    def day_of(self, ordinal: int) -> Day | None:
        """Return the day of a message, or None if messages carry no times."""
        place = bisect_right(self.days, ordinal, key=lambda row: row[1]) - 1
        if place < 0:
            return None
        day, first = self.days[place]
        last = self.days[place + 1][1] - 1 if place + 1 < len(self.days) else self.ordinal
        return Day(day, first, last)

    # -- checkpoints --------------------------------------------------------------------------------------------

    def checkpoint(self) -> dict[str, Any]:
        """Return the JSON that a compaction stores in addition to bullets and kept groups."""
        observed: dict[str, Any] = {}
        if self.observed_to:
            observed["observations"] = [bullet.model_dump(mode="json") for bullet in self.observations]
            observed["observed_to"] = self.observed_to
        return {
            "nonce": self.nonce,
            "head_at": self.head_at,
            "heads": self.heads,
            "ordinal": self.ordinal,
            "outputs": self.outputs,
            "turns": self.turns,
            "notes": self.notes,
            "pins": [[ordinal, *pin] for ordinal, pin in self.pins.items()],
            "compactions": self.compactions + 1,
            "task": self.task,
            "phase": self.phase,
            "last_user": self.last_user,
            "last_reply": self.last_reply,
            "last_text": self.last_text,
            "answered": self.answered,
            "open_calls": [[call.id, call.alias] for call in self.open_calls],
            "compacted_to": self.compacted_to,
            "days": self.days,
            "selection": None if self.recalled is None else _stored_selection(self.recalled),
            "loops_stay": True,
            **observed,
        }

    def restore(
        self,
        event: WindowCompacted,
        position: int,
        head: SessionHead,
        entry: Callable[[int], LogEntry | MissingMessage],
    ) -> None:
        """Become the state just after this compaction, whose log position is `position`."""
        checkpoint = event.checkpoint
        self.nonce = checkpoint["nonce"]
        where = checkpoint["head_at"]
        self.head, self.head_at = head, (where[0], where[1]) if where else None
        self.heads = checkpoint["heads"]
        self.ordinal, self.outputs, self.turns = (
            checkpoint["ordinal"],
            checkpoint["outputs"],
            checkpoint["turns"],
        )
        self.notes = dict(checkpoint["notes"])
        self.compactions = checkpoint["compactions"] - 1
        self.task, self.phase = checkpoint["task"], checkpoint["phase"]
        self.last_user, self.last_text = checkpoint["last_user"], checkpoint["last_text"]
        self.answered = checkpoint.get("answered", 0)  # missing in the oldest stores
        self.last_reply = checkpoint["last_reply"]
        self.open_calls = [OpenCall(*call) for call in checkpoint["open_calls"]]
        self.days = [(day, first) for day, first in checkpoint.get("days", ())]  # missing in the oldest stores
        self._settle(event, entry)
        waiting = unanswered(self.groups[-1]) if self.open_calls and self.groups else []
        # A checkpoint has only ids: equal calls get their names back. The calls of a stand-in have other ids.
        if self.repaired or waiting == self.open_calls:
            self.open_calls = waiting
        self.position = position + 1

    def _settle(self, event: WindowCompacted, entry: Callable[[int], LogEntry | MissingMessage]) -> None:
        held = {group.ordinals: group for group in self.groups}
        groups: list[ToolGroup] = []
        for ordinals in event.kept:
            group = held.get(ordinals)
            if group is None:
                before = groups[-1].entries[0].message.role if groups else None
                group = mended([entry(ordinal) for ordinal in ordinals], self._role_before(ordinals[0], before))
            groups.append(group)
        self.groups = groups
        self.bullets, self.reserve = event.bullets, event.reserve
        self.rules = tuple(HeldRule(*row) for row in event.checkpoint.get("rules", ()))
        self.observations = bullets_of(event.checkpoint.get("observations", ()))
        self.observed_to = event.checkpoint.get("observed_to", 0)
        self.masked, self.shortened = frozenset(event.masked), dict(event.shortened)
        self.shortened_since, self.reply_tokens = (), event.reply_tokens
        self.loops_stay = event.checkpoint.get("loops_stay", False)
        self.compactions += 1
        self.compacted_to = event.checkpoint["compacted_to"]
        self.left_out_tokens = event.checkpoint.get("left_out_tokens")
        self.compacted_at = event.checkpoint["ordinal"]
        self.selection = _selection(event.checkpoint["selection"])
        self.refused = None
        left = {ordinal for group in self.groups for ordinal in group.ordinals}
        self.pins = {
            ordinal: Pin(strength, name) for ordinal, strength, name in event.checkpoint["pins"] if ordinal in left
        }
        window = (entry for group in self.groups for entry in group.entries)
        self.repaired = any(entry.event.placement.findings or entry.controls for entry in window)
        calling = (entry for group in self.groups for entry in group.entries if entry.message.tool_calls)
        self.call_ids = {call.alias for entry in calling for call in calls_of(entry)}

    def _role_before(self, ordinal: int, role: str | None) -> str | None:
        """Return the role before an unreadable message, to guess its own: a reply follows a user message, and back."""
        if ordinal in (self.last_reply, self.last_text):
            return "user"
        return "assistant" if ordinal in (self.last_user, self.answered, self.task) else role

    def copy(self) -> State:
        """Return an independent state. It shares groups and entries, which never change."""
        other = State.__new__(State)
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(other, name, value.copy() if isinstance(value, (list, dict, set)) else value)
        return other
