"""The sentences that people say in a transcript, with their places, and the cues in them.

Only user messages are read. Text of tools and of the system is never read, and text of the assistant only as a question
that a person answers (the state design: no record rests on tool text). Places are byte ranges of a message's UTF-8
text. Text that is not the speaker's own (`language.foreign_text`) is masked.

A `CueTable` chooses the patterns to try on a sentence by the words in it. A row of the lists in `ctxsteward.language`
is ``label | anchors | pattern``; the label is ``strength`` or ``strength:attribute``. Anchors are words (English;
``a+b`` for both, the rarer one first) or strings (Chinese). A pattern is tried only if one of its anchors occurs, so a
sentence without anchors costs one look-up for each word. Patterns run on lower case, and their gaps end with the
sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set as AbstractSet
from functools import cache
from itertools import chain
from typing import NamedTuple

from ctxsteward.language.foreign_text import mask_foreign_text
from ctxsteward.language.words import lists, sentences

from ...observations.observation import MessageSpan
from ...observations.transcript import TASK_FORMATS, ReplayedTranscript, ReplayedUtterance

_LISTS = lists("talk")


class AnchorWords:
    """Words of which a sentence must have one, or both of a pair ``a+b``.

    >>> anchors = AnchorWords("lol because+love")
    >>> [anchors.are_in(frozenset(text.split())) for text in ("lol ok", "because i love it", "i love it")]
    [True, True, False]
    """

    __slots__ = ("_pairs", "_words")

    def __init__(self, text: str) -> None:
        anchors = frozenset(text.split())
        self._words = frozenset(anchor for anchor in anchors if "+" not in anchor)
        self._pairs = tuple(frozenset(anchor.split("+")) for anchor in sorted(anchors - self._words))

    def are_in(self, words: AbstractSet[str]) -> bool:
        """Whether the words of a sentence include an anchor."""
        return not self._words.isdisjoint(words) or any(pair <= words for pair in self._pairs)


MAX_SPOKEN_CHARS = 1_500
MAX_SPOKEN_LINES = 20
"""A longer message is a document, in which no wish is strict."""
MAX_ASKED_CHARS = 200

_WORD = re.compile(r"[a-z][a-z'-]*[a-z]|[a-z]|\d[\d.,:/-]*")
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_QUESTION = re.compile(r"[?？][^\w?？]*$")
_ASKING = _LISTS.pattern("asking")
_ASKING_CHINESE = re.compile(r"(?:吗|呢|么|没有|对不对|好不好|行不行|是不是)[\s。.!！~～]*$")
_DRAFTERS = frozenset(_LISTS.words("drafters"))
_DRAFTING = _LISTS.pattern("drafting", re.IGNORECASE)


class Sentence(NamedTuple):
    """One sentence that a person said."""

    said: ReplayedUtterance
    text: str
    """As written."""
    heard: str
    """The text with blanks for quoted text; of the same length."""
    low: str
    """`heard` in lower case with straight apostrophes; of the same length."""
    words: frozenset[str]
    """The words of `low`; Chinese has none."""
    first_byte: int
    is_question: bool
    has_chinese: bool
    is_plain: bool
    """Whether it belongs to ordinary talk, rather than to a document, a draft or a role that somebody plays."""
    asked: str | None
    """The question that this message answers."""
    talk: ReplayedTranscript
    """Its transcript."""
    is_task: bool
    """Whether an assistant works for the person, so that most wishes are about this task alone."""

    def place(self, start: int = 0, stop: int | None = None) -> MessageSpan:
        """Return the byte range of characters `start` to `stop` of the sentence."""
        text = self.text
        if text.isascii():
            first = self.first_byte + start
            return MessageSpan(self.said.ref, first, self.first_byte + len(text if stop is None else text[:stop]))
        first = self.first_byte + len(text[:start].encode())
        return MessageSpan(self.said.ref, first, first + len(text[start:stop].encode()))


def listen(replayed: ReplayedTranscript) -> tuple[Sentence, ...]:
    """Return the sentences that people said in a transcript."""
    is_task = replayed.format in TASK_FORMATS or any(said.role == "tool" or said.calls for said in replayed.utterances)
    heard: list[Sentence] = []
    before: ReplayedUtterance | None = None
    for said in replayed.utterances:
        if said.role == "user" and said.trust in ("operator", "user"):
            heard.extend(_sentences(said, _question_before(before, said), replayed, is_task))
        before = said
    return tuple(heard)


def _question_before(before: ReplayedUtterance | None, said: ReplayedUtterance) -> str | None:
    """Return the last questions of the assistant's message before, if it is of the same day."""
    if before is None or before.role != "assistant":
        return None
    if before.ts is not None and said.ts is not None and before.ts[:10] != said.ts[:10]:
        return None
    asked = " ".join(reversed(list(_questions(before.text))))
    return " ".join(asked.split())[-MAX_ASKED_CHARS:] or None


