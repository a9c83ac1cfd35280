"""Infer a rule for an argument from the error, the value that failed and the value that passed.

Every API words its errors differently, so no phrases are searched. Each part of an error that could be a rule is tried:
a regular expression, a list of values, a written form (``YYYY-MM-DD``), a bound. It is a rule if the value that passed
obeys it and the value that failed does not. If the error shows no rule, two values with different forms give one
(``abc1234``, ``ABC-1234``: ``[A-Z]+-\\d+``).

>>> told_pattern("status must be one of [open, closed]", "opened", "open")
'one of open, closed'
>>> told_pattern("date as MM/YY", "March", "03/26")
'MM/YY'
>>> told_pattern("sku must match ^[A-Z]{3}$", "ab", "ABC"), told_pattern("sku is invalid", "ab", "ABC")
('`^[A-Z]{3}$`', None)
>>> form_of("abc1234", "ABC-1234"), form_of("red", "blue")
('`[A-Z]+-\\\\d+`', None)

Two texts that differ only at the start of their lines, or in signs around them, differ in shape (`TextShape`). Only the
shape is reported, never a part of the text:

    drop    line numbers, indentation or quotes that were there    ``12<tab>return x`` → ``return x``
    keep    indentation that was missing                           ``return x`` → ``    return x``
    begin   one to three signs before a value                      ``W17`` → ``#W17``
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

from .error_codes import texts_in

MAX_TEXT_CHARS = 2_000
MAX_VALUE_CHARS = 80
MAX_ITEMS, MAX_ITEM_CHARS = 12, 24
MAX_PATTERN_CHARS = 60
MIN_SHARED = 3
"""Characters in a row that two forms of one value must share."""
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
"""A number alone, not in a name (``alpha-2``) or an expression (``[0-5]``)."""
RANGES = ("one of ", "at most ", "at least ", "a multiple of ")
"""Beginnings of rules about values, rather than about their form."""
SHAPES = ("line numbers", "indentation", "quotes")
MARK = r"[^\w\s`'\"\\;]{1,3}"
"""Signs before a value; without signs that delimit our templates."""
MAX_LINES = 200
_PREFIX = re.compile(r"(?P<indent>[ \t]+)|[ \t]*(?P<number>\d{1,6})[ \t]*(?:[\t|:→>.)-][ \t]*|[ \t]+)")
_MARK = re.compile(MARK)
_ANY_LETTER, _ANY_DIGIT = frozenset("XxA#"), frozenset("YyMmDdHhSsNnWwXx#")


def told_pattern(text: str, before: object, after: object) -> str | None:
    """Return the rule for form or values that an error shows, in a few words, or None."""
    text = _readable(text[:MAX_TEXT_CHARS])
    old, new = str(before), str(after)
    if len(new) > MAX_VALUE_CHARS or isinstance(after, bool | dict):
        return None
    if not isinstance(after, str):
        return _told_values(text, old, new)
    return _told_expression(text, old, new) or _told_values(text, old, new) or _told_form(text, old, new)


def told_bound(text: str, before: object, after: object) -> str | None:
    """Return the bound or step that an error shows for a number, or for the length of a text or a list.

    >>> told_bound("page_size: between 1 and 1000", 5000, 200), told_bound("pin has 4 signs", "12", "1234")
    ('at most 1000', 'at least 4 characters')
    """
    numbers = [float(number) for number in _NUMBER.findall(_readable(text[:MAX_TEXT_CHARS]))]
    old, new, unit = _measured(before), _measured(after), ""
    if isinstance(before, str) and isinstance(after, str):
        old, new, unit = float(len(before)), float(len(after)), " characters"
    elif isinstance(before, list) and isinstance(after, list):
        old, new, unit = float(len(before)), float(len(after)), " entries"
    if old is None or new is None or old == new:
        return None
    if upper := [number for number in numbers if new <= number < old]:
        return f"at most {max(upper):g}{unit}"
    if lower := [number for number in numbers if old < number <= new]:
        return f"at least {min(lower):g}{unit}"
    steps = [number for number in numbers if number > 1 and new % number == 0 != old % number]
    return f"a multiple of {max(steps):g}" if steps and not unit else None


def form_of(before: str, after: str) -> str | None:
    """Return the form of `after` as a regular expression, or None if it does not differ from that of `before`."""
    if not 0 < len(after) <= MAX_ITEM_CHARS or not 0 < len(before) <= MAX_VALUE_CHARS or " " in after.strip():
        return None
    if _classes(before) == _classes(after) and not (after.isdecimal() and before in after):
        return None
    if not re.search(r"[^a-z]", after) and before.casefold() != after:
        return None  # the form of a plain word says nothing
    loose = "".join(f"{kind}+" if count > 1 else kind for kind, count in _runs(after))
    exact = "".join(f"{kind}{{{count}}}" if count > 1 else kind for kind, count in _runs(after))
    return f"`{exact if re.fullmatch(loose, before) else loose}`"


class TextShape(NamedTuple):
    """A change of a text's shape."""

    do: Literal["drop", "keep", "begin"]
    what: str
    """One of `SHAPES`, or the signs of ``begin``."""


