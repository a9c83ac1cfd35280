"""Passages: the parts of a long text that are found and shown separately.

A text of up to `WHOLE_CHARS` is one passage. A longer one is cut after line breaks and at the ends of code blocks.
Neighbours are then joined up to `PASSAGE_CHARS`, so that a list item or a short paragraph stays with its context.
A piece longer than 1.5 times that is cut after a sentence, or else after a blank. The passages joined are the text.

`§12.4` names the fourth passage of a message. Stored references rest on this rule, so it must not change.


>>> text = "First comes the plan.\\n\\n" + "A long explanation of it. " * 80 + "\\n\\nThen the figures."
>>> spans = passage_spans(text)
>>> "".join(text[start:stop] for start, stop in spans) == text, len(spans)
(True, 6)
>>> text[spans[-1].start : spans[-1].stop].splitlines()[-1]
'Then the figures.'

Source: M. A. Hearst, TextTiling (1997), for units smaller than a document. We take paragraphs as written, unscored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

WHOLE_CHARS = 1_600
"""About 400 tokens. On ten chats of long assistant replies, 1,200 and 1,600 show the same evidence; 800 splits users'
own messages (`evals recall`)."""
PASSAGE_CHARS = 480
"""About 110 tokens; 320 and 640 show as much evidence."""
MAX_PASSAGES = 999
"""Most passages of one text. The last passage contains the rest of it."""
KEPT_CHARS = 20_000
"""Spans of texts up to this length are cached, because callers often read several passages of one message in a row."""

_CODE = re.compile(r"```.*?(?:```[^\n]*\n?|\Z)", re.DOTALL)
_LINE = re.compile(r"[^\n]*\n+|[^\n]+\Z")
_SENTENCE_END = re.compile(r"[.!?;…][\"')\]]*\s|[。！？；]")
_LONGEST = PASSAGE_CHARS * 3 // 2


class PassageSpan(NamedTuple):
    """Character offsets of a passage in its text."""

    start: int
    stop: int


def passage_spans(text: str) -> list[PassageSpan]:
    """Return the passages of a text, in order: one for a short text, no passage for an empty one."""
    if len(text) <= WHOLE_CHARS:
        return [PassageSpan(0, len(text))] if text else []
    return list(_kept(text)) if len(text) <= KEPT_CHARS else _joined(text)


@lru_cache(maxsize=64)
def _kept(text: str) -> tuple[PassageSpan, ...]:
    return tuple(_joined(text))


def _joined(text: str) -> list[PassageSpan]:
    joined: list[PassageSpan] = []
    for start, stop in _pieces(text):
        if joined and (stop - joined[-1].start <= PASSAGE_CHARS or len(joined) == MAX_PASSAGES):
            joined[-1] = PassageSpan(joined[-1].start, stop)
        else:
            joined.append(PassageSpan(start, stop))
    return joined


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    for code in _CODE.finditer(text) if "```" in text else ():
        yield from _lines(text, at, code.start())
        short = code.end() - code.start() <= _LONGEST
        yield from (((code.start(), code.end()),) if short else _lines(text, code.start(), code.end()))
        at = code.end()
    yield from _lines(text, at, len(text))


def _lines(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield lines with the breaks after them. A long line is yielded in several pieces."""
    for line in _LINE.finditer(text, start, stop):
        at = line.start()
        while line.end() - at > _LONGEST:
            cut = _cut(text, at)
            yield at, cut
            at = cut
        yield at, line.end()


def _cut(text: str, start: int) -> int:
    """Return the end of the next piece of a long line: after its last sentence, else after a blank, else anywhere."""
    stop = start + PASSAGE_CHARS
    least = start + PASSAGE_CHARS // 3
    ends = [end for match in _SENTENCE_END.finditer(text, start, stop) if (end := match.end()) > least]
    if ends:
        return ends[-1]
    blank = text.rfind(" ", least, stop) + 1
    return blank or stop
