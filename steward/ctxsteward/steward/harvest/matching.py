"""A table of cues: which patterns to try on a sentence, found by the words it holds.

A row is ``label | anchors | pattern``, its label ``strength`` or ``strength:attribute``. Anchors are words (English) or
strings (Chinese); a pattern is tried only where one of its anchors occurs, so that a sentence without any costs one
look-up a word. Patterns run on lower case, and their gaps are bounded by the sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from .hearing import Sentence


class Cue(NamedTuple):
    """One row of a table."""

    label: str
    attribute: str | None
    pattern: re.Pattern[str]


class Match(NamedTuple):
    """A cue found in a sentence."""

    label: str
    attribute: str | None
    """What the claim is about, where the row says it."""
    found: re.Match[str]

    @property
    def cue_start(self) -> int:
        """Where the telling words begin: group ``k`` where the row has one."""
        start = self.found.start("k") if "k" in self.found.re.groupindex else -1
        return start if start >= 0 else self.found.start()

    def start_of(self, group: str) -> int:
        """Where a group begins; the end of the match where the row has no such group or it is empty."""
        start = self.found.start(group) if group in self.found.re.groupindex else -1
        return start if start >= 0 else self.found.end()

    def text_of(self, group: str, text: str) -> str | None:
        """A group's characters in the text as written."""
        if group not in self.found.re.groupindex or self.found.start(group) < 0:
            return None
        return text[self.found.start(group) : self.found.end(group)].strip() or None


class Table:
    """Rows in order; the first that fits wins."""

    def __init__(self, parts: Mapping[str, str], rows: str, *, chinese: bool = False) -> None:
        self._chinese = chinese
        self._by_anchor: dict[str, list[int]] = {}
        self._cues: list[Cue] = []
        for line in filter(None, map(str.strip, rows.splitlines())):
            label, anchors, pattern = (part.strip() for part in line.split(" | ", 2))
            for anchor in anchors.split():
                self._by_anchor.setdefault(anchor, []).append(len(self._cues))
            label, _, attribute = label.partition(":")
            self._cues.append(Cue(label, attribute or None, re.compile(pattern.format(**parts) if parts else pattern)))
        self._anchors = frozenset(self._by_anchor)

    def matches(self, sentence: Sentence) -> Iterator[Match]:
        """Every row that fits, in the table's order."""
        held = self._held(sentence)
        for row in sorted({row for anchor in held for row in self._by_anchor[anchor]}) if held else ():
            cue = self._cues[row]
            found = cue.pattern.search(sentence.low)
            if found:
                yield Match(cue.label, cue.attribute, found)

    def first(self, sentence: Sentence) -> Match | None:
        """The first row that fits."""
        return next(self.matches(sentence), None)

    def _held(self, sentence: Sentence) -> list[str]:
        if not self._chinese:
            return list(self._anchors & sentence.words)
        if not sentence.has_chinese:
            return []
        low = sentence.low
        return [anchor for anchor in self._by_anchor if anchor in low]
