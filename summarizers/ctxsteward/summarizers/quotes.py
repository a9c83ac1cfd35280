"""Quoting: how a bullet shows an original, and how anybody checks that it did not invent.

A bullet's text is made of verbatim pieces of its originals with ``…`` between them, on one line, and holds
nothing that looks like a reference (``§12``): citations are structure. `quote` makes such a text from one
original, `unsupported` finds the pieces of a text that stand in none of the given originals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ctxsteward.language.lists import lists
from ctxsteward.language.sentences import SentenceSpan, clauses
from ctxsteward.language.values import Value

ELLIPSIS = "…"

_BLANKS_AND_REFS = re.compile(r"(?<!\s)(?:\s++|§\s?\d+(?:\.\d+)?)+")
_UNQUOTABLE = re.compile(r"[\n\r\u2028\u2029\x0b\x0c\x1c-\x1e\x85§]")
_OPENING = lists("cues").pattern("opening", re.IGNORECASE)


def quote(text: str) -> str:
    """The text on one line; line breaks and look-alikes of references become an ellipsis.

    >>> quote("see §12 and\\nthe rest")
    'see…and…the rest'
    """
    if "\n" in text or "§" in text or not text.isprintable():
        text = _BLANKS_AND_REFS.sub(lambda run: ELLIPSIS if _UNQUOTABLE.search(run[0]) else run[0], text)
    return text.strip()


def without_opening(text: str) -> str:
    """Drop a conversational opening ("Oh, by the way, ") if enough is left.

    >>> without_opening("Oh, by the way, the port is 5432")
    'the port is 5432'
    """
    match = _OPENING.match(text)
    if match is None or len(text) - match.end() < min(12, len(text) // 2):
        return text
    return text[match.end() :]


def condensed(text: str, keep: Iterable[SentenceSpan | Value], max_chars: int) -> str:
    """Keep the clauses that hold one of the spans to keep, and their neighbours while there is room."""
    if len(text) <= max_chars:
        return text
    parts = clauses(text)
    spans = list(keep)
    wanted = {
        index
        for index, part in enumerate(parts)
        if any(span.start < part.stop and span.stop > part.start for span in spans)
    } or {0}
    size = sum(parts[index].stop - parts[index].start for index in wanted)
    for index in sorted(range(len(parts)), key=lambda i: min(abs(i - w) * 2 + (i > w) for w in wanted)):
        length = parts[index].stop - parts[index].start + 2
        if index not in wanted and size + length <= max_chars:
            wanted.add(index)
            size += length
    return _joined(text, parts, sorted(wanted), max_chars)


def _joined(text: str, parts: list[SentenceSpan], order: list[int], max_chars: int) -> str:
    runs: list[list[int]] = []
    for index in order:
        start, stop = parts[index]
        if runs and runs[-1][2] == index - 1:
            runs[-1][1:] = [stop, index]
        else:
            runs.append([start, stop, index])
    shown = ELLIPSIS.join(text[start:stop].strip() for start, stop, _ in runs)
    return shown if len(shown) <= 2 * max_chars else shown[: 2 * max_chars].rsplit(" ", 1)[0]


def unsupported(text: str, originals: Iterable[str]) -> tuple[str, ...]:
    """The pieces of a bullet's text (split at the ellipsis) that stand in none of the originals.

    >>> unsupported("the port…is 5432", ["the port of staging is 5432"])
    ()
    """
    known = list(originals)
    pieces = (piece.strip() for piece in text.split(ELLIPSIS))
    return tuple(piece for piece in pieces if piece and not any(piece in original for original in known))