def _questions(text: str) -> Iterator[str]:
    """Yield the last two questions of a text, the last one first."""
    stop = len(text)
    for _ in range(2):
        stop = max(text.rfind("?", 0, stop), text.rfind("？", 0, stop))
        if stop < 0:
            return
        start = 1 + max(text.rfind(mark, max(0, stop - MAX_ASKED_CHARS), stop) for mark in ".!?\n。！？")
        start = max(start, stop - MAX_ASKED_CHARS)
        if stop - start > 2:
            yield text[start : stop + 1]
        stop = start


def _sentences(
    said: ReplayedUtterance, asked: str | None, talk: ReplayedTranscript, is_task: bool
) -> Iterator[Sentence]:
    text = said.text
    own = mask_foreign_text(text)
    is_plain = len(text) <= MAX_SPOKEN_CHARS and own.count("\n") < MAX_SPOKEN_LINES
    at, byte, is_ascii = 0, 0, text.isascii()
    for first, last in sentences(own):
        byte += first - at if is_ascii else len(text[at:first].encode())
        at = first
        heard = own[first:last]
        low = heard.lower().replace("’", "'")
        low = low if len(low) == len(heard) else heard  # some letters have another length in lower case
        words = frozenset(_WORD.findall(low))
        has_chinese = not is_ascii and _CHINESE.search(low) is not None
        if not words and not has_chinese:
            continue
        if is_plain and (has_chinese or not words.isdisjoint(_DRAFTERS)) and _DRAFTING.search(heard):
            is_plain = False  # the rest of the message, too
        yield Sentence(
            said=said,
            text=text[first:last],
            heard=heard,
            low=low,
            words=words,
            first_byte=byte,
            is_question=_is_question(low, has_chinese),
            has_chinese=has_chinese,
            is_plain=is_plain,
            asked=asked,
            talk=talk,
            is_task=is_task,
        )


def _is_question(low: str, has_chinese: bool) -> bool:
    if (("?" in low or "？" in low) and _QUESTION.search(low)) or _ASKING.match(low):
        return True
    return has_chinese and _ASKING_CHINESE.search(low) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern at its first use, because most processes use few."""
    return re.compile(pattern)


class CueMatch(NamedTuple):
    """A cue found in a sentence."""

    label: str
    attribute: str | None
    """Attribute of the claim, if the row gives one."""
    found: re.Match[str]

    @property
    def cue_start(self) -> int:
        """Return the start of the cue's words: group ``k``, or else the whole match."""
        start = self.found.start("k") if "k" in self.found.re.groupindex else -1
        return start if start >= 0 else self.found.start()

    def start_of(self, group: str) -> int:
        """Return the start of a group, or the end of the match if the group is missing."""
        start = self.found.start(group) if group in self.found.re.groupindex else -1
        return start if start >= 0 else self.found.end()

    def text_of(self, group: str, text: str) -> str | None:
        """Return a group's characters in `text`, or None if the group is missing."""
        if group not in self.found.re.groupindex or self.found.start(group) < 0:
            return None
        return text[self.found.start(group) : self.found.end(group)].strip() or None


class CueTable:
    """Rows of cues, in order."""

    def __init__(self, rows: Iterable[str], *, chinese: bool = False) -> None:
        self._chinese = chinese
        self._by_anchor: dict[str, list[tuple[int, str]]] = {}
        """Rows by anchor, each with the second word of a pair ``a+b``, or an empty text."""
        self.rows: list[tuple[str, str | None, str]] = []
        """Label, attribute and pattern."""
        for line in rows:
            label, anchors, pattern = (part.strip() for part in line.split(" | ", 2))
            for anchor in anchors.split():
                word, _, also = anchor.partition("+")
                self._by_anchor.setdefault(word, []).append((len(self.rows), also))
            label, _, attribute = label.partition(":")
            self.rows.append((label, attribute or None, pattern))

    def matches(self, sentence: Sentence) -> Iterator[CueMatch]:
        """Yield the match of every row that fits, in the table's order."""
        words, low = sentence.words, sentence.low
        if self._chinese:
            anchors: Iterable[str] = [anchor for anchor in self._by_anchor if anchor in low]
        else:
            anchors = self._by_anchor.keys() & words
        rows = {row for anchor in anchors for row, also in self._by_anchor[anchor] if not also or also in words}
        for row in sorted(rows):
            label, attribute, pattern = self.rows[row]
            if found := _compiled(pattern).search(low):
                yield CueMatch(label, attribute, found)


def matches(sentence: Sentence, english: CueTable, chinese: CueTable) -> Iterable[CueMatch]:
    """Yield the matches of both tables, the English ones first."""
    if not sentence.has_chinese:
        return english.matches(sentence)
    return chain(english.matches(sentence), chinese.matches(sentence))
