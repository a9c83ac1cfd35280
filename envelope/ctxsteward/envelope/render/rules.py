"""Which standing rules stand in a request, and where.

`rules_in` renders a prompt for a provider, reads the request back, and looks for each rule at its own place: a
policy or rail in the operator's sections; a user's rule or a pinned message in the message itself, in a bullet, or in
the turn context. A rule that a tool result or another message quotes does not stand there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from ctxsteward.schemas.message import Wire

from ..history.standing_rules import StandingRule
from ..layout.composition import PromptLayout
from ..layout.rows import cited, fenced_rows
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

    def document(self) -> Wire:
        """Return the published form, without the words of a rule."""
        rules = [
            {
                "id": rule.id,
                "kind": rule.kind,
                "ref": rule.ref,
                "lifted_by": rule.lifted_by,
                "places": [{"section": one.section, "block": one.block, "path": one.path} for one in places],
            }
            for rule, places in self.rules
        ]
        return {"provider": self.provider, "rules": rules}


def rules_in(prompt: PromptLayout, standing: Sequence[StandingRule], provider: str) -> RulesStatement:
    """State which of the standing rules stand in a prompt's request for this provider."""
    if not standing:  # nothing to look for, so nothing is rendered
        return RulesStatement(provider, ())
    parts = expected_parts(prompt, provider, render(prompt, provider))
    return rules_among(parts, standing, provider, prompt.nonce)


def rules_among(
    parts: Sequence[ExpectedPart], standing: Sequence[StandingRule], provider: str, nonce: str
) -> RulesStatement:
    """The same of the parts of a rendered request."""
    texts = [active(nonce, part.unit.text) if provider == "text" else part.unit.text for part in parts]
    # Rows are read once for all rules: with many rules and rows this would be most of the work.
    read = [(part, text, tuple(_rows(part, text, nonce))) for part, text in zip(parts, texts, strict=True)]
    found = (VisibleRule(rule, tuple(_places(rule, read))) for rule in standing)
    return RulesStatement(provider, tuple(found))


_Row = tuple[str, tuple[str, ...], str]
"""A row of bullets or of turn context, the references it cites, and its words as `_letters`."""


def _rows(part: ExpectedPart, text: str, nonce: str) -> Iterator[_Row]:
    if part.block in ("bullets", "observations", "context"):
        with suppress(ValueError):  # another session's fence, or none
            for row in fenced_rows(nonce, text):
                bullet = cited(row)
                yield row, bullet.citations, _letters(bullet.text)


def _places(rule: StandingRule, read: Sequence[tuple[ExpectedPart, str, Sequence[_Row]]]) -> list[RulePlace]:
    """Places that show the whole rule; of a pinned message all its texts are needed."""
    texts = [(wanted, _letters(wanted)) for wanted in rule.texts]
    places = [
        (wanted, RulePlace(part.section, part.block, part.unit.path, lines, index))
        for index, (part, text, rows) in enumerate(read)
        for wanted, letters in texts
        for lines in _lines_with(rule, wanted, letters, part, text, rows)
    ]
    return [place for _, place in places] if {wanted for wanted, _ in places} == set(rule.texts) else []


def _lines_with(
    rule: StandingRule, wanted: str, letters: str, part: ExpectedPart, text: str, rows: Sequence[_Row]
) -> Iterator[str]:
    """Yield the lines of one part of a request that show a rule."""
    if rule.kind in ("policy", "rail"):
        if part.unit.channel == "head" and part.section in ("system", "static") and has_lines(text, wanted):
            yield wanted
    elif part.block == "messages":
        at = text.find(wanted) if part.ref == rule.ref and not part.unit.call_id else -1
        if at >= 0:
            stop = text.find("\n", at + len(wanted))
            yield text[text.rfind("\n", 0, at) + 1 : len(text) if stop < 0 else stop]
    else:
        for row, citations, shown in rows:
            if part.block == "context":
                is_own = row.startswith((f"{rule.ref} ", f"{rule.ref}."))
            else:
                is_own = rule.ref in citations
            if letters == shown or (is_own and letters in shown):
                yield row.partition("\n")[0]


def _letters(text: str) -> str:
    return _UNQUOTED.sub("", text)


def has_lines(text: str, lines: str) -> bool:
    """Return whether whole lines stand in a text."""
    return f"\n{lines}\n" in f"\n{text}\n"
