"""`check_argument`: refuse an argument of a wrong type when it is passed, not when a later call uses it.

If an option of a wrong type were accepted, it would fail far from the line that set it, often inside code that ignores
our failures. So every public constructor checks its options.
"""

from __future__ import annotations

from .errors import InputError


def check_argument(
    name: str, value: object, kinds: type | tuple[type, ...], hint: str, *, optional: bool = False
) -> None:
    """Raise `InputError` unless the value is of one of these types; `hint` says what to pass.

    In Python a bool is an int, but it is never a number of tokens, so it is refused unless `kinds` contains `bool`.

    >>> check_argument("max_open", True, int, "pass a number of sessions")
    Traceback (most recent call last):
    ctxsteward.schemas.errors.InputError: max_open is bool; pass a number of sessions
    """
    if optional and value is None:
        return
    allowed = kinds if isinstance(kinds, tuple) else (kinds,)
    if isinstance(value, allowed) and (not isinstance(value, bool) or bool in allowed):
        return
    raise InputError(f"{name} is {_named(value)}; {hint}")


def check_callable(name: str, value: object, hint: str, *, optional: bool = False) -> None:
    """Raise `InputError` unless the value is callable; a class instead of its instance is refused, too."""
    if optional and value is None:
        return
    if not callable(value) or isinstance(value, type):
        raise InputError(f"{name} is {_named(value)}; {hint}")


def _named(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


__all__ = ["check_argument", "check_callable"]
