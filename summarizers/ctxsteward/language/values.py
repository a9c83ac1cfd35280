"""Typed values in a sentence (identifiers, numbers with units, dates, paths, addresses, names), and their equality.

The summarizers and the steward's claims read values with this module. A value has a `kind` (`ValueKind`, a closed
list), a `unit` (``port``, ``days``, ``$``; empty if none) and a `norm`. Two mentions are the same if their norms are:
NFKC, case-folded, without thousands separators and inner white space, spelled-out and Chinese numerals as digits. The
scan starts at characters that every value has (a digit, ``@ / # _ .``) and reads one token there, so plain prose costs
one search. All passes are linear.

A unit maps to (family, scale). ``kb`` and ``mb`` are separate families, because 40 MB is not 40 KB and nobody restates
one as the other. Chinese measure words that only count (``个``, ``人``) are families of their own.

>>> [(v.kind, v.unit, v.norm) for v in typed_values("raise it from 30 to 45 days, ticket OPS-113, $1,200")]
[('number', '', '30'), ('quantity', 'day', '45'), ('identifier', '', 'ops-113'), ('money', '$', '1200')]
>>> [(v.kind, v.unit, v.norm) for v in typed_values("退货期改成四十五天，预算8万元")]
[('quantity', 'day', '45'), ('money', '¥', '80000')]
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, NamedTuple

from .words import lists

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
    """Return the number that a Chinese numeral spells.

    >>> [chinese_number(n) for n in ("四十五", "两万", "一百二十", "十", "半百", "两半")]
    [45, 20000, 120, 10, 50.0, 2.5]
    """
    total: float | int = 0
    section: float | int = 0
    digit: float | int = 0
    for char in numeral:
        if char in _ZH_DIGITS:
            digit = digit * 10 + _ZH_DIGITS[char]
        elif char == "半":
            digit += 0.5
        elif char in _ZH_SCALES:
            scale = _ZH_SCALES[char]
            if scale == 10000:
                total, section = total + (section + digit or 1) * scale, 0
            else:
                section += (digit or 1) * scale
            digit = 0
    return total + section + digit


ValueKind = Literal[
    "url",
    "email",
    "path",
    "identifier",
    "address",
    "phone",
    "version",
    "date",
    "time",
    "money",
    "percent",
    "quantity",
    "number",
    "name",
]

DISTINCTIVE = frozenset(("url", "email", "path", "identifier", "address", "phone", "version"))
"""Kinds whose mention names one thing, regardless of the sentence around it."""


class Value(NamedTuple):
    """A typed value and its place in its sentence."""

    kind: ValueKind
    unit: str
    norm: str
    start: int
    stop: int


_TRIGGER = re.compile(r"[0-9０-９@/\\#_]|\.(?=[A-Za-z0-9０-９_@/\\#.:+~$€£¥%?=&,'-])")
"""A full stop that no token character follows ends a sentence, and begins no value."""
_TOKEN_CHARS = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789０１２３４５６７８９_@/\\#.:+-~$€£¥%?=&"
)
_TOKEN = re.compile(r"[A-Za-z0-9０-９_@/\\#.:+~$€£¥%?=&,'-]+")
_PHONE = re.compile(r"\+?\(?\d{2,4}\)?(?:[ -]\d{3,4}){2,4}(?!\d)|\+\d{8,15}|(?<!\d)1[3-9]\d{9}(?!\d)|\b555[ -]\d{4}\b")
_NUMBER = re.compile(r"[$€£¥]?[0-9０-９]+(?:[,，][0-9０-９]{3})*(?:\.[0-9０-９]+)?")
_UNIT_AFTER = re.compile(r"\s?-?([A-Za-z°]{1,12}|%|％|[\u3400-\u9fff]{1,2})")
_IP = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?:/\d+)?")
_VERSION = re.compile(r"[vV]\d+(?:\.\d+)*(?:[.-]\w+)*|(?<!\d)\d++\.\d+\.\d+[\w.+-]*")
_ISO_DATE = re.compile(r"\d{4}[-/]\d{1,2}[-/]\d{1,2}(?:T[\d:.]+Z?)?|\d{1,2}/\d{1,2}(?:/\d{2,4})?")
_CLOCK = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]\.?m\b\.?)?|\d{1,2}\s?[ap]\.?m\b", re.IGNORECASE)
_HOST = re.compile(r"[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*)+(?::\d+)?")
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)", re.IGNORECASE)
_ZH_DATE = re.compile(r"(?:\d{4}年)?\d{1,2}月(?:\d{1,2}[日号]|[初中底上下]旬?)?|\d{1,2}[日号](?![楼线机])")
_ZH_NUMERAL = re.compile(r"[零〇一二两三四五六七八九十百千万半]+")
_ZH_WEEKDAY = re.compile(r"(?:下+|本|这|上|每)?(?:个)?(?:周|星期|礼拜)[一二三四五六日天]")
_CAPS = re.compile(r"\b[A-Z]{5,}\b|\b[a-z]+(?:-[a-z]+){2,}\b", re.ASCII)
_QUOTED = re.compile(r"[`\"“「『《]([^`\"”」』》\n]{2,60})[`\"”」』》]")
_MONTH_BEFORE = re.compile(
    r"\b(jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec)[a-z]*\.?\s+$|\bday\s+$", re.IGNORECASE
)
_MONTH_AFTER = re.compile(
    r"(?:st|nd|rd|th)?(?: of)? (?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\b",
    re.IGNORECASE,
)


def normalize(text: str) -> str:
    """Return the form in which two values compare: NFKC, lower case, no thousands separators, no white space."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    if "," in text:
        text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    return re.sub(r"\s+", "", text).casefold()


