"""Sentences, clauses and lines of a text, as character spans of the original.

Spans, not copies: a bullet may only hold what stands in an original, so nothing here rewrites a character. English
sentences end at ``. ! ?`` before white space (not after a common abbreviation), Chinese ones at ``。！？；``; a line of
a list, a table or a code block is a sentence of its own; a line that goes on in lower case is the same sentence. All
passes are linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .lists import lists


class SentenceSpan(NamedTuple):
    """Character offsets into the original text."""

    start: int
    stop: int


MAX_SENTENCE_CHARS = 600
"""A longer run without an end mark is cut: minified data and base64 are no sentences."""

_END = re.compile(
    r"(?<![.!?])[.!?]++[\"'”’)\]*_]*+(?=\s)|[。！？；]+[”’」』）]*|…{2,}|;(?=\s)|[\n\r\u2028\u2029\x0b\x0c\x85]+(?![a-z])"
)
_LEAD = re.compile(r"[\s>#|*+•·–—-]*(?:\(?\d{1,2}[.)、](?=\s|[^\d\s])\s*)?(?:\[[ xX]\]\s*)?[*_]*")
_ABBREVIATED = lists("words").pattern("abbreviated", re.IGNORECASE)
_CLAUSE = lists("words").pattern("clause")


def sentences(text: str, start: int = 0, stop: int | None = None) -> Iterator[SentenceSpan]:
    """Yield the sentences of ``text[start:stop]``, list markers and outer white space left out.

    >>> text = "Ship it. Port 5432, e.g. for dev!\\n- 别动生产库。明天再说"
    >>> [text[piece.start:piece.stop] for piece in sentences(text)]
    ['Ship it.', 'Port 5432, e.g. for dev!', '别动生产库。', '明天再说']
    """
    stop = len(text) if stop is None else stop
    begin = start
    for match in _END.finditer(text, start, stop):
        end = match.end()
        if text[match.start()] == "." and (
            _ABBREVIATED.search(text, max(begin, match.start() - 8), match.start() + 1)
            or text[begin : match.start()].strip().isdecimal()  # the number of a list item
        ):
            continue
        yield from _trimmed(text, begin, end)
        begin = end
    yield from _trimmed(text, begin, stop)


def _trimmed(text: str, start: int, stop: int) -> Iterator[SentenceSpan]:
    lead = _LEAD.match(text, start, stop)
    start = lead.end() if lead else start
    while stop > start and text[stop - 1].isspace():
        stop -= 1
    while stop - start > MAX_SENTENCE_CHARS:
        cut = text.rfind(" ", start + MAX_SENTENCE_CHARS // 2, start + MAX_SENTENCE_CHARS)
        cut = cut if cut > 0 else start + MAX_SENTENCE_CHARS
        yield SentenceSpan(start, cut)
        start = cut
        while start < stop and text[start].isspace():
            start += 1
    if stop - start > 1:
        yield SentenceSpan(start, stop)


def clauses(text: str) -> list[SentenceSpan]:
    """Cut one sentence at commas, colons, dashes, brackets and subordinating words.

    >>> text = "The budget, which Ana set, is 40 days"
    >>> [text[piece.start:piece.stop] for piece in clauses(text)]
    ['The budget', 'which Ana set', 'is 40 days']
    """
    pieces: list[SentenceSpan] = []
    begin = 0
    for match in _CLAUSE.finditer(text):
        if match.start() > begin:
            pieces.append(SentenceSpan(begin, match.start()))
        begin = match.end()
    if begin < len(text):
        pieces.append(SentenceSpan(begin, len(text)))
    return pieces
