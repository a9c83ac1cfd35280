"""What other rooms bring: callables that are found by name under an entry-point group.

`envelope` imports neither the summarizers nor the reader of replacements; whoever installs the distribution, or another
package, names them. Raises `InputError` for a name that nobody installed.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ctxsteward.schemas import InputError, Replacing, Summarizer


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
