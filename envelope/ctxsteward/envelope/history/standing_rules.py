"""Standing rules of a session: the profile's policies and rails, pinned messages, and rules that users state.

A rule of the profile is lifted by another version of the profile, a pin by the caller who set it. A user's rule is
lifted by a later message of the same user (`RuleReader.lifts`); what assistants, tools, other users and recalled texts
say is not read. Rules of messages that have left the window are carried from compaction to compaction (`HeldRule`).
Cost grows with the window and with the number of rules that stand, not with the session's age.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Set
from typing import Literal, NamedTuple

from ctxsteward.schemas import Finding, TextPart
from ctxsteward.schemas.profile import BLOCK_SPECS
from ctxsteward.schemas.summary import RuleReader
from ctxsteward.store.profiles.text import Profile, entry_line

from .state import HeldRule, State
from .tool_groups import LogEntry, ToolGroup, is_user_turn

MAX_HELD_RULES = 100
"""Most rules of users kept after their messages left the window; the oldest ones are kept."""

RuleKind = Literal["policy", "rail", "pin", "user"]
_KINDS: dict[str, RuleKind] = {"policies": "policy", "rails": "rail"}


class StandingRule(NamedTuple):
    """A rule that a model call has to show."""

    id: str
    kind: RuleKind
    ref: str
    """``§12``, or ``policies.refunds@VERSION`` with the first digits of the profile's address."""
    texts: tuple[str, ...]
    """Its words; a pinned message may have several texts."""
    principal: str | None = None
    """Author of a user's rule; None for another rule, or if the application names no author."""
    lifted_by: str | None = None
    """Reference of the message that lifts it; it need not be shown any more."""

    @property
    def text(self) -> str:
        """Its words as one text."""
        return "\n".join(self.texts)


class _ReadMessage(NamedTuple):
    entry: LogEntry
    stated: tuple[HeldRule, ...]
    may_lift: bool


def profile_rules(profile: Profile, version: str) -> tuple[StandingRule, ...]:
    """Return the rules of this version of a profile."""
    return tuple(
        StandingRule(
            f"{_KINDS[block]}:{entry.id}", _KINDS[block], f"{block}.{entry.id}@{version}", (entry_line(entry),)
        )
        for block, spec in BLOCK_SPECS.items()
        if spec.has_rules
        for entry in getattr(profile, block)
    )


def session_rules(state: State, reader: RuleReader) -> Iterator[StandingRule]:
    """Yield pinned messages that have text, then users' rules with what lifts them."""
    for group in state.groups:
        for entry in group.entries if state.pins else ():
            texts = tuple(part.text for part in entry.message.parts if isinstance(part, TextPart) and part.text.strip())
            if entry.ordinal in state.pins and state.pins[entry.ordinal].strength == "keep" and texts:
                yield StandingRule(f"pin:{entry.ref}", "pin", entry.ref, texts)
    for rule, lifted_by in _user_rules(state, reader):
        digest = hashlib.sha256(f"{rule.ordinal}\0{rule.text}".encode()).hexdigest()
        lifter = None if lifted_by is None else f"§{lifted_by}"
        yield StandingRule(f"user:{digest[:12]}", "user", f"§{rule.ordinal}", (rule.text,), rule.principal, lifter)


def rules_to_carry(state: State, leaving: Set[int], reader: RuleReader) -> tuple[HeldRule, ...]:
    """Return the users' rules to hold once the messages `leaving` have left the window."""
    held = set(state.rules)
    carried = [
        rule
        for rule, lifted_by in _user_rules(state, reader)
        if (rule in held or rule.ordinal in leaving) and lifted_by not in leaving
    ]
    return tuple(carried[:MAX_HELD_RULES])


def held_rules_finding(state: State) -> Finding | None:
    """Return the finding that no more rules can be held, or None while there is room."""
    if len(state.rules) < MAX_HELD_RULES:
        return None
    text = f"{MAX_HELD_RULES} rules of users stand; newer ones are not held once their messages leave the window"
    return Finding(
        kind="rules_full", ref=f"§{state.rules[-1].ordinal}", text=f"{text}; put lasting rules in the profile"
    )


def _user_rules(state: State, reader: RuleReader) -> Iterator[tuple[HeldRule, int | None]]:
    """Yield each rule that users have stated, with the ordinal of the message in the window that lifts it."""
    read = [message for group in state.groups for message in _read(group, reader)]
    # a rule that was stated twice counts once, at its newest place
    rules = {(rule.text, rule.principal): rule for rule in state.rules}
    rules |= {(rule.text, rule.principal): rule for message in read for rule in message.stated}
    lifting = [message.entry for message in read if message.may_lift] if rules else []
    for rule in rules.values():
        found = (
            entry.ordinal
            for entry in lifting
            if entry.ordinal > rule.ordinal
            and entry.event.principal == rule.principal
            and reader.lifts(rule.text, entry.message.text)
        )
        yield rule, next(found, None)


def _read(group: ToolGroup, reader: RuleReader) -> tuple[_ReadMessage, ...]:
    """Read a group's messages of users, once."""
    if group.cache is None:
        group.cache = {}
    known = group.cache.get("rules")
    if known is None:
        read = []
        for entry in group.entries:
            if is_user_turn(entry.message) and not entry.event.erased and not entry.event.damaged:
                reading = reader.read(entry.message.text)
                stated = tuple(HeldRule(entry.ordinal, text, entry.event.principal) for text in reading.stated)
                read.append(_ReadMessage(entry, stated, reading.may_lift))
        known = group.cache["rules"] = tuple(read)
    assert isinstance(known, tuple)
    return known