def reshaped(before: str, after: str) -> TextShape | None:
    """Return how two texts differ in shape, or None if they differ in more.

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
    """Return the text before a line that is otherwise equal, or None."""
    return longer.removesuffix(shorter) if longer.endswith(shorter) and longer != shorter else None


def _is_a_line(numbered: str, line: str) -> bool:
    """Whether a tool numbered the line of a text, rather than that a value begins with a number."""
    return " " in line.strip() and numbered.removesuffix(line).rstrip(" ")[-1:] in ("\t", ":", "|", "→")


def _shape(leads: Sequence[str | None]) -> str | None:
    """Return what all leads are: indentation, or line numbers that increase."""
    prefixes = [prefix for lead in leads if lead and (prefix := _PREFIX.fullmatch(lead))]
    if not prefixes or len(prefixes) < len(leads):
        return None
    if all(prefix["indent"] for prefix in prefixes):
        return "indentation"
    numbers = [int(prefix["number"]) for prefix in prefixes if prefix["number"]]
    is_increasing = all(one < next_one for one, next_one in pairwise(numbers))
    return "line numbers" if len(numbers) == len(leads) and is_increasing else None


def is_same_value(before: str, after: str) -> bool:
    """Whether two texts are one value in two forms: one contains the letters and digits of the other in a row.

    >>> is_same_value("abc1234", "ABC-1234"), is_same_value("ann", "DE-88")
    (True, False)
    """
    old, new = ("".join(filter(str.isalnum, text)).casefold() for text in (before, after))
    return min(len(old), len(new)) >= MIN_SHARED and (old in new or new in old)


def _readable(text: str) -> str:
    """Return the texts of a JSON answer, one a line, and any other answer as it is."""
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
    """Whether a tool's expression is safe to match: it compiles, and no repetition contains another one."""
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
    """Whether a value has a form such as ``MM/YY``, character by character."""
    if len(form) != len(value):
        return False
    return all(
        sign == char
        or (sign in _ANY_DIGIT and char.isdecimal())
        or (sign in _ANY_LETTER and char.isalpha())
        or (sign in "RGB" and char.isalnum())
        for sign, char in zip(form, value, strict=True)
    )


def _measured(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _classes(value: str) -> tuple[str, ...]:
    return tuple(kind for kind, _ in _runs(value))


def _runs(value: str) -> Iterator[tuple[str, int]]:
    """Yield the character classes of a value in a row, each with its number of characters."""
    return ((kind, len(list(run))) for kind, run in groupby(value, key=_class_of))


def _class_of(char: str) -> str:
    if char.isascii() and char.isdigit():
        return "\\d"
    if char.isascii() and char.isalpha():
        return "[A-Z]" if char.isupper() else "[a-z]"
    return f"\\{char}" if char in ".+*?()[]{}|^$\\" else char
