"""Which standing rules stand in a request, and where.

`rules_in` renders a prompt for a provider, reads the request back, and looks for each rule at its own place: a
policy or rail in the operator's sections; a user's rule or a pinned message in the message itself, in a bullet, or in
the turn context. A rule that a tool result or another message quotes does not stand there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
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
    shown = _ShownLines(parts, provider, nonce)
    return RulesStatement(provider, tuple(VisibleRule(rule, tuple(shown.places(rule))) for rule in standing))


class _Row(NamedTuple):
    """A row of bullets or of turn context."""

    part: int
    number: int
    line: str
    letters: str
    """Its words as `_letters`."""


class _ShownLines:
    """The lines of a request where rules may stand, by the reference and the words that they are looked for with.

    With many rules and rows, looking through all rows for each rule would be most of a build's work.
    """

    def __init__(self, parts: Sequence[ExpectedPart], provider: str, nonce: str) -> None:
        self._parts = parts
        self._head: list[tuple[int, str]] = []
        self._messages: dict[str, list[tuple[int, str]]] = {}
        self._rows: dict[str, list[_Row]] = {}
        self._rows_by_letters: dict[str, list[_Row]] = {}
        for index, part in enumerate(parts):
            text = active(nonce, part.unit.text) if provider == "text" else part.unit.text
            if part.unit.channel == "head" and part.section in ("system", "static"):
                self._head.append((index, text))
            if part.block == "messages":
                if part.ref is not None and not part.unit.call_id:
                    self._messages.setdefault(part.ref, []).append((index, text))
            elif part.block in ("bullets", "observations", "context"):
                with suppress(ValueError):  # another session's fence, or none
                    self._read_rows(index, part.block, fenced_rows(nonce, text))

    def _read_rows(self, part: int, block: str, lines: Iterable[str]) -> None:
        for number, line in enumerate(lines):
            bullet = cited(line)
            row = _Row(part, number, line.partition("\n")[0], _letters(bullet.text))
            refs = (re.split(r"[ .]", line, maxsplit=1)[0],) if block == "context" else bullet.citations
            for ref in dict.fromkeys(refs):
                self._rows.setdefault(ref, []).append(row)
            self._rows_by_letters.setdefault(row.letters, []).append(row)

    def places(self, rule: StandingRule) -> list[RulePlace]:
        """Return places that show the whole rule; of a pinned message all its texts are needed."""
        found: list[tuple[tuple[int, int, int], str]] = []
        for at, wanted in enumerate(rule.texts):
            lines = {(part, at, number): line for part, number, line in self._lines_with(rule, wanted)}
            if not lines:
                return []
            found += lines.items()
        return [self._place(part, line) for (part, _, _), line in sorted(found)]

    def _place(self, part: int, line: str) -> RulePlace:
        place = self._parts[part]
        return RulePlace(place.section, place.block, place.unit.path, line, part)

    def _lines_with(self, rule: StandingRule, wanted: str) -> Iterator[tuple[int, int, str]]:
        """Yield part, row and line of each place that shows a text of a rule."""
        if rule.kind in ("policy", "rail"):
            yield from ((part, 0, wanted) for part, text in self._head if has_lines(text, wanted))
            return
        for part, text in self._messages.get(rule.ref, ()):
            if (at := text.find(wanted)) >= 0:
                stop = text.find("\n", at + len(wanted))
                yield part, 0, text[text.rfind("\n", 0, at) + 1 : len(text) if stop < 0 else stop]
        letters = _letters(wanted)
        rows = [row for row in self._rows.get(rule.ref, ()) if letters in row.letters]
        for row in dict.fromkeys((*rows, *self._rows_by_letters.get(letters, ()))):
            yield row.part, row.number, row.line


def _letters(text: str) -> str:
    return _UNQUOTED.sub("", text)


def has_lines(text: str, lines: str) -> bool:
    """Return whether whole lines stand in a text."""
    return f"\n{lines}\n" in f"\n{text}\n"
