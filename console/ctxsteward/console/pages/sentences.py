"""Sentences of commands, suites and findings in the language of a page.

Commands say them in English, with figures, names and quotes filled in. ``sentences.yaml`` has each as a pattern with
its translation, so pages need no second set of functions that make the same sentence. What no pattern matches stays as
it is.

>>> translated("It contradicts rails.writes, which is locked: Ask first.")
'它与锁定的 rails.writes 相矛盾：Ask first.'
>>> translated("It changes what is done, so only a person may admit it. No person said it; a person rejected it.")
'它会改变实际操作，因此只能由人批准。没有人说过；已由人拒绝。'
>>> translated("A sentence of a user.") is None
True
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from ruamel.yaml import YAML

_HOLE = re.compile(r"\{(\w+)\}")
_END = re.compile(r"(?<=[.?:”]) (?=[A-Z])")
MAX_CHARS = 700
QUOTES = frozenset(("text", "who", "note", "at", "key"))
"""Holes whose text is never translated."""


@lru_cache(maxsize=1024)
def translated(text: str) -> str | None:
    """Return a text in Chinese: one sentence or several; None if a part of it is unknown."""
    if len(text) > MAX_CHARS:  # a message of a user, whose length would make the patterns slow
        return None
    whole = _sentence(text)
    if whole is not None or not text:
        return whole
    for match in _END.finditer(text):
        first = _sentence(text[: match.start()])
        rest = None if first is None else translated(text[match.end() :])
        if first is not None and rest is not None:
            return first + rest
    return None


def meaning(kind: str) -> str:
    """Return what a finding of this kind means, in Chinese; empty if the kind is unknown."""
    return str(_file()["findings"].get(kind, ""))


def _sentence(text: str) -> str | None:
    if text in _plain():
        return _plain()[text]
    for first, last, pattern, template in _patterns():
        match = pattern.fullmatch(text) if text.startswith(first) and text.endswith(last) else None
        if match is not None:
            values = {
                name: value if name in QUOTES else translated(value) or value
                for name, value in match.groupdict().items()
            }
            return template.format_map(values)
    clauses = _clauses(text[:1].lower() + text[1:-1]) if text.endswith(".") else None
    return None if clauses is None else f"{clauses}。"


def _clauses(text: str) -> str | None:
    """Return reasons that semicolons join; a reason may have a semicolon of its own."""
    if text in _plain():
        return _plain()[text]
    for match in re.finditer("; ", text):
        first, rest = _plain().get(text[: match.start()]), _clauses(text[match.end() :])
        if first is not None and rest is not None:
            return f"{first}；{rest}"
    return None


@cache
def _file() -> dict[str, Any]:
    read = YAML(typ="safe").load((files(__package__) / "sentences.yaml").read_text(encoding="utf-8"))
    return dict(read)


@cache
def _plain() -> dict[str, str]:
    return {english: other for english, other in _file()["sentences"] if not _HOLE.search(english)}


@cache
def _patterns() -> tuple[tuple[str, str, re.Pattern[str], str], ...]:
    """Return what a sentence begins and ends with, its pattern, and its translation, for each that has holes."""
    rows = [(english, other) for english, other in _file()["sentences"] if _HOLE.search(english)]
    split = [(_HOLE.split(english), other) for english, other in rows]  # texts and names of holes in turn
    return tuple((parts[0], parts[-1], _pattern(parts), other) for parts, other in split)


def _pattern(parts: list[str]) -> re.Pattern[str]:
    made = (re.escape(part) if at % 2 == 0 else _hole(part) for at, part in enumerate(parts))
    return re.compile("".join(made), re.DOTALL)


def _hole(name: str) -> str:
    """Return the pattern of a hole; only a quote may go beyond the end of a sentence."""
    return f"(?P<{name}>.+?)" if name in QUOTES else f"(?P<{name}>(?:(?![.?] ).){{1,200}}?)"


__all__ = ["meaning", "translated"]