def typed_values(text: str) -> tuple[Value, ...]:
    """Return the typed values of one sentence in order. Quoted strings are names; other names are left out."""
    found: list[Value] = []
    position = 0
    while match := _TRIGGER.search(text, position):
        start = match.start()
        while start > position and text[start - 1] in _TOKEN_CHARS:
            start -= 1
        value = _value_at(text, start)
        if value is not None:
            found.append(value)
            position = max(value.stop, match.end())
        else:
            token = _TOKEN.match(text, start)
            position = max(token.end() if token else 0, match.end())
    if not text.isascii():
        found.extend(_chinese(text, found))
    found.extend(_spelled(text, found))
    return tuple(sorted(found, key=lambda value: value.start))


def _value_at(text: str, start: int) -> Value | None:
    token = _TOKEN.match(text, start)
    if token is None:
        return None
    raw = token.group().rstrip(".,:'-?=&+")
    lead = len(raw) - len(raw.lstrip(".,:'-=&?"))
    raw, start = raw[lead:], start + lead
    if len(raw) < 1:
        return None
    stop = start + len(raw)
    if "://" in raw:
        return Value("url", "", normalize(raw), start, stop)
    if "@" in raw:
        return Value("email" if "." in raw else "name", "", normalize(raw), start, stop) if len(raw) > 3 else None
    if not any(map(str.isdigit, raw)):
        return _without_digit(raw, start, stop)
    return _with_digit(text, raw, start, stop)


def _without_digit(raw: str, start: int, stop: int) -> Value | None:
    if "/" in raw or "\\" in raw:
        slashes = raw.count("/") + raw.count("\\")
        if len(raw) > 4 and (slashes > 1 or raw[0] in "/~." or "." in raw):
            return Value("path", "", normalize(raw), start, stop)
        return None
    if "_" in raw.strip("_"):
        return Value("identifier", "", normalize(raw), start, stop)
    if "." in raw and len(raw) > 4 and _HOST.fullmatch(raw) and raw.lower() not in ("e.g", "i.e", "a.m", "p.m"):
        return Value("path", "", normalize(raw), start, stop)
    if raw[0] == "#" and len(raw) > 2:
        return Value("identifier", "", normalize(raw), start, stop)
    return None


def _with_digit(text: str, raw: str, start: int, stop: int) -> Value | None:
    for pattern, kind in ((_ISO_DATE, "date"), (_CLOCK, "time"), (_IP, "address"), (_VERSION, "version")):
        match = pattern.match(text, start)
        if match and match.end() >= stop:
            return Value(kind, "", normalize(match.group()), start, match.end())  # type: ignore[arg-type]
    if (raw[0] in "+(" or raw[0].isdigit()) and (match := _PHONE.match(text, start)):
        return Value("phone", "", normalize(match.group()), start, match.end())
    if raw[0].isdigit() or raw[0] in CURRENCIES:
        number = _NUMBER.match(text, start)
        if number and (number.end() >= stop or not _mixed(raw[number.end() - start :])):
            return _numeric(text, number.group(), start, number.end())
    if "/" in raw[1:] or "\\" in raw or raw[0] in "~/":
        return Value("path", "", normalize(raw), start, stop)
    if len(raw) > 2 and not _ORDINAL.fullmatch(raw):
        return Value("identifier", "", normalize(raw), start, stop)
    return Value("number", "", normalize(raw), start, stop) if len(raw) > 1 else None


def _mixed(rest: str) -> bool:
    """Return whether the text after the digits makes the token a code, and not a number with a unit."""
    rest = rest.strip(".,:'-%$€£¥/+")
    return (
        bool(rest)
        and (rest.lower() not in UNITS or not rest.isalpha())
        and rest.lower() not in ("st", "nd", "rd", "th")
    )


