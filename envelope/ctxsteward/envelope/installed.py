"""What other rooms bring: callables that are found by name under an entry-point group.

`envelope` imports neither the summarizers nor the reader of replacements; whoever installs the distribution, or another
package, names them. Raises `InputError` for a name that nobody installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, get_args

from ctxsteward.schemas import InputError, Replacing, Summarizer

Shortened = Literal["dynamic", "meta"]
"""Sections that are ever made smaller; system and static never are."""


def summarizers_of(named: str | Summarizer | Mapping[Shortened, str | Summarizer]) -> dict[Shortened, Summarizer]:
    """The summarizer of each section that has one; dynamic always has: the extractive one, unless told otherwise.

    Raises `InputError` for a section that is never shortened, and for what is neither a name nor a callable.
    """
    told: Mapping[Any, Any] = named if isinstance(named, Mapping) else {"dynamic": named}
    found: dict[Shortened, Summarizer] = {}
    for section, one in {"dynamic": "extractive", **told}.items():
        if section not in get_args(Shortened):
            raise InputError(f"summarizer[{section!r}]: only {' and '.join(get_args(Shortened))} are ever shortened")
        if not isinstance(one, str) and not callable(one):
            what = f"summarizer[{section!r}] is {type(one).__name__}"
            raise InputError(
                f"{what}; give the name of one that is installed, or a callable (source, *, budget_tokens)"
            )
        found[section] = load_summarizer(one) if isinstance(one, str) else one
    return found


def load_summarizer(name: str) -> Summarizer:
    """The summarizer installed under this name (entry-point group ``ctxsteward.summarizers``)."""
    found: Summarizer = _installed("ctxsteward.summarizers", "summarizer", name)
    return found


def replacing_reader() -> Replacing:
    """A new reader of what replaces what, for one session."""
    made: Replacing = _installed("ctxsteward.replacing", "reader of replacements", "extractive")()
    return made


@cache
def _installed(group: str, what: str, name: str) -> Any:
    from importlib.metadata import entry_points

    found = entry_points(group=group)
    for point in found:
        if point.name == name:
            return point.load()
    known = ", ".join(sorted(point.name for point in found)) or "none"
    raise InputError(f"no {what} named {name!r} is installed; known: {known}; or pass a callable")
