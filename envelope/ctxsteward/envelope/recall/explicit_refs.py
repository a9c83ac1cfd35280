"""What a question names by number: messages by reference (``§12``, ``§11-§18``), tool outputs by their place.

    "Quote the third tool output"   "what did tool result 12 say?"   "引用第 3 条工具输出"

What is named so is recalled before anything that a ranking likes, as far as it fits. Pure; costs nothing for a question
that names nothing, and a few look-ups for each tool output that is named.

Source: the layered-envelope design (finding things again: by reference, by the ordinal of a tool output).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ..history.tool_groups import LogEntry

MAX_NAMED = 12
"""Messages of one question; of a longer range the first ones."""
MAX_LOOK_CHARS = 4_000
_WORDS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
    "twentieth",
)  # fmt: skip
_OUTPUT = r"(?:outputs?|results?|responses?|answers?|calls?|returns?|replies|reply)"
_GAP = r"\s{0,3}"
_NUMBER = r"\d{1,6}"
_NTH = rf"(?:{_NUMBER}(?:st|nd|rd|th)|{'|'.join(_WORDS)})"
_ZH = r"(?:\d{1,6}|[零〇一二三四五六七八九十百两]{1,7})"
_AND = rf"{_GAP}(?:,|and|or|&|,{_GAP}and){_GAP}"
_TO = rf"{_GAP}(?:-|–|—|to|through|until|至|到){_GAP}"
_ZH_AND = rf"{_GAP}[、，,和与及]{_GAP}"
_REF = re.compile(rf"§\s?(\d{{1,9}})(?:\.\d+)?(?:{_TO}§?\s?(\d{{1,9}}))?", re.IGNORECASE)
_NUMBERED = re.compile(
    rf"""
      \b(?P<nth>{_NTH}(?:(?:{_AND}|{_TO})(?:the\s)?{_NTH}){{0,11}})\s{{1,3}}(?:\w{{1,20}}\s{{1,3}})?tools?\b
    | \b(?P<of>{_NTH})\s{{1,3}}(?:\w{{1,20}}\s{{1,3}})?{_OUTPUT}\s{{1,3}}(?:of|from|by)
      \s{{1,3}}(?:the|a|your)?\s?tools?\b
    | \btools?(?:'s?|’s?)?[\s_-]{{1,3}}{_OUTPUT}(?:\s{{1,3}}{_OUTPUT})?{_GAP}(?:numbers?|nos?\.?|nr\.?|\#)?{_GAP}
      (?P<n>\#?{_NUMBER}(?:(?:{_AND}|{_TO})\#?{_NUMBER}){{0,11}})\b
    | \btool:(?P<ref>{_NUMBER})\b
    | 第{_GAP}(?P<zh>{_ZH}(?:(?:{_ZH_AND}|{_TO})第?{_GAP}{_ZH}){{0,11}})
      {_GAP}(?:条|个|次|份|项|段|轮|笔)?{_GAP}的?{_GAP}工具
    | 工具(?:的)?(?:输出|结果|返回|调用){_GAP}(?:第|\#|编号)?{_GAP}(?P<zn>{_ZH}(?:(?:{_ZH_AND}|{_TO}){_ZH}){{0,11}})
    """,
    re.VERBOSE | re.IGNORECASE,
)
_PLACE = re.compile(rf"(?P<to>{_TO})?(?P<place>{_NTH}|{_NUMBER}|{_ZH})", re.IGNORECASE)


def named(text: str, last: int, entry: Callable[[int], LogEntry]) -> list[int]:
    """Ordinals up to `last` that this text names, each once, in its order."""
    text = text[:MAX_LOOK_CHARS]
    found = [*_by_reference(text), *_by_output(text, last, entry)]
    return [ordinal for ordinal in dict.fromkeys(found) if 0 < ordinal <= last][:MAX_NAMED]


def _by_reference(text: str) -> Iterator[int]:
    for match in _REF.finditer(text) if "§" in text else ():
        first = int(match[1])
        yield from range(first, min(int(match[2] or first), first + MAX_NAMED - 1) + 1)


def _by_output(text: str, last: int, entry: Callable[[int], LogEntry]) -> Iterator[int]:
    for number in outputs_named(text):
        ordinal = _output(number, last, entry)
        if ordinal is not None:
            yield ordinal


def outputs_named(text: str) -> list[int]:
    """The places of tool outputs that a text names.

    >>> outputs_named("Quote the third tool output, then tool result #12; 引用第十二条工具输出")
    [3, 12, 12]
    >>> outputs_named("compare tool outputs 2 and 5-7; 第3、4条工具输出")
    [2, 5, 6, 7, 3, 4]
    """
    found: list[int] = []
    for match in _NUMBERED.finditer(text) if "tool" in text.lower() or "工具" in text else ():
        places = next(group for group in match.groups() if group)
        for place in _PLACE.finditer(places):
            number = _number(place["place"])
            first = found[-1] + 1 if place["to"] and found else number
            found.extend(range(first, min(number, first + MAX_NAMED - 1) + 1))
    return found


def _number(text: str) -> int:
    """Digits (``3``, ``3rd``), an English ordinal, or a Chinese numeral below a thousand.

    >>> [_number(text) for text in ("7", "７", "3rd", "third", "十", "十二", "二十五", "一百零三", "两百一十")]
    [7, 7, 3, 3, 10, 12, 25, 103, 210]
    """
    if text.lower() in _WORDS:
        return _WORDS.index(text.lower()) + 1
    if text[0].isdecimal():
        return int(text.rstrip("stndrhSTNDRH"))
    from ctxsteward.language.numbers import chinese_number  # here: it reads the list of units

    return int(chinese_number(text))


def _output(number: int, last: int, entry: Callable[[int], LogEntry]) -> int | None:
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
