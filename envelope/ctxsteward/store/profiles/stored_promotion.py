"""Read the `promotion` of a stored version: the reports and approvals that it rests on.

The chain accepts any JSON there, so another program, or a call of `ProfileVersions.commit`, may have written another
form than the steward does. An invalid part is left out and its name reported, so that showing a version never fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

UNREADABLE = "unreadable"
"""Key of the list of names of invalid parts."""


def readable_promotion(stored: object) -> dict[str, Any] | None:
    """Return the valid parts of a promotion and the names of the others, or None if there is no promotion.

    >>> readable_promotion({"level": "INFO", "canary": 5})
    {'level': 'INFO', 'unreadable': ['canary']}
    """
    if stored is None:
        return None
    if not isinstance(stored, Mapping):
        return {UNREADABLE: ["promotion"]}
    spoiled = sorted(name for name, value in stored.items() if name in _FORMS and not _FORMS[name](value))
    readable = {name: value for name, value in stored.items() if name not in spoiled}
    return readable | ({UNREADABLE: spoiled} if spoiled else {})


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_reference(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(value.get(name), str) for name in ("blob", "key"))


def _is_canary(value: object) -> bool:
    if not isinstance(value, Mapping) or not _is_number(value.get("champion")):
        return False
    share = value.get("share")
    return isinstance(share, int | float) and not isinstance(share, bool) and 0 < share <= 1


_FORMS: Mapping[str, Callable[[object], bool]] = MappingProxyType(
    {
        "level": lambda value: isinstance(value, str),
        "touched": lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
        "approvals": lambda value: isinstance(value, list),
        "approved": _is_number,
        "canary": _is_canary,
        "drift": _is_reference,
        "gate": _is_reference,
        "patch": _is_reference,
        "taken_back": lambda value: (
            isinstance(value, Mapping) and all(isinstance(when, str) for when in value.values())
        ),
        UNREADABLE: lambda value: False,
    }
)
"""Validators by name of part; parts with other names may have any form."""
