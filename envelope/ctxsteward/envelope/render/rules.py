"""Which standing rules stand in a request, and where.

`rules_in` renders a prompt for a provider, reads the request back, and looks for each rule at its own place: a
policy or rail in the operator's sections; a user's rule or a pinned message in the message itself, in a bullet, or in
the turn context. A rule that a tool result or another message quotes does not stand there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..history.standing_rules import StandingRule
from ..layout.composition import PromptLayout
from ..layout.rows import cited, rows_of, unfenced
from .parts import ExpectedPart, expected_parts
from .request import render
from .text import active

_UNQUOTED = re.compile(r"§\s?\d+(?:\.\d+)?|…|\s+")
"""What a bullet may leave out of an original's words: references, line breaks."""


class RulePlace(NamedTuple):
    """Where a rule stands in a request."""

    section: str
    block: str
    path: str
    """In the provider's arguments: ``messages[0].content``."""
    lines: str
    """The whole lines that hold it there."""
    part: int
    """Index among the parts of the request."""


class VisibleRule(NamedTuple):
    """A rule, and where it stands."""

    rule: StandingRule
    places: tuple[RulePlace, ...]
    """Empty: it is not in the request."""


class RulesStatement(NamedTuple):
    """Which rules stand in the request of one provider."""

    provider: str
    rules: tuple[VisibleRule, ...]

    @property
    def missing(self) -> tuple[StandingRule, ...]:
        """Rules that should be visible and are not."""
        return tuple(one.rule for one in self.rules if not one.places and one.rule.lifted_by is None)


def rules_in(prompt: PromptLayout, standing: Sequence[StandingRule], provider: str) -> RulesStatement:
    """State which of the standing rules stand in a prompt's request for this provider."""
    parts = expected_parts(prompt, provider, render(prompt, provider, cache=False))
    return rules_among(parts, standing, provider, prompt.nonce)


def rules_among(
    parts: Sequence[ExpectedPart], standing: Sequence[StandingRule], provider: str, nonce: str
) -> RulesStatement:
    """The same of the parts of a rendered request."""
    texts = [active(nonce, part.unit.text) if provider == "text" else part.unit.text for part in parts]
    found = (VisibleRule(rule, tuple(_places(rule, parts, texts, nonce))) for rule in standing)
    return RulesStatement(provider, tuple(found))


def _places(rule: StandingRule, parts: Sequence[ExpectedPart], texts: Sequence[str], nonce: str) -> list[RulePlace]:
    """Places that show the whole rule; of a pinned message all its texts are needed."""
    places = [
        (wanted, RulePlace(part.section, part.block, part.unit.path, lines, index))
        for index, (part, text) in enumerate(zip(parts, texts, strict=True))
        for wanted in rule.texts
        for lines in _lines_with(rule, wanted, part, text, nonce)
    ]
    return [place for _, place in places] if {wanted for wanted, _ in places} == set(rule.texts) else []


def _lines_with(rule: StandingRule, wanted: str, part: ExpectedPart, text: str, nonce: str) -> Iterator[str]:
    """Yield the lines of one part of a request that show a rule."""
    if rule.kind in ("policy", "rail"):
        if part.unit.channel == "head" and part.section in ("system", "static") and has_lines(text, wanted):
            yield wanted
    elif part.block == "messages":
        at = text.find(wanted) if part.ref == rule.ref and not part.unit.call_id else -1
        if at >= 0:
            stop = text.find("\n", at + len(wanted))
            yield text[text.rfind("\n", 0, at) + 1 : len(text) if stop < 0 else stop]
    elif part.block in ("bullets", "observations", "context"):
        try:
            rows = rows_of(unfenced(nonce, text).text)
        except ValueError:  # another session's fence, or none
            return
        letters = _letters(wanted)
        for row in rows:
            bullet = cited(row)
            shown = _letters(bullet.text)
            is_own = rule.ref in bullet.citations if part.block != "context" else re.match(rf"{rule.ref}[ .]", row)
            if letters == shown or (is_own and letters in shown):
                yield row.partition("\n")[0]


def _letters(text: str) -> str:
    return _UNQUOTED.sub("", text)


def has_lines(text: str, lines: str) -> bool:
    """Return whether whole lines stand in a text."""
    return f"\n{lines}\n" in f"\n{text}\n"
