"""What an argument looks like, in words of a closed set: never what it says.

>>> kind("2024-05-01"), kind("05/01/2024"), kind([{"first": "A", "dob": "1990-01-01"}]), kind(3)
('YYYY-MM-DD', 'NN/NN/YYYY', 'list of objects with first, dob', 'integer')
"""

from __future__ import annotations

import re

from .tool_calls import is_name

MAX_KEYS = 6
SWITCH = "true or false"
SWITCHES = frozenset((SWITCH, "null", "empty text", "empty list"))
"""Kinds that turn something on or off."""
FIGURES = frozenset(("integer", "number"))
_FORMATS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("empty text", r"\s*"),
        ("ISO 8601 time", r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?"),
        ("YYYY-MM-DD", r"\d{4}-\d{2}-\d{2}"),
        ("YYYY/MM/DD", r"\d{4}/\d{1,2}/\d{1,2}"),
        ("NN/NN/YYYY", r"\d{1,2}/\d{1,2}/\d{4}"),
        ("NN.NN.YYYY", r"\d{1,2}\.\d{1,2}\.\d{4}"),
        ("Chinese date", r"(?:\d{4}年)?\d{1,2}月\d{1,2}[日号]"),
        ("date in words", r"(?:\d{1,2}(?:st|nd|rd|th)? )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
                          r"(?: \d{1,2}(?:st|nd|rd|th)?)?(?:,? \d{4})?"),
        ("HH:MM", r"\d{2}:\d{2}(?::\d{2})?"),
        ("whole number as text", r"[+-]?\d+"),
        ("number as text", r"[+-]?\d*\.\d+"),
        ("e-mail address", r"[^\s@]+@[^\s@]+\.[A-Za-z]{2,}"),
        ("URL", r"[a-z][a-z0-9+.-]*://\S+"),
        ("UUID", r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
        ("absolute path", r"(?:/|[A-Za-z]:\\)[^\s]*"),
        ("relative path", r"\.{0,2}[\w.-]*(?:/[\w.-]+)+"),
        ("code in capitals", r"[A-Z]{2,5}"),
        ("identifier", r"(?=.*[\d_#-])[\w#-]+"),
        ("word", r"\w+"),
    )
)  # fmt: skip


def kind(value: object) -> str:
    """The kind of an argument: its type, its format where it has a known one, an object's keys."""
    match value:
        case None:
            return "null"
        case bool():
            return SWITCH
        case int():
            return "integer"
        case float():
            return "number"
        case str() if "[redacted:" in value:
            return "text"
        case str():
            return next((name for name, pattern in _FORMATS if pattern.fullmatch(value[:200])), "text")
        case dict():
            return _object(value)
        case list():
            return f"list of {_plural(value)}" if value else "empty list"
        case _:
            return "value"


def family(described: str) -> str:
    """The coarser kind: two of one family differ in format alone."""
    return "object" if described.startswith("object") else "list" if "list" in described else "scalar"


def _object(value: dict[str, object]) -> str:
    keys = [key for key in list(value)[: MAX_KEYS + 1] if is_name(key)]
    return f"object with {', '.join(keys[:MAX_KEYS])}" if keys else "object"


def _plural(items: list[object]) -> str:
    first = kind(items[0])
    if first.startswith("object"):
        return "objects" + first.removeprefix("object")
    return "lists" if "list" in first else f"values ({first})"
