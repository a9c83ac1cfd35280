"""The rules in force, and how a statement stands to them: the operator's policies, rails and locked lines.

Admission, the meta slice and record reviews ask it of the text of a record. No reading of words tells reliably whether
a statement goes against a rule: of wordings that share few words with the rule it finds one in thirty. So nothing is
let through because no contradiction was found. Where lines are locked, a person decides about each claim
(`admission`), and two about each new line (`report`). What `against` finds is an alarm on top of that: it holds a
record back further, and lets nothing through.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from ctxsteward.language.operators import keys_of, sentences_of
from ctxsteward.language.statement import of_oneself
from ctxsteward.schemas.profile import BLOCK_SPECS, BLOCKS, ProfileDocument, ProfileEntry

from .entries import opposed


class Rule(BaseModel):
    """A line that statements may not gainsay."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    key: str
    """``block.id``."""
    text: str
    locked: bool


def rules_of(profile: ProfileDocument | None) -> tuple[Rule, ...]:
    """Policies, rails and whatever else is locked."""
    return tuple(
        Rule(key=f"{block}.{entry.id}", text=entry.text, locked=entry.locked)
        for block in BLOCKS
        for entry in getattr(profile or ProfileDocument(), block)
        if entry.locked or BLOCK_SPECS[block].has_rules
    )


def against(rules: Sequence[Rule], text: str) -> Rule | None:
    """A rule that a statement plainly contradicts; locked ones first. None says nothing: most wordings are not found.

    What people tell of themselves ("I waited 45 days for a refund") contradicts no rule.
    """
    said = [each for each in sentences_of(own_text(text)) if not of_oneself(each)]
    found = (
        rule
        for rule in rules
        if opposed(
            ProfileEntry(id="rule", text=rule.text, locked=rule.locked),
            [each for each in said if not restates(rule.text, each)],
        )
    )
    return min(found, key=lambda rule: not rule.locked, default=None)


def restates(line: str, text: str) -> bool:
    """Whether a statement is a sentence of a rule, or the rule, word for word: nothing in it is new, nothing left out.

    Fewer words would not do: without "unless a manager agrees" it is another rule.

    >>> restates("Quote the policy. The return period is 30 days.", "the return period is 30 days")
    True
    >>> restates("The return period is 30 days for gifts.", "The return period is 30 days.")
    False
    """
    rule = [keys_of(sentence) for sentence in sentences_of(line)]
    said = [keys_of(sentence) for sentence in sentences_of(own_text(text))]
    return bool(said) and any(said) and all(keys in rule for keys in said)


def own_text(text: str) -> str:
    """A statement without the name of who said it."""
    return _SPEAKER.sub("", text).strip('「」"')


_SPEAKER = re.compile(r"^[^\s:：][^:：\n]{0,30}(?:[:：]\s+|：)")
"""The text of a fact begins with who said it: ``Ann: I moved.``, ``用户说：「我搬家了。」``"""
