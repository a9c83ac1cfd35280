"""A table of cues: which patterns to try on a sentence, found by the words it holds.

A row of the lists in `ctxsteward.language` is ``label | anchors | pattern``, its label ``strength`` or
``strength:attribute``. Anchors are words (English; ``a+b``: both of them, the rarer one first) or strings (Chinese).
A pattern is tried only where one of its anchors occurs, so a sentence without any costs one look-up a word. Patterns
run on lower case, and their gaps are bounded by the sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from typing import NamedTuple

from .utterances import Sentence


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled when it is tried first, for most processes try few."""
    return re.compile(pattern)


class CueMatch(NamedTuple):
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


class CueTable:
    """Rows in order; the first that fits wins."""

    def __init__(self, rows: Iterable[str], *, chinese: bool = False) -> None:
        self._chinese = chinese
        self._by_anchor: dict[str, list[tuple[int, str]]] = {}
        """Rows at each of their anchors, with the other word that must be there; empty: none."""
        self.rows: list[tuple[str, str | None, str]] = []
        """Label, attribute and pattern."""
        for line in rows:
            label, anchors, pattern = (part.strip() for part in line.split(" | ", 2))
            for anchor in anchors.split():
                word, _, also = anchor.partition("+")
                self._by_anchor.setdefault(word, []).append((len(self.rows), also))
            label, _, attribute = label.partition(":")
            self.rows.append((label, attribute or None, pattern))
        self._anchors = frozenset(self._by_anchor)

    def matches(self, sentence: Sentence) -> Iterable[CueMatch]:
        """Every row that fits, in the table's order."""
        held = self._held(sentence)
        return self._tried(held, sentence) if held else ()

    def _tried(self, held: Iterable[str], sentence: Sentence) -> Iterator[CueMatch]:
        words, low = sentence.words, sentence.low
        rows = {row for anchor in held for row, also in self._by_anchor[anchor] if not also or also in words}
        for row in sorted(rows):
            label, attribute, pattern = self.rows[row]
            if found := _compiled(pattern).search(low):
                yield CueMatch(label, attribute, found)

    def _held(self, sentence: Sentence) -> Iterable[str]:
        if not self._chinese:
            return self._anchors & sentence.words
        low = sentence.low
        return [anchor for anchor in self._by_anchor if anchor in low]


def matches(sentence: Sentence, english: CueTable, chinese: CueTable) -> Iterable[CueMatch]:
    """Every row of both tables that fits, the English ones first."""
    if not sentence.has_chinese:
        return english.matches(sentence)
    return chain(english.matches(sentence), chinese.matches(sentence))
