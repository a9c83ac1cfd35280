"""Units, currencies and numerals that make a number mean something, as look-up tables.

A unit maps to (family, scale): ``kb`` and ``mb`` keep their own family, because 40 MB is not 40 KB and nobody restates
one as the other. Chinese measure words that only count (``个``, ``人``) are families of their own.
"""

from __future__ import annotations

from .lists import lists

_LISTS = lists("units")


def _families(name: str) -> dict[str, tuple[str, int]]:
    return {word: (line[0], 1) for line in _LISTS.classes(name) for word in line}


UNITS: dict[str, tuple[str, int]] = _families("english")
ZH_UNITS: dict[str, tuple[str, int]] = _families("chinese") | {
    word: (family, int(scale)) for word, family, scale in _LISTS.classes("scaled")
}
CURRENCIES: dict[str, str] = {line[0]: line[1] for line in _LISTS.classes("currencies")}
NUMBER_WORDS: dict[str, int] = {word: int(number) for word, number in _LISTS.classes("numbers")}
DATE_WORDS: dict[str, str] = {word: day for day, *forms in _LISTS.classes("dates") for word in (day, *forms)}
_ZH_DIGITS = {"〇": 0, "两": 2} | {digit: number for number, digit in enumerate("零一二三四五六七八九")}
_ZH_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10000}


def chinese_number(numeral: str) -> float | int:
    """The number that a Chinese numeral spells.

    >>> [chinese_number(n) for n in ("四十五", "两万", "一百二十", "十")]
    [45, 20000, 120, 10]
    """
    if numeral == "半":
        return 0.5
    total = section = digit = 0
    for char in numeral:
        if char in _ZH_DIGITS:
            digit = digit * 10 + _ZH_DIGITS[char]
        elif char in _ZH_SCALES:
            scale = _ZH_SCALES[char]
            if scale == 10000:
                total, section = total + (section + digit or 1) * scale, 0
            else:
                section += (digit or 1) * scale
            digit = 0
    return total + section + digit
