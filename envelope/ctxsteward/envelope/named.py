"""What a question names by number: messages by reference (``§12``, ``§11-§18``), tool outputs by their place.

    "Quote the third tool output"   "what did tool result 12 say?"   "引用第 3 条工具输出"

What is named so is recalled before anything that a ranking likes, as far as it fits. Pure; costs nothing for a question
that names nothing, and a few look-ups for each tool output that is named.

Source: the layered-envelope design (finding things again: by reference, by the ordinal of a tool output).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from .groups import Entry

MAX_NAMED = 12
"""Messages of one question; of a longer range the first ones."""
MAX_LOOK_CHARS = 4_000
_WORDS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"两": 2}
_OUTPUT = r"(?:outputs?|results?|responses?|answers?|calls?|returns?)"
_REF = re.compile(r"§\s?(\d{1,9})(?:\.\d+)?(?:\s*(?:-|–|—|to|through|until|到|至)\s*§?\s?(\d{1,9}))?", re.IGNORECASE)
_NUMBERED = re.compile(
    rf"""
      \b(?P<nth>\d{{1,6}})(?:st|nd|rd|th)\s+(?:\w+\s+){{0,1}}tool\b
    | \b(?P<word>{"|".join(_WORDS)})\s+(?:\w+\s+){{0,1}}tool\b
    | \btool(?:'s|’s)?\s+{_OUTPUT}(?:\s+{_OUTPUT})?\s*(?:number|no\.?|nr\.?|\#)?\s*(?P<n>\d{{1,6}})\b
    | 第\s*(?P<zh>\d{{1,6}}|[零一二三四五六七八九十百两]{{1,7}})\s*(?:条|个|次|份|项|段|轮)?\s*的?\s*工具
    | 工具(?:的)?(?:输出|结果|返回|调用)\s*(?:第|\#|编号)?\s*(?P<zn>\d{{1,6}})
    """,
    re.VERBOSE | re.IGNORECASE,
)


def named(text: str, last: int, entry: Callable[[int], Entry]) -> list[int]:
    """Ordinals up to `last` that this text names, each once, in its order."""
    text = text[:MAX_LOOK_CHARS]
    found = [*_by_reference(text), *_by_output(text, last, entry)]
    return [ordinal for ordinal in dict.fromkeys(found) if 0 < ordinal <= last][:MAX_NAMED]


def _by_reference(text: str) -> Iterator[int]:
    for match in _REF.finditer(text) if "§" in text else ():
        first = int(match[1])
        yield from range(first, min(int(match[2] or first), first + MAX_NAMED - 1) + 1)


def _by_output(text: str, last: int, entry: Callable[[int], Entry]) -> Iterator[int]:
    for number in outputs_named(text):
        ordinal = _output(number, last, entry)
        if ordinal is not None:
            yield ordinal


def outputs_named(text: str) -> list[int]:
    """The places of tool outputs that a text names.

    >>> outputs_named("Quote the third tool output, then tool result #12; 引用第十二条工具输出")
    [3, 12, 12]
    """
    found: list[int] = []
    for match in _NUMBERED.finditer(text) if "tool" in text.lower() or "工具" in text else ():
        word, chinese = match["word"], match["zh"]
        if word:
            found.append(_WORDS.index(word.lower()) + 1)
        elif chinese:
            found.append(_number(chinese))
        else:
            found.append(int(match["nth"] or match["n"] or match["zn"]))
    return found


def _number(text: str) -> int:
    """Digits or a Chinese numeral below a thousand.

    >>> [_number(text) for text in ("7", "十", "十二", "三十", "二十五", "一百零三", "两百一十")]
    [7, 10, 12, 30, 25, 103, 210]
    """
    if text.isdecimal() and text.isascii():
        return int(text)
    total = digit = 0
    for character in text:
        if character in "十百":
            total += (digit or 1) * (10 if character == "十" else 100)
            digit = 0
        else:
            digit = _DIGITS[character]
    return total + digit


def _output(number: int, last: int, entry: Callable[[int], Entry]) -> int | None:
    """The message that holds the n-th tool output: messages with outputs count them up."""
    low, high, found = 1, last, None
    while low <= high:
        middle = (low + high) // 2
        at = next((ordinal for ordinal in range(middle, high + 1) if entry(ordinal).event.outputs), None)
        if at is None:
            high = middle - 1
        elif entry(at).event.outputs >= number:
            found, high = at, middle - 1
        else:
            low = at + 1
    return found if number > 0 else None
