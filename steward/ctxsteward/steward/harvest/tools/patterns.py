"""Which form or values an argument must have: said by the error, and checked on the call that passed.

An API words its errors as it likes, so no phrase is looked for. Whatever an error shows that could be a rule for a
value is tried: a regular expression, a list of values, a written form (``YYYY-MM-DD``), a bound. It counts only where
the value that passed obeys it and the value that failed does not. Where the error shows none, the form of the value
that passed is the pattern, if the one that failed has another form (``abc1234``, ``ABC-1234``: ``[A-Z]+-\\d+``).

>>> told_pattern("status must be one of [open, closed]", "opened", "open")
'one of open, closed'
>>> told_pattern("date as MM/YY", "March", "03/26")
'MM/YY'
>>> told_pattern("sku must match ^[A-Z]{3}$", "ab", "ABC"), told_pattern("sku is invalid", "ab", "ABC")
('`^[A-Z]{3}$`', None)
>>> form_of("abc1234", "ABC-1234"), form_of("red", "blue")
('`[A-Z]+-\\\\d+`', None)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import groupby

from .error_codes import texts_in

MAX_TEXT_CHARS = 2_000
MAX_VALUE_CHARS = 80
MAX_ITEMS, MAX_ITEM_CHARS = 12, 24
MAX_PATTERN_CHARS = 60
MIN_SHARED = 3
"""Signs that two forms of one value have in common, in a row."""
_QUOTED_ITEM = "|".join(rf"{mark}[^{mark}\n]{{1,{MAX_ITEM_CHARS}}}{mark}" for mark in "'\"`")
_ITEM = rf"(?:{_QUOTED_ITEM}|[\w+#-][\w.+#/-]{{0,{MAX_ITEM_CHARS}}})"
_LIST = re.compile(rf"{_ITEM}(?:(?:\s*[,;|、]\s*(?:and |or )?|\s+(?:and|or)\s+|或|和){_ITEM})+")
_ITEMS = re.compile(_ITEM)
_PLAIN_ITEM = re.compile(rf"[\w+#-](?:[\w.+#/ -]{{0,{MAX_ITEM_CHARS - 2}}}[\w+#-])?")
_BETWEEN = re.compile(r"/(\^?[^/\s]{2,60}\$?)/|[\"'“]([^\"'”\s]{2,60})[\"'”]|(\S{2,60})")
_META = re.compile(r"\[[^\]\s]{1,40}\]|\\[dwsDWS]|\(\?")
_NESTED = re.compile(r"\)(?:[*+]|\{\d*,)")
_FORM = re.compile(r"(?<![\w-])(?:([A-Za-z#])\1*[-/.:T#]?){2,10}(?![\w-])")
_NUMBER = re.compile(r"(?<![\w.\[({-])-?\d+(?:\.\d+)?(?![\w\])}-]|\.\d)")
"""Stands alone: not in a name (``alpha-2``), nor in an expression (``[0-5]``)."""
RANGES = ("one of ", "at most ", "at least ", "a multiple of ")
"""How a rule about values begins, rather than one about their form."""
_ANY_LETTER, _ANY_DIGIT = frozenset("XxA#"), frozenset("YyMmDdHhSsNnWwXx#")


def told_pattern(text: str, before: object, after: object) -> str | None:
    """The rule that an error shows for a value, in a few words; None: it shows none that holds."""
    text = _readable(text[:MAX_TEXT_CHARS])
    old, new = str(before), str(after)
    if len(new) > MAX_VALUE_CHARS or isinstance(after, bool | dict):
        return None
    if isinstance(after, str):
        for found in (_told_expression(text, old, new), _told_values(text, old, new), _told_form(text, old, new)):
            if found is not None:
                return found
    return _told_values(text, old, new)


def told_bound(text: str, before: object, after: object) -> str | None:
    """The bound or step that an error shows for a figure, or for the length of a text or a list.

    >>> told_bound("page_size: between 1 and 1000", 5000, 200), told_bound("pin has 4 signs", "12", "1234")
    ('at most 1000', 'at least 4 characters')
    """
    return _told_bound(_readable(text[:MAX_TEXT_CHARS]), before, after)


def form_of(before: str, after: str) -> str | None:
    """The form of a value, where the one before has another; None: it is another value rather than another form."""
    if not 0 < len(after) <= MAX_ITEM_CHARS or not 0 < len(before) <= MAX_VALUE_CHARS or " " in after.strip():
        return None
    if _classes(before) == _classes(after) and not (after.isdecimal() and before in after):
        return None
    if not re.search(r"[^a-z]", after) and before.casefold() != after:
        return None  # a plain word: anything may be one
    loose = "".join(f"{kind}+" if count > 1 else kind for kind, count in _runs(after))
    exact = "".join(f"{kind}{{{count}}}" if count > 1 else kind for kind, count in _runs(after))
    return f"`{exact if re.fullmatch(loose, before) else loose}`"


def is_same_value(before: str, after: str) -> bool:
    """Whether two texts are one value in two forms: the letters and digits of one stand in a row in the other.

    >>> is_same_value("abc1234", "ABC-1234"), is_same_value("ann", "DE-88")
    (True, False)
    """
    old, new = ("".join(filter(str.isalnum, text)).casefold() for text in (before, after))
    return min(len(old), len(new)) >= MIN_SHARED and (old in new or new in old)


def _readable(text: str) -> str:
    """The texts in a JSON answer, lists of values in a row; other text as it is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return "\n".join(texts_in(value))


