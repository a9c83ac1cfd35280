"""The sentences that people say in a transcript, each with its place, and the question that it answers.

Only user messages are read. Text of tools and of the system is never read, and text of the assistant only as a question
that a person answers (the state design: no record rests on tool text). Places are byte ranges of a message's UTF-8
text. Text that is not the speaker's own (`language.foreign_text`) is masked.

>>> [AnchorWords("lol because+love").are_in(listed(said)) for said in ("lol ok", "because i love it", "i love it")]
[True, True, False]

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


def listed(text: str) -> frozenset[str]:
    """The words between the blanks."""
    return frozenset(text.split())


class AnchorWords:
    """Words of which one must be there; ``a+b``: both of these."""

    __slots__ = ("_alone", "_any", "_together")

    def __init__(self, text: str) -> None:
        words = listed(text)
        self._alone = frozenset(word for word in words if "+" not in word)
        self._any = frozenset(text.replace("+", " ").split())
        self._together = tuple(frozenset(word.split("+")) for word in sorted(words - self._alone))

    def are_in(self, words: AbstractSet[str]) -> bool:
        """Whether the words of a sentence hold what a pattern needs."""
        if self._any.isdisjoint(words):
            return False
        if not self._alone.isdisjoint(words):
            return True
        return any(both <= words for both in self._together)


MAX_SPOKEN_CHARS = 1_500
MAX_SPOKEN_LINES = 20
"""A longer message is a document: nothing in it is a wish that needs no company."""
MAX_ASKED_CHARS = 200

_WORD = re.compile(r"[a-z][a-z'-]*[a-z]|[a-z]|\d[\d.,:/-]*")
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_QUESTION = re.compile(r"[?？][^\w?？]*$")
_ASKING = _LISTS.pattern("asking")
_ASKING_CHINESE = re.compile(r"(?:吗|呢|么|没有|对不对|好不好|行不行|是不是)[\s。.!！~～]*$")
_DRAFTERS = listed("write draft compose make tell create pretend role-play roleplay role act imagine now let's")
_DRAFTING = _LISTS.pattern("drafting", re.IGNORECASE)


class Sentence(NamedTuple):
    """One sentence that a person said."""

    said: ReplayedUtterance
    text: str
    """As written."""
    heard: str
    """The text with whatever is quoted blanked; of the same length."""
    low: str
    """`heard` in lower case, apostrophes straight; the same length."""
    words: frozenset[str]
    """The words of `low`; Chinese has none."""
    first_byte: int
    is_question: bool
    has_chinese: bool
    is_plain: bool
    """Said in a message of talk, not inside a document, a draft or a role that somebody plays."""
    asked: str | None
    """The question that this message answers."""
    talk: ReplayedTranscript
    """Its transcript."""
    is_task: bool
    """An assistant works for the person there: most wishes are of this task alone."""

    def place(self, start: int = 0, stop: int | None = None) -> MessageSpan:
        """Byte range of these characters of the sentence."""
        text = self.text
        if text.isascii():
            first = self.first_byte + start
            return MessageSpan(self.said.ref, first, self.first_byte + len(text if stop is None else text[:stop]))
        first = self.first_byte + len(text[:start].encode())
        return MessageSpan(self.said.ref, first, first + len(text[start:stop].encode()))


def listen(replayed: ReplayedTranscript) -> tuple[Sentence, ...]:
    """The sentences that people said in a transcript."""
    is_task = replayed.format in TASK_FORMATS or any(said.role == "tool" or said.calls for said in replayed.utterances)
    found: list[Sentence] = []
    before: ReplayedUtterance | None = None
    for said in replayed.utterances:
        if said.role == "user" and said.trust in ("operator", "user"):
            found.extend(_sentences(said, _question_before(before, said), replayed, is_task))
        before = said
    return tuple(found)


def _question_before(before: ReplayedUtterance | None, said: ReplayedUtterance) -> str | None:
    """The last question of the message before, if somebody else asked it at the same sitting."""
    if (
        before is None
        or before.role not in ("user", "assistant")
        or ("?" not in before.text and "？" not in before.text)
    ):
        return None
    is_other_day = before.ts is not None and said.ts is not None and before.ts[:10] != said.ts[:10]
    if before.role == said.role or is_other_day:
        return None
    asked = " ".join(reversed(list(_questions(before.text))))
    return " ".join(asked.split())[-MAX_ASKED_CHARS:] or None


def _questions(text: str) -> Iterator[str]:
    """The last two questions of a text, the last one first."""
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
    said: ReplayedUtterance,
    asked: str | None,
    talk: ReplayedTranscript,
    is_task: bool,
) -> Iterator[Sentence]:
    text = said.text
    own = mask_foreign_text(text)
    is_plain = len(text) <= MAX_SPOKEN_CHARS and own.count("\n") < MAX_SPOKEN_LINES
    at, byte, is_ascii = 0, 0, text.isascii()
    for first, last in sentences(own):
        byte += first - at if is_ascii else len(text[at:first].encode())
        at = first
        mine = own[first:last]
        low = _lowered(mine)
        words = words_of(low)
        has_chinese = not is_ascii and _CHINESE.search(low) is not None
        if not words and not has_chinese:
            continue
        if is_plain and (has_chinese or not words.isdisjoint(_DRAFTERS)) and _DRAFTING.search(mine):
            is_plain = False
        is_question = _is_question(low, has_chinese)
        yield Sentence(
            said,
            text[first:last],
            mine,
            low,
            words,
            byte,
            is_question,
            has_chinese,
            is_plain,
            asked,
            talk,
            is_task,
        )


def _lowered(text: str) -> str:
    low = text.lower().replace("’", "'")
    return low if len(low) == len(text) else text


def words_of(low: str) -> frozenset[str]:
    """The words of a text in lower case; Chinese has none."""
    return frozenset(_WORD.findall(low))


def _is_question(low: str, has_chinese: bool) -> bool:
    if (("?" in low or "？" in low) and _QUESTION.search(low)) or _ASKING.match(low):
        return True
    return has_chinese and _ASKING_CHINESE.search(low) is not None


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
