"""The rules in force (policies, rails and locked lines), and whether a statement contradicts or repeats one.

Admission, the meta slice and record reviews check the text of records. No reading of words finds contradictions
reliably: if a statement shares few words with the rule, one in thirty is found. So an absent contradiction admits
nothing. If lines are locked, a person decides about each claim (`admission`), and two about each new line (`report`).
`against` is an alarm on top of that: a contradiction holds a record back further.
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
    """A line that statements may not contradict."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    key: str
    """``block.id``."""
    text: str
    locked: bool


def rules_of(profile: ProfileDocument | None) -> tuple[Rule, ...]:
    """Return policies, rails and all other locked entries."""
    return tuple(
        Rule(key=f"{block}.{entry.id}", text=entry.text, locked=entry.locked)
        for block in BLOCKS
        for entry in getattr(profile or ProfileDocument(), block)
        if entry.locked or BLOCK_SPECS[block].has_rules
    )


def against(rules: Sequence[Rule], text: str) -> Rule | None:
    """Return a rule that a statement plainly contradicts, locked ones first; most wordings are not found.

    People's statements about themselves ("I waited 45 days for a refund") contradict no rule.
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
    """Whether each sentence of a statement is a whole sentence of a rule, word for word.

    Part of a sentence is not enough: without "unless a manager agrees" it is another rule.

    >>> restates("Quote the policy. The return period is 30 days.", "the return period is 30 days")
    True
    >>> restates("The return period is 30 days for gifts.", "The return period is 30 days.")
    False
    """
    rule = [keys_of(sentence) for sentence in sentences_of(line)]
    said = [keys_of(sentence) for sentence in sentences_of(own_text(text))]
    return bool(said) and any(said) and all(keys in rule for keys in said)


def own_text(text: str) -> str:
    """Return a statement without the name of its speaker."""
    return _SPEAKER.sub("", text).strip('「」"')


_SPEAKER = re.compile(r"^[^\s:：][^:：\n]{0,30}(?:[:：]\s+|：)")
"""The speaker at the beginning of a statement: ``Ann: I moved.``, ``用户说：「我搬家了。」``"""