def _told_expression(text: str, old: str, new: str) -> str | None:
    for groups in _BETWEEN.findall(text):
        raw = next(filter(None, groups)).rstrip(".,;")
        for pattern in dict.fromkeys((raw, raw.strip("'\"`"))):
            if _META.search(pattern) and len(pattern) <= MAX_PATTERN_CHARS and _is_harmless(pattern):
                compiled = re.compile(pattern)
                if compiled.fullmatch(new) and not compiled.fullmatch(old):
                    return f"`{pattern}`"
    return None


def _is_harmless(pattern: str) -> bool:
    """Whether a tool's expression may be tried: it compiles, and nothing that repeats stands in what repeats."""
    if "`" in pattern or (
        _NESTED.search(pattern) and not re.fullmatch(r"[^()]*\([^()+*{]*(?:\[[^\]]*\][*+]?)[^()]*\)\??\$?", pattern)
    ):
        return False
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def _told_values(text: str, old: str, new: str) -> str | None:
    for row in _LIST.findall(text):
        items = list(dict.fromkeys(item.strip("'\"`").rstrip(".") for item in _ITEMS.findall(row)))
        items = [item for item in items if item not in ("and", "or")]
        if new in items and old not in items and 1 < len(items) <= MAX_ITEMS and all(map(_PLAIN_ITEM.fullmatch, items)):
            return f"one of {', '.join(items)}"
    return None


def _told_form(text: str, old: str, new: str) -> str | None:
    for match in _FORM.finditer(text):
        form = match[0].rstrip(".,: ")
        if len(form) > 3 and form != new and _fits(form, new) and not _fits(form, old):
            return form
    return None


def _fits(form: str, value: str) -> bool:
    """Whether a value is written as a form says, sign by sign: letters that repeat stand for digits or letters."""
    if len(form) != len(value):
        return False
    return all(
        sign == char
        or (sign in _ANY_DIGIT and char.isdecimal())
        or (sign in _ANY_LETTER and char.isalpha())
        or (sign in "RGB" and char.isalnum())
        for sign, char in zip(form, value, strict=True)
    )


def _told_bound(text: str, before: object, after: object) -> str | None:
    numbers = [float(number) for number in _NUMBER.findall(text)]
    old, new, what = _measured(before), _measured(after), ""
    if isinstance(before, str) and isinstance(after, str):
        old, new, what = float(len(before)), float(len(after)), " characters"
    elif isinstance(before, list) and isinstance(after, list):
        old, new, what = float(len(before)), float(len(after)), " entries"
    if old is None or new is None or old == new:
        return None
    if old > new:
        bounds = [number for number in numbers if new <= number < old]
        return f"at most {max(bounds):g}{what}" if bounds else _told_step(numbers, old, new, what)
    bounds = [number for number in numbers if old < number <= new]
    return f"at least {min(bounds):g}{what}" if bounds else _told_step(numbers, old, new, what)


def _told_step(numbers: list[float], old: float, new: float, what: str) -> str | None:
    steps = [number for number in numbers if number > 1 and new % number == 0 != old % number]
    return f"a multiple of {max(steps):g}" if steps and not what else None


def _measured(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _classes(value: str) -> tuple[str, ...]:
    return tuple(kind for kind, _ in _runs(value))


def _runs(value: str) -> Iterator[tuple[str, int]]:
    """Kinds of signs in a row, each with how many."""
    kinds = (_kind_of(char) for char in value)
    return ((kind, len(list(run))) for kind, run in groupby(kinds))


def _kind_of(char: str) -> str:
    if char.isascii() and char.isdigit():
        return "\\d"
    if char.isascii() and char.isalpha():
        return "[A-Z]" if char.isupper() else "[a-z]"
    return f"\\{char}" if char in ".+*?()[]{}|^$\\" else char
