"""A talk to play, its statements, and the words by which a window shows a statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ctxsteward.schemas.message import Wire

from ..canaries import normalize, read_marks, shows


@dataclass(frozen=True, slots=True, kw_only=True)
class UserStatement:
    """A sentence that a user says once, and the words that decide whether a line shows it."""

    text: str
    words: tuple[str, ...]
    """A line shows the statement if it contains all of these words."""
    stale: tuple[str, ...] = ()
    """Words of the older value's sentence; empty without one."""


def marked_statement(text: str) -> UserStatement:
    """Return the statement of a sentence whose deciding words are marked by ⟦…⟧."""
    plain, words = read_marks(text)
    return UserStatement(text=plain, words=words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """Messages with statements in them, and idle messages to say afterwards."""

    name: str
    messages: tuple[Wire, ...]
    statements: tuple[UserStatement, ...]
    idle: Callable[[], Wire] | None = field(default=None, repr=False)
    """Returns the next idle message; None if nothing is said afterwards."""


def window_lines(text: str) -> list[str]:
    """Split a window into lines, normalized for `line_shows`."""
    return [normalize(line) for line in text.splitlines()]


def line_shows(lines: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether one normalized line contains all the words, none of them inside a longer number.

    >>> lines = window_lines("- Oslo moved to week 9 §3\\n- Rome is in week 15")
    >>> line_shows(lines, ["Oslo", "week 9"]), line_shows(lines, ["Oslo", "week 15"]), line_shows(lines, ["week 1"])
    (True, False, False)
    """
    return any(all(shows(line, word) for word in words) for line in lines)
