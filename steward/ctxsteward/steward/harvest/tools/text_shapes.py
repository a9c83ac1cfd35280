"""How a text that worked differs from one that failed, where they differ in shape alone: what stands before the lines.

    drop    line numbers, indentation or quotes that were there    ``12<tab>return x`` → ``return x``
    keep    indentation that was missing                           ``return x`` → ``    return x``
    begin   one to three signs before a value                      ``W17`` → ``#W17``

Whatever else differs makes it another text. Nothing of a text is told but its shape, of a closed set.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

SHAPES = ("line numbers", "indentation", "quotes")
MARK = r"[^\w\s`'\"\\;]{1,3}"
"""Signs before a value; none that a line of ours is made of."""
MAX_LINES = 200
_PREFIX = re.compile(r"(?P<indent>[ \t]+)|[ \t]*(?P<number>\d{1,6})[ \t]*(?:[\t|:→>.)-][ \t]*|[ \t]+)")
_MARK = re.compile(MARK)


class TextShape(NamedTuple):
    """What to do about a text."""

    do: Literal["drop", "keep", "begin"]
    what: str
    """One of `SHAPES`; of ``begin``, the signs."""


def reshaped(before: str, after: str) -> TextShape | None:
    """What a change did to the shape of a text; None: it did something else.

    >>> reshaped("  1\\tdef f():\\n  2\\t    pass", "def f():\\n    pass")
    TextShape(do='drop', what='line numbers')
    >>> reshaped("W17", "#W17"), reshaped("W17", "W18")
    (TextShape(do='begin', what='#'), None)
    """
    if before == after or not before.strip() or not after.strip():
        return None
    if len(before) == len(after) + 2 and before[1:-1] == after and before[0] == before[-1] and before[0] in "\"'`":
        return TextShape("drop", "quotes")
    old, new = ([line for line in text.rstrip().splitlines() if line.strip()] for text in (before, after))
    if len(old) != len(new) or len(old) > MAX_LINES:
        return None
    pairs = [(one, other) for one, other in zip(old, new, strict=True) if one != other]
    dropped = _shape([_lead(longer, shorter) for longer, shorter in pairs])
    if dropped == "line numbers" and (len(pairs) < len(old) or (len(old) == 1 and not _is_a_line(old[0], new[0]))):
        dropped = None  # a number before one value may be a part of it
    if dropped is not None:
        return TextShape("drop", dropped)
    if _shape([_lead(longer, shorter) for shorter, longer in pairs]) == "indentation":
        return TextShape("keep", "indentation")
    mark = after.removesuffix(before)
    is_mark = len(old) == 1 and after.endswith(before) and _MARK.fullmatch(mark)
    return TextShape("begin", mark) if is_mark else None


def _lead(longer: str, shorter: str) -> str | None:
    """What stands before a line that is otherwise the same; None: it is not."""
    return longer.removesuffix(shorter) if longer.endswith(shorter) and longer != shorter else None


def _is_a_line(numbered: str, line: str) -> bool:
    """Whether one numbered line is a line of a text that a tool has numbered, rather than a value with a number."""
    return " " in line.strip() and numbered.removesuffix(line).rstrip(" ")[-1:] in ("\t", ":", "|", "→")


def _shape(leads: Sequence[str | None]) -> str | None:
    """What stands before these lines; line numbers count on."""
    found = [_PREFIX.fullmatch(lead) if lead else None for lead in leads]
    if not found or not all(found):
        return None
    if all(match is not None and match["indent"] for match in found):
        return "indentation"
    numbers = [int(match["number"]) for match in found if match is not None and match["number"]]
    return "line numbers" if len(numbers) == len(leads) and all(o < t for o, t in pairwise(numbers)) else None
