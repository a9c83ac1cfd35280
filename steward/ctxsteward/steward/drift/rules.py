"""Whether a statement contradicts the rules in force: the operator's policies, rails and locked lines.

Admission, the meta slice and record reviews ask it of the text of a record. Two answers:

`gainsays`: it says the opposite, permits what is forbidden, waives what is demanded, gives another figure. `touches`:
it speaks of what a locked line is about and does not plainly say the same; only a person can tell.

What people tell of themselves ("I waited 45 days for a refund") gainsays no rule by its verb, only by a figure that
they give as their own; with a modal verb ("I may see the password") it does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from ctxsteward.language import clauses, of_oneself, sentences_of
from ctxsteward.schemas import BLOCK_SPECS, BLOCKS, ProfileDocument, ProfileEntry

from .entries import near, opposed, restates, stance

How = Literal["gainsays", "touches"]


class Rule(BaseModel):
    """A line that statements may not gainsay."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    key: str
    """``block.id``."""
    text: str
    locked: bool


class RuleConflict(NamedTuple):
    """A rule that a statement gainsays or touches."""

    rule: Rule
    how: How


def rules_of(profile: ProfileDocument | None) -> tuple[Rule, ...]:
    """Policies, rails and whatever else is locked."""
    return tuple(
        Rule(key=f"{block}.{entry.id}", text=entry.text, locked=entry.locked)
        for block in BLOCKS
        for entry in getattr(profile or ProfileDocument(), block)
        if entry.locked or BLOCK_SPECS[block].has_rules
    )


def against(rules: Sequence[Rule], text: str) -> RuleConflict | None:
    """The rule that a statement gainsays, else a locked one that it touches; locked ones first."""
    close = [rule for rule in rules if near(rule.text, text)]
    conflicts = [RuleConflict(rule, how) for rule in close if (how := _how(rule, text)) is not None]
    return min(conflicts, key=lambda each: (each.how != "gainsays", not each.rule.locked), default=None)


def reads_as_rule(text: str) -> bool:
    """Whether a text demands, forbids or permits in so many words."""
    return any(clause.modality is not None for sentence in sentences_of(text) for clause in clauses(sentence))


@lru_cache(maxsize=1 << 15)
def _how(rule: Rule, text: str) -> How | None:
    said = [each for each in sentences_of(_SPEAKER.sub("", text)) if not restates(rule.text, each)]
    entry = ProfileEntry(id="rule", text=rule.text, locked=rule.locked)
    of_others = [sentence for sentence in said if not of_oneself(sentence)]
    if of_others and opposed(entry, of_others):
        return "gainsays"
    if not rule.locked:
        return None
    stances = {stance(rule.text, sentence) for sentence in said}
    return "gainsays" if "against" in stances else "touches" if "unclear" in stances else None


_SPEAKER = re.compile(r"^[^\s:：][^:：\n]{0,30}[:：]\s+")
"""The text of a fact begins with who said it: ``Ann: I moved.``"""