def _numeric(text: str, raw: str, start: int, stop: int) -> Value:
    digits = normalize(raw.lstrip("$€£¥"))
    if raw[0] in CURRENCIES:
        unit = _UNIT_AFTER.match(text, stop)
        scale = {"k": 1000, "m": 1000000, "million": 1000000}.get(unit[1].lower()) if unit else None
        return Value("money", raw[0], _scaled(digits, scale or 1), start, unit.end() if unit and scale else stop)
    zh_date = _ZH_DATE.match(text, start)
    if zh_date:
        return Value("date", "", normalize(zh_date.group()), start, zh_date.end())
    if stop - start <= 2 and (month := _MONTH_BEFORE.search(text, max(0, start - 12), start)):
        return Value("date", "", normalize(text[month.start() : stop]), month.start(), stop)
    if stop - start <= 2 and (month := _MONTH_AFTER.match(text, stop)):
        return Value("date", "", normalize(text[start : month.end()]), start, month.end())
    return _measured(text, digits, start, stop)


def _measured(text: str, digits: str, start: int, stop: int) -> Value:
    unit = _UNIT_AFTER.match(text, stop)
    word = unit[1].lower() if unit else ""
    if unit and word and not word.isascii():
        for size in (2, 1):
            if (known := ZH_UNITS.get(word[:size])) is not None:
                end = unit.start(1) + min(size, len(word))
                return _quantity(digits, known, start, end, text)
    elif unit and (known := UNITS.get(word)) is not None:
        return _quantity(digits, known, start, unit.end(), text)
    before = text[max(0, start - 4) : start].strip().lower()
    if before in ("usd", "eur", "gbp", "rmb", "cny"):
        return Value("money", CURRENCIES[before], digits, start, stop)
    if len(digits) >= 6 and digits.isdigit() and "," not in text[start:stop]:
        return Value("identifier", "", digits, start, stop)
    return Value("number", "", digits, start, stop)


def _quantity(digits: str, known: tuple[str, int], start: int, stop: int, text: str) -> Value:
    family, scale = known
    if family == "万":
        following = text[stop : stop + 1]
        family = "¥" if following in "元块" else ""
        stop += 1 if family and following else 0
        if not family:
            return Value("number", "", _scaled(digits, scale), start, stop)
    norm = _scaled(digits, scale)
    if family in CURRENCIES.values():
        return Value("money", family, norm, start, stop)
    if family == "%":
        return Value("percent", "", norm, start, stop)
    if family == "clock":
        return Value("time", "", norm, start, stop)
    return Value("quantity", family, norm, start, stop)


def _scaled(digits: str, scale: int) -> str:
    if scale == 1:
        return digits
    try:
        return f"{float(digits) * scale:.10g}"
    except (ValueError, OverflowError):
        return digits


def _spelled(text: str, found: list[Value]) -> list[Value]:
    """Return codes in capitals, hyphenated codes and quoted strings that overlap no other value."""
    extra = [Value("identifier", "", m.group().lower(), *m.span()) for m in _CAPS.finditer(text)]
    if any(mark in text for mark in '`"“「『《'):
        extra += [Value("name", "", normalize(m[1]), *m.span(1)) for m in _QUOTED.finditer(text)]
    return [value for value in extra if not _covered(value, found)]


def spelled_number(words: list[tuple[int, str]], index: int, text: str) -> Value | None:
    """Return ``forty-five days`` or ``Tuesday`` at word `index`, or None; words are (offset, lower-case word)."""
    start, word = words[index]
    if word in DATE_WORDS:
        return Value("date", "weekday", DATE_WORDS[word], start, start + len(word))
    total, last = 0, index
    for last in range(index, min(index + 4, len(words))):
        parts = words[last][1].split("-")
        numbers = [NUMBER_WORDS.get(part) for part in parts]
        if any(number is None for number in numbers):
            break
        for number in numbers:
            total = (total or 1) * number if number in (100, 1000) else total + (number or 0)
    else:
        return None
    if last == index or last >= len(words) or (known := UNITS.get(words[last][1])) is None:
        return None
    stop = words[last][0] + len(words[last][1])
    return _quantity(str(total), known, start, stop, text)


def _chinese(text: str, found: list[Value]) -> list[Value]:
    extra = [
        Value("date", "weekday", m.group().replace("星期", "周").replace("礼拜", "周"), *m.span())
        for m in _ZH_WEEKDAY.finditer(text)
    ]
    for match in _ZH_NUMERAL.finditer(text):
        unit = text[match.end() : match.end() + 2]
        for size in (2, 1):
            known = ZH_UNITS.get(unit[:size])
            if known is not None and len(unit) >= size and _counts(match.group(), known[0]):
                value = _quantity(str(chinese_number(match.group())), known, match.start(), match.end() + size, text)
                extra.append(value)
                break
    return [value for value in extra if not _covered(value, found)]


def _counts(numeral: str, family: str) -> bool:
    """Return whether a Chinese numeral before a measure word is a quantity, and not an article ("一次", "一件")."""
    return numeral not in ("一", "半") or family not in (
        "times",
        "item",
        "people",
        "room",
        "page",
        "row",
        "clock",
        "degree",
    )


def _covered(value: Value, found: list[Value]) -> bool:
    return any(value.start < other.stop and value.stop > other.start for other in found)
